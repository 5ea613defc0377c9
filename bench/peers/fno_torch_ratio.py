#!/usr/bin/env python3
"""Training step of grove over that of PyTorch: same network, same cores, one run, each side in the environment it likes best.

    fno_torch_ratio.py --python build/venv/bin/python --threads 1
    fno_torch_ratio.py --problem fno:32x32x32x16w20m8,8,8,6:peer --peer-only

Runs fno_torch.py and `grove bench <problem> --json` in turn, several processes each, because the same binary varies between processes;
prints what was used, the medians and peer seconds / grove seconds.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import fno_torch

# Fresh pages cost PyTorch more than its arithmetic (it returns large blocks to the system after every use): keep them.
WARM_ALLOCATOR = dict(MALLOC_MMAP_THRESHOLD_="40000000000", MALLOC_TRIM_THRESHOLD_="400000000000")
UNWANTED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def environment(threads, **extra):
    env = {key: value for key, value in os.environ.items() if key not in UNWANTED}
    return dict(env, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), **extra)


def peer_bytes(problem, blocks):
    """What a step of the peer needs, roughly: torch itself, parameters, gradients, two moments, and about 11 activations a block."""
    n, width, modes = fno_torch.parse_problem(problem)
    points, weights = width * 4, width * width * 8 * blocks
    for length in n:
        points *= length
    for m in modes[:-1]:
        weights *= 2 * m
    return 1_000_000_000 + 4 * weights * modes[-1] + 11 * blocks * points


def available_bytes():
    with open("/proc/meminfo") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable"))


def run_json(command, env):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="fno:64x64x64x16w20m12,12,12,6:peer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=3, help="of each side")
    parser.add_argument("--repetitions", type=int, default=3, help="timed steps in each process of the peer")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has torch")
    parser.add_argument("--grove", default=os.path.join(fno_torch.ROOT, "build", "release", "grove"))
    parser.add_argument("--default-allocator", action="store_true", help="run the peer as most users do, page faults and all")
    parser.add_argument("--peer-only", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        needed, available = peer_bytes(arguments.problem, blocks=4), available_bytes()
    except ValueError as error:
        parser.error(str(error))
    if needed > available:
        sys.exit(f"{arguments.problem}: the peer needs about {needed / 1e9:.1f} GB, {available / 1e9:.1f} GB are available")

    peer_script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fno_torch.py")
    peer_command = [arguments.python, peer_script, arguments.problem, "--json", f"--threads={arguments.threads}",
                    f"--repetitions={arguments.repetitions}"]
    peer_environment = environment(arguments.threads, **({} if arguments.default_allocator else WARM_ALLOCATOR))
    grove_command = [arguments.grove, "bench", arguments.problem, "--json"]
    peer, grove = [], []
    for _ in range(arguments.processes):
        peer.append(run_json(peer_command, peer_environment))
        if not arguments.peer_only:
            grove.append(run_json(grove_command, environment(arguments.threads)))

    median = lambda runs, key="median_seconds": statistics.median(run[key] for run in runs)
    result = dict(problem=arguments.problem, threads=arguments.threads, processes=arguments.processes, peer=peer[0] | dict(
        median_seconds=median(peer), forward_seconds=median(peer, "forward_seconds"), process_medians=[run["median_seconds"] for run in peer]))
    if grove:
        result |= dict(grove=grove[0] | dict(median_seconds=median(grove), process_medians=[run["median_seconds"] for run in grove]),
                       ratio=median(peer) / median(grove), correct=all(run["correct"] for run in peer + grove))
    if arguments.json:
        print(json.dumps(result))
        return
    p = result["peer"]
    print(f"{arguments.problem} on {p['cpu']}, {arguments.threads} thread(s), {arguments.processes} processes a side")
    print(f"  torch {p['version']} ({p['blas']}, Adam {p['adam']}, {'warm' if p['warm_allocator'] else 'default'} allocator, "
          f"{p['peak_memory_bytes'] / 1e9:.1f} GB): step {p['median_seconds']:.3f} s, forward {p['forward_seconds']:.3f} s")
    if grove:
        print(f"  grove: step {result['grove']['median_seconds']:.3f} s\n  ratio: {result['ratio']:.2f}")


if __name__ == "__main__":
    main()
