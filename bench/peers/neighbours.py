#!/usr/bin/env python3
"""grove's neighbour searches against nanoflann, pykdtree and SciPy's cKDTree: one run, the same points and queries, the same cores, one table.

    neighbours.py --python build/venv/bin/python --folder /tmp/neighbours --body body.obj.gz      1 M points, uniform and on the body's surface
    neighbours.py ... --points 10000000 --rounds 1

Needs numpy, scipy and pykdtree in that interpreter, g++ and nanoflann's header (Debian: libnanoflann-dev). Every side runs in processes of its own, in
turn, on the given number of cores (its affinity); medians over the rounds. float32 on all sides but SciPy, which has double only.
What is run how, and figures: docs/geometry.md.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ROWS = ("build", "random", "sorted", "build+random", "radius")


# ---- the points (in the interpreter that has numpy) ----

def read_obj(path):
    import numpy
    vertices, faces = [], []
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as lines:
        for line in lines:
            words = line.split()
            if words[:1] == ["v"]:
                vertices.append([float(x) for x in words[1:4]])
            elif words[:1] == ["f"]:
                corner = [int(word.split("/")[0]) - 1 for word in words[1:]]
                faces += [[corner[0], corner[i], corner[i + 1]] for i in range(1, len(corner) - 1)]
    return numpy.array(vertices), numpy.array(faces)


def sample_surface(random, vertices, faces, n):
    import numpy
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    area = numpy.linalg.norm(numpy.cross(b - a, c - a), axis=1)
    picked = random.choice(len(faces), n, p=area / area.sum())
    u, v = numpy.sqrt(random.random((n, 1))), random.random((n, 1))
    return (1 - u) * a[picked] + u * (1 - v) * b[picked] + u * v * c[picked]


def morton_order(x):
    import numpy
    cells = ((x - x.min(0)) / (x.max(0) - x.min(0)) * 1023.5).astype(numpy.uint64)
    key = numpy.zeros(len(x), numpy.uint64)
    for bit in range(10):
        for d in range(3):
            key |= ((cells[:, d] >> numpy.uint64(bit)) & numpy.uint64(1)) << numpy.uint64(3 * bit + d)
    return numpy.argsort(key, kind="stable")


def make_files(folder, cloud, n, body):
    import numpy
    random = numpy.random.default_rng(1)
    mesh = read_obj(body) if cloud == "body" else None
    for name in ("points", "queries"):
        x = random.random((n, 3)) if mesh is None else sample_surface(random, *mesh, n)
        x = x.astype(numpy.float32)
        x.tofile(os.path.join(folder, name + ".f32"))
        if name == "queries":
            x[morton_order(x)].tofile(os.path.join(folder, "queries_sorted.f32"))


# ---- the peers in Python ----

def run_python_peer(side, folder, k, threads, radius):
    import resource
    import time
    import numpy
    load = lambda name: numpy.fromfile(os.path.join(folder, name), numpy.float32).reshape(-1, 3)
    points, queries, in_order = load("points.f32"), load("queries.f32"), load("queries_sorted.f32")
    result = {}

    def timed(name, function):
        start, cpu_start = time.perf_counter(), time.process_time()
        value = function()
        result[name], result[name + "_cpu"] = time.perf_counter() - start, time.process_time() - cpu_start
        return value

    if side == "pykdtree":
        from pykdtree.kdtree import KDTree
        tree = timed("build", lambda: KDTree(points))
        query = lambda x: tree.query(x, k=k, sqr_dists=True)[1]
    else:
        from scipy.spatial import cKDTree
        points, queries, in_order = (x.astype(numpy.float64) for x in (points, queries, in_order))
        tree = timed("build", lambda: cKDTree(points, balanced_tree=side == "scipy"))
        query = lambda x: tree.query(x, k=k, workers=threads)[1]
    timed("sorted", lambda: query(in_order))
    found = timed("random", lambda: query(queries))
    found.astype(numpy.int32).tofile(os.path.join(folder, f"nearest_{side}.i32"))
    result["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if side.startswith("scipy"):
        lists = timed("radius", lambda: tree.query_ball_point(queries, radius, workers=threads))
        result["points_within"] = sum(map(len, lists))
    return result


def check_peer(folder, side, k):
    """Greatest relative difference of the squared distances of the neighbours that grove and the peer found, in double; rows with other indices."""
    import numpy
    points, queries = (numpy.fromfile(os.path.join(folder, name), numpy.float32).reshape(-1, 3) for name in ("points.f32", "queries.f32"))
    ours, theirs = (numpy.fromfile(os.path.join(folder, name), numpy.int32).reshape(-1, k) for name in ("nearest.i32", f"nearest_{side}.i32"))
    rows = numpy.flatnonzero((ours != theirs).any(1))
    a, b = (((points[found[rows]].astype(numpy.float64) - queries[rows, None].astype(numpy.float64)) ** 2).sum(2) for found in (ours, theirs))
    return {"rows": len(rows), "difference": float((abs(a - b) / numpy.maximum(a, 1e-300)).max()) if len(rows) else 0.0}


# ---- the run ----

def run(command, cpus):
    env = dict(os.environ, OMP_NUM_THREADS=str(len(cpus)), OPENBLAS_NUM_THREADS="1")
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout) if done.stdout.strip() else {}


def run_grove(arguments, cpus):
    r = run(["/usr/bin/env", arguments.grove, "bench", f"neighbours:file:k{arguments.k}:t{len(cpus)}:r1", arguments.folder, "--json"], cpus)
    result = {"tree_bytes": r["structure_bytes"], "points_within": r["points_within"], "length": r["radius"], "correct": r["correct"], "floor": r["floor_seconds"]}
    for clock in ("", "_cpu"):
        result |= {"build" + clock: r[f"build{clock}_seconds"], "random" + clock: r[f"nearest_random{clock}_seconds"],
                   "sorted" + clock: r[f"nearest_sorted{clock}_seconds"],
                   "radius" + clock: r[f"count_within{clock}_seconds"] + r[f"fill_within{clock}_seconds"]}
    return result


def measure(arguments, cpus, sides):
    runs = {side: [] for side in sides}
    own = [sys.executable if arguments.python is None else arguments.python, os.path.abspath(__file__), "--folder", arguments.folder, "--k", str(arguments.k)]
    for _ in range(arguments.rounds):
        for side in sides:
            if side == "grove":
                one = run_grove(arguments, cpus)
                radius = one["length"]
            elif side == "nanoflann":
                one = run([os.path.join(arguments.folder, "nanoflann"), arguments.folder, str(arguments.k), str(len(cpus)), repr(radius), "10"], cpus)
            else:
                one = run(own + ["--side", side, "--threads", str(len(cpus)), "--radius", repr(radius)], cpus)
            one |= {"build+random" + clock: one["build" + clock] + one["random" + clock] for clock in ("", "_cpu")}
            runs[side].append(one)
    return {side: {name: statistics.median(one[name] for one in of_side) for name in of_side[0]} for side, of_side in runs.items()}


def print_rows(side, of_side, grove, clock, note):
    cells = ""
    for row in (name + clock for name in ROWS):
        cells += f"{'-':>19s}" if row not in of_side else f"{of_side[row]:10.4f} s " + (f"{of_side[row] / grove[row]:5.2f} x" if side != "grove" else " " * 7)
    print(f"  {side:14s}{cells}  {note}", flush=True)


def print_table(title, result, checks):
    grove = result["grove"]
    print(f"\n{title}; floor of build+random {grove['floor']:.4f} s; {grove['points_within']:.0f} points within {grove['length']:.4g}"
          f"{'' if grove['correct'] else '; WRONG'}")
    print(f"  {'':14s}" + "".join(f"{row:>19s}" for row in ROWS))
    for side, of_side in result.items():
        note = f"tree {of_side['tree_bytes'] / 1e6:.1f} MB" if "tree_bytes" in of_side else ""
        note += f" peak {of_side['peak_bytes'] / 1e6:.0f} MB" if "peak_bytes" in of_side else ""
        note += "" if side == "grove" else f"; {checks[side]['rows']} rows with other indices, squared distances differ by {checks[side]['difference']:.1e}"
        note += "" if of_side.get("points_within", grove["points_within"]) == grove["points_within"] else f"; {of_side['points_within']:.0f} within"
        print_rows(side, of_side, grove, "", note)
    print("  processor time:")
    for side, of_side in result.items():
        print_rows(side, of_side, grove, "_cpu", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--k", type=int, default=7)
    parser.add_argument("--body", help="an OBJ file: the second cloud lies on its surface")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", default="grove,nanoflann,pykdtree,scipy,scipy-midpoint")
    parser.add_argument("--python", help="interpreter that has numpy, scipy and pykdtree")
    parser.add_argument("--grove", default=os.path.join(ROOT, "build", "release", "grove"))
    parser.add_argument("--json", action="store_true", help="one object a line instead of tables")
    parser.add_argument("--side", help=argparse.SUPPRESS)  # what the script calls itself for
    parser.add_argument("--radius", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side == "files":
        return make_files(arguments.folder, "body" if arguments.body else "uniform", arguments.points, arguments.body)
    if arguments.side and arguments.side.startswith("check-"):
        return print(json.dumps(check_peer(arguments.folder, arguments.side.removeprefix("check-"), arguments.k)))
    if arguments.side:
        return print(json.dumps(run_python_peer(arguments.side, arguments.folder, arguments.k, int(arguments.threads), arguments.radius)))
    os.makedirs(arguments.folder, exist_ok=True)
    available, sides = sorted(os.sched_getaffinity(0)), arguments.sides.split(",")
    own = [arguments.python or sys.executable, os.path.abspath(__file__), "--folder", arguments.folder, "--k", str(arguments.k)]
    subprocess.run(["g++", "-O3", "-march=native", "-DNDEBUG", "-pthread", "-o", os.path.join(arguments.folder, "nanoflann"),
                    os.path.join(HERE, "neighbours_nanoflann.cpp")], check=True)
    for cloud in ["uniform"] + ["body"] * bool(arguments.body):
        run(own + ["--side", "files", "--points", str(arguments.points)] + (["--body", arguments.body] if cloud == "body" else []), available)
        for threads in [int(t) for t in arguments.threads.split(",")]:
            result = measure(arguments, available[:threads], sides)
            checks = {side: run(own + ["--side", "check-" + side], available) for side in sides if side != "grove"}
            if arguments.json:
                print(json.dumps({"cloud": cloud, "threads": threads, "result": result, "checks": checks}), flush=True)
            else:
                print_table(f"{cloud}, {arguments.points} points and queries, k {arguments.k}, {threads} thread{'s' * (threads > 1)}", result, checks)
    return None


if __name__ == "__main__":
    main()
