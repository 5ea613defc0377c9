"""What neighbours.py and surface.py share: meshes and points, processes that are timed and watched, tables. Needs numpy."""
import gzip
import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BODY = os.path.join(ROOT, os.pardir, "shared", "data", "geometry", "openfoam", "body.obj.gz")


# ---- meshes and points ----

def read_bytes(path):
    return gzip.open(path).read() if path.endswith(".gz") else open(path, "rb").read()


def read_obj(text):
    vertices, triangles = [], []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            vertices.append([float(word) for word in words[1:4]])
        elif words[:1] == ["f"]:
            face = [int(word.split("/")[0]) for word in words[1:]]
            face = [i - 1 if i > 0 else len(vertices) + i for i in face]
            triangles += [(face[0], b, c) for b, c in zip(face[1:], face[2:])]
    return np.array(vertices, np.float32), np.array(triangles, np.int32)


def read_stl(data):
    n = struct.unpack_from("<I", data, 80)[0]
    if len(data) != 84 + 50 * n:
        sys.exit("a binary STL expected")
    records = np.frombuffer(data, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]), n, 84)
    vertices, triangles = np.unique(records["corners"].reshape(-1, 3), axis=0, return_inverse=True)
    return vertices, triangles.reshape(-1, 3).astype(np.int32)


def read_mesh(path):
    """Vertices [n][3] float32 and triangles [m][3] int32 of an OBJ or a binary STL, packed by gzip or not."""
    data = read_bytes(path)
    return read_obj(data.decode()) if ".obj" in path.lower() else read_stl(data)


def load(folder, name, kind=np.float32, columns=3):
    return np.fromfile(os.path.join(folder, name), kind).reshape(-1, columns)


def save(folder, name, array, kind):
    np.ascontiguousarray(array, kind).tofile(os.path.join(folder, name))


# ---- processes ----

def run(command, cpus):
    """Runs a side in a process of its own on these processors; its JSON object, with the peak of its resident memory."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    env |= {"OMP_NUM_THREADS": str(len(cpus)), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    return json.loads(text[text.index("{"):]) | {"peak_bytes": usage.ru_maxrss * 1024}


def timed(result, name, function):
    """Calls it; its seconds by the clock and of the processors become result[name] and result[name + "_cpu"]."""
    start, cpu_start = time.perf_counter(), time.process_time()
    value = function()
    result[name], result[name + "_cpu"] = time.perf_counter() - start, time.process_time() - cpu_start
    return value


def medians(runs):
    numbers = [name for name, value in runs[0].items() if isinstance(value, (int, float))]
    return runs[0] | {name: statistics.median(one[name] for one in runs) for name in numbers}


def compile_peer(source, folder, *options):
    """Path of the program built from that C++ file; only when the source is newer."""
    source, program = os.path.join(HERE, source), os.path.join(folder, os.path.splitext(source)[0])
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        subprocess.run(["g++", "-O3", "-march=native", "-DNDEBUG", *options, "-o", program, source], check=True)
    return program


def versions(packages):
    from importlib import metadata
    found = []
    for package in packages:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"{package} MISSING")
    return ", ".join(found)


def print_machine(packages, cpus):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    print(f"{model}, processors {','.join(map(str, cpus))}, load {os.getloadavg()[0]:.1f} before; Python {platform.python_version()}, {versions(packages)}; "
          f"OPENBLAS_* unset, OMP_NUM_THREADS as the threads of each row", flush=True)


# ---- tables ----

def cell(seconds, own):
    """Seconds, and how many times grove's."""
    if seconds is None:
        return "-"
    return f"{seconds:.3g} s" + (f" ({seconds / own:.1f}x)" if own else "")


def print_table(columns, rows):
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def print_lowest(results, names, goals):
    """The lowest ratio of each peer in each row over all results (a list of {side: {name: seconds}}), beside the goal."""
    sides = [side for side in results[0] if side != "grove"]
    rows = []
    for side in sides:
        cells = []
        for name in names:
            ratios = [of[side][name] / of["grove"][name] for of in results if side in of and name in of[side] and name in of["grove"]]
            goal = goals(side, name)
            cells.append(f"{min(ratios):.1f}x" + (f" (goal {goal}x{'' if min(ratios) >= goal else ', MISSED'})" if goal else "") if ratios else "-")
        rows.append([side] + cells)
    print("\nLowest ratios (peer's seconds over grove's):")
    print_table(["", *names], rows)
