#!/usr/bin/env python3
"""grove's store against tensorstore and zarr-python: one run, the same files, the same cores, one table.

    store.py --python build/venv/bin/python --folder /tmp/store_bench            about 4 GB of arrays, a quarter of an hour (--rounds 2: ten minutes)
    store.py --python build/venv/bin/python --folder /tmp/store_bench --size 64 --rounds 1

Arrays of float32 fields and of points, each with zstd and with blosc-zstd, are made by grove in the folder and stay there. Every side runs in
processes of its own, in turn, on the same number of cores (its affinity); medians over the rounds. A row's ratio is the time of the faster
peer over that of grove. What the rows are, and how the peers are run: docs/store_bench.md.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SIDES = ("grove", "tensorstore", "zarr")
ROWS = ("full", "window", "rows", "samples", "write")


def run_side(side, problem, cpus, arguments):
    if side == "grove":
        command = [arguments.grove, "bench", problem, arguments.folder, "--json"]
    else:
        command = [arguments.python, os.path.join(HERE, "store_peers.py"), side, problem, arguments.folder]
    env = dict(os.environ, OMP_NUM_THREADS=str(len(cpus)), OPENBLAS_NUM_THREADS=str(len(cpus)))
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout)


def measure(problem, cpus, arguments):
    """Medians over the rounds: side -> value -> number."""
    runs = {side: [] for side in SIDES}
    for round_number in range(arguments.rounds):
        for i in range(len(SIDES)):  # each side is first, second and third in turn
            side = SIDES[(i + round_number) % len(SIDES)]
            runs[side].append(run_side(side, problem, cpus, arguments))
    result = {}
    for side, of_side in runs.items():
        numbers = [name for name, value in of_side[0].items() if isinstance(value, (int, float)) and not isinstance(value, bool)]
        result[side] = {name: statistics.median(run[name] for run in of_side) for name in numbers}
        result[side] |= {name: of_side[0][name] for name in ("version", "problem") if name in of_side[0]}
    result["grove"]["correct"] = all(run["correct"] for run in runs["grove"])
    return result


def rate(bytes_, seconds):
    return f"{bytes_ / seconds / 1e9:.2f}"


def print_table(title, result):
    grove = result["grove"]
    stayed = max(side.get("resident_fraction", 0) for side in result.values())
    print(f"\n{title}: {grove['bytes'] / 1e9:.2f} GB, stored in {grove['stored_bytes'] / grove['bytes']:.2f} of it" +
          (f"; NOT COLD: {100 * stayed:.0f} % stayed in the page cache" if stayed > 0.01 else ""))
    print(f"  {'row':8s} {'grove':>10s} {'tensorstore':>12s} {'zarr-python':>12s}   ratio  of processor time")
    for row in ROWS:
        seconds = [result[side].get(f"{row}_seconds") for side in SIDES]
        if None in seconds:
            continue
        ratio = min(seconds[1:]) / seconds[0]
        cpu = [result[side][f"{row}_cpu_seconds"] for side in SIDES]
        note = f"   grove {rate(grove['bytes'], seconds[0])} GB/s" if row == "full" else ""
        print(f"  {row:8s} {seconds[0]:9.4f}s {seconds[1]:11.4f}s {seconds[2]:11.4f}s   {ratio:5.2f}  {min(cpu[1:]) / cpu[0]:5.2f}{note}{'' if ratio >= 1 else '   BEHIND'}")
    print(f"  decompressor alone {grove['decompressor_bytes_per_second'] / 1e9:.2f} GB/s; full read reaches {100 / grove['floor_ratio']:.0f} % of it, by processor time "
          f"{100 * grove['bytes'] / grove['full_cpu_seconds'] / grove['decompressor_bytes_per_cpu_second']:.0f} %"
          f"{'' if grove['correct'] else '; WRONG VALUES'}", flush=True)


def modes_of(arguments, cpus):
    """(words of the problem, number of threads): warm with each number of threads, the others with the most."""
    for mode in arguments.modes.split(","):
        for threads in [int(t) for t in arguments.threads.split(",")] if mode == "warm" else [len(cpus)]:
            yield "" if mode == "warm" else f":{mode}", threads


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--size", type=int, default=1024, help="MiB of each array")
    parser.add_argument("--kinds", default="fields,points")
    parser.add_argument("--codecs", default="zstd,blosc-zstd", help="of none, zstd, blosc-lz4, blosc-zstd")
    parser.add_argument("--modes", default="warm,fresh,cold")
    parser.add_argument("--threads", default="1,2", help="of the warm runs; the others use the last")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="interpreter that has tensorstore and zarr")
    parser.add_argument("--grove", default=os.path.join(ROOT, "build", "release", "grove"))
    parser.add_argument("--json", action="store_true", help="one object a line instead of tables")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    available, start = sorted(os.sched_getaffinity(0)), time.perf_counter()
    most = int(arguments.threads.split(",")[-1])
    if most > len(available):
        sys.exit(f"{most} threads asked for, {len(available)} cores may be used")
    for kind in arguments.kinds.split(","):
        for codec in arguments.codecs.split(","):
            for words, threads in modes_of(arguments, available[:most]):
                problem = f"store:{kind}:{codec}:{arguments.size}:t{threads}:r1{words}"
                result = measure(problem, available[:threads], arguments)
                if arguments.json:
                    print(json.dumps(result), flush=True)
                else:
                    print_table(f"{kind}, {codec}, {threads} thread{'s' * (threads > 1)}, {words[1:] or 'warm'}", result)
    if not arguments.json:
        print(f"\n{arguments.rounds} rounds, {time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
