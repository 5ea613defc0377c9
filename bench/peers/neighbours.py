#!/usr/bin/env python3
"""grove's neighbour searches against nanoflann, pykdtree, SciPy's cKDTree and Warp's hash grid: one run, the same points and queries, the same cores.

    build/peers/bin/python bench/peers/neighbours.py                              1 M points, uniform and on the car body: 10 to 15 minutes
    build/peers/bin/python bench/peers/neighbours.py --points 10000000 --queries 1000000 --rounds 1

README.md says how to make that interpreter; g++ and nanoflann's header (Debian: libnanoflann-dev) are needed, and grove's release build.
Every side runs in processes of its own, in turn; medians over the rounds, of which SciPy, far behind, has but --scipy-rounds. float32 on all sides
but SciPy, which has double only. What is run how, and figures: docs/geometry.md.
"""
import argparse
import json
import os
import sys

import numpy as np

from geometry_peers import BODY, ROOT, cell, compile_peer, load, medians, print_lowest, print_machine, print_table, read_mesh, run, save, timed

ROWS = ("build", "random", "sorted", "build+random", "build+sorted", "radius")
PACKAGES = ("numpy", "scipy", "pykdtree", "warp-lang")
TYPICAL = "32 points at the median query"


# ---- the points ----

def sample_surface(random, vertices, faces, n):
    a, b, c = (vertices[faces[:, i]].astype(np.float64) for i in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    picked = random.choice(len(faces), n, p=area / area.sum())
    u, v = np.sqrt(random.random((n, 1))), random.random((n, 1))
    return (1 - u) * a[picked] + u * (1 - v) * b[picked] + u * v * c[picked]


def morton_order(x):
    cells = ((x - x.min(0)) / (x.max(0) - x.min(0)) * 1023.5).astype(np.uint64)
    key = np.zeros(len(x), np.uint64)
    for bit in range(10):
        for d in range(3):
            key |= ((cells[:, d] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + d)
    return np.argsort(key, kind="stable")


def make_files(folder, body, n_points, n_queries):
    random = np.random.default_rng(1)
    mesh = read_mesh(body) if body else None
    for name, n in (("points", n_points), ("queries", n_queries)):
        x = random.random((n, 3)) if mesh is None else sample_surface(random, *mesh, n)
        x = x.astype(np.float32)
        save(folder, name + ".f32", x, np.float32)
        if name == "queries":
            save(folder, "queries_sorted.f32", x[morton_order(x)], np.float32)


# ---- the peers in Python ----

def kd_tree(side, points, k, threads, result):
    if side == "pykdtree":
        from pykdtree.kdtree import KDTree
        tree = timed(result, "build", lambda: KDTree(points))
        return tree, lambda x: tree.query(x, k=k, sqr_dists=True)[1]
    from scipy.spatial import cKDTree
    tree = timed(result, "build", lambda: cKDTree(points, balanced_tree=side == "scipy"))
    return tree, lambda x: tree.query(x, k=k, workers=threads)[1]


def run_kd_tree(side, folder, k, threads, radius):
    points, queries, in_order = (load(folder, name + ".f32") for name in ("points", "queries", "queries_sorted"))
    if side != "pykdtree":
        points, queries, in_order = (x.astype(np.float64) for x in (points, queries, in_order))
    result = {}
    tree, query = kd_tree(side, points, k, threads, result)
    timed(result, "sorted", lambda: query(in_order))
    save(folder, f"nearest_{side}.i32", timed(result, "random", lambda: query(queries)), np.int32)
    if side != "pykdtree":
        lists = timed(result, "radius", lambda: tree.query_ball_point(queries, radius, workers=threads))
        save(folder, f"within_{side}.i32", [len(one) for one in lists], np.int32)
    return result


def run_warp(folder, threads, radius):
    """Counts, then lists, of all points within the radius; Warp runs a launch on one core, so each thread launches its part of the queries."""
    from concurrent.futures import ThreadPoolExecutor
    import warp_kernels
    import warp as wp
    points, queries = (wp.array(load(folder, name + ".f32"), dtype=wp.vec3, device="cpu") for name in ("points", "queries"))
    n = len(queries)
    counts, grid, result = wp.zeros(n, dtype=int, device="cpu"), wp.HashGrid(128, 128, 128, device="cpu"), {}
    wp.load_module(warp_kernels, device="cpu")
    parts = [slice(n * t // threads, n * (t + 1) // threads) for t in range(threads)]

    def launch(kernel, of_queries, *shared):
        def launch_part(part):
            wp.launch(kernel, dim=part.stop - part.start, device="cpu", inputs=[grid.id, points, queries[part], float(radius), of_queries[part], *shared])
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(launch_part, parts))

    def search():
        launch(warp_kernels.count_within, counts)
        ends = np.cumsum(counts.numpy(), dtype=np.int64)
        indices, squared = wp.empty(int(ends[-1]), dtype=int, device="cpu"), wp.empty(int(ends[-1]), dtype=float, device="cpu")
        launch(warp_kernels.fill_within, wp.array(ends - counts.numpy(), dtype=int, device="cpu"), indices, squared)

    timed(result, "build", lambda: grid.build(points=points, radius=radius))
    timed(result, "radius", search)
    save(folder, "within_warp.i32", counts.numpy(), np.int32)
    return result


# ---- the check ----

def brute_force(points, queries, k):
    """Indices of the k nearest by grove's expression, ties by index."""
    found = np.empty((len(queries), k), np.int64)
    for i, q in enumerate(queries):
        x = (q - points) ** 2
        squared = (x[:, 0] + x[:, 1]) + x[:, 2]
        candidates = np.flatnonzero(squared <= np.partition(squared, k - 1)[k - 1])
        found[i] = candidates[np.lexsort((candidates, squared[candidates]))[:k]]
    return found


def check(folder, side, k):
    """In words: rows of nearest neighbours that differ from grove's (grove's own: from brute force) and by how much; queries with other counts within."""
    points, queries = load(folder, "points.f32"), load(folder, "queries.f32")
    ours = load(folder, "nearest.i32", np.int32, k)
    if side == "grove":
        some = np.linspace(0, len(queries) - 1, 50).astype(int)
        wrong = int((ours[some] != brute_force(points, queries[some], k)).any(1).sum())
        return f"{wrong} of {len(some)} rows differ from brute force"
    words = []
    if side != "warp":
        theirs = load(folder, f"nearest_{side}.i32", np.int32, k)
        rows = np.flatnonzero((ours != theirs).any(1))
        a, b = (((points[found[rows]].astype(np.float64) - queries[rows, None].astype(np.float64)) ** 2).sum(2) for found in (ours, theirs))
        worst = float((abs(a - b) / np.maximum(a, 1e-300)).max()) if len(rows) else 0.0
        words.append(f"{len(rows)} rows with other neighbours, squared distances off by {worst:.0e}")
    if side != "pykdtree":
        a, b = (load(folder, name, np.int32, 1) for name in ("within.i32", f"within_{side}.i32"))
        words.append(f"{int((a != b).sum())} of {len(a)} counts differ, {int(a.sum())} and {int(b.sum())} in all")
    return "; ".join(words)


# ---- the run ----

def run_grove(arguments, cpus):
    r = run([arguments.grove, "bench", f"neighbours:file:k{arguments.k}:t{len(cpus)}:r1", arguments.folder, "--json"], cpus)
    result = {"tree_bytes": r["structure_bytes"], "points_within": r["points_within"], "length": r["radius"], "correct": r["correct"], "peak_bytes": r["peak_bytes"]}
    for clock in ("", "_cpu"):
        result |= {"build" + clock: r[f"build{clock}_seconds"], "random" + clock: r[f"nearest_random{clock}_seconds"],
                   "sorted" + clock: r[f"nearest_sorted{clock}_seconds"],
                   "radius" + clock: r[f"count_within{clock}_seconds"] + r[f"fill_within{clock}_seconds"]}
    return result


def run_side(arguments, side, cpus, radius):
    threads = len(cpus)
    if side == "grove":
        one = run_grove(arguments, cpus)
    elif side == "nanoflann":
        one = run([arguments.nanoflann, arguments.folder, str(arguments.k), str(threads), repr(radius), "10"], cpus)
    else:
        one = run([sys.executable, os.path.abspath(__file__), "--folder", arguments.folder, "--k", str(arguments.k), "--side", side,
                   "--threads", str(threads), "--radius", repr(radius)], cpus)
    for clock in ("", "_cpu"):
        one |= {f"build+{row}{clock}": one["build" + clock] + one[row + clock] for row in ("random", "sorted") if row in one}
    return one


def measure(arguments, cpus, sides):
    runs, radius = {side: [] for side in sides}, 0
    for number in range(arguments.rounds):
        for side in sides:
            if side.startswith("scipy") and number >= arguments.scipy_rounds:
                continue
            one = run_side(arguments, side, cpus, radius)
            radius = one.get("length", radius)
            runs[side].append(one)
    return {side: medians(of_side) for side, of_side in runs.items()}


def table_rows(cloud, threads, result, checks, clock):
    own = result["grove"]
    for side, of in result.items():
        seconds = [cell(of.get(row + clock), own[row + clock] if side != "grove" else None) for row in ROWS]
        tree = f"{of['tree_bytes'] / 1e6:.1f}" if "tree_bytes" in of else ""
        yield [cloud, str(threads), side, *seconds, tree, f"{of['peak_bytes'] / 1e6:.0f}", checks[side]]


def goal(side, row):
    """The issue's goals."""
    if row == "radius":
        return 3 if side in ("nanoflann", "scipy", "warp") else None
    return {"nanoflann": 2, "pykdtree": 2, "scipy": 3}.get(side)


def compare(arguments):
    os.makedirs(arguments.folder, exist_ok=True)
    available, sides = sorted(os.sched_getaffinity(0)), arguments.sides.split(",")
    threads = [int(t) for t in arguments.threads.split(",") if int(t) <= len(available)]
    queries = arguments.queries or arguments.points
    print_machine(PACKAGES, available[:max(threads)])
    if "nanoflann" in sides:
        arguments.nanoflann = compile_peer("neighbours_nanoflann.cpp", arguments.folder, "-pthread")
    rows, cpu_rows, results = [], [], []
    for cloud in arguments.clouds.split(","):
        make_files(arguments.folder, arguments.body if cloud == "body" else None, arguments.points, queries)
        for n_threads in threads:
            result = measure(arguments, available[:n_threads], sides)
            checks = {side: check(arguments.folder, side, arguments.k) for side in sides}
            rows += table_rows(cloud, n_threads, result, checks, "")
            cpu_rows += table_rows(cloud, n_threads, result, checks, "_cpu")
            results.append(result)
            print(f"{cloud}, {n_threads} threads: done; within {result['grove']['length']:.4g} lie {result['grove']['points_within']:.0f} points", flush=True)
    print(f"\n{arguments.points} points, {queries} queries, k = {arguments.k}, radius with {TYPICAL}; medians of {arguments.rounds} processes "
          f"(SciPy {min(arguments.rounds, arguments.scipy_rounds)}); warp's build is that of its grid")
    columns = ["cloud", "threads", "side", *ROWS, "tree MB", "peak MB", "check"]
    print_table(columns, rows)
    print("\nProcessor seconds:")
    print_table(columns[:-3], [row[:-3] for row in cpu_rows])
    print_lowest(results, ROWS, goal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "peers-neighbours"), help="for points and results")
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--queries", type=int, help="as many as points, if not given")
    parser.add_argument("--k", type=int, default=7)
    parser.add_argument("--body", default=BODY, help="the OBJ or STL file on whose surface the cloud `body` lies")
    parser.add_argument("--clouds", default="uniform,body")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scipy-rounds", type=int, default=1)
    parser.add_argument("--sides", default="grove,nanoflann,pykdtree,scipy,warp", help="also scipy-midpoint")
    parser.add_argument("--grove", default=os.path.join(ROOT, "build", "release", "grove"))
    parser.add_argument("--side", help=argparse.SUPPRESS)  # what the script calls itself for
    parser.add_argument("--radius", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side == "warp":
        print(json.dumps(run_warp(arguments.folder, int(arguments.threads), arguments.radius)))
    elif arguments.side:
        print(json.dumps(run_kd_tree(arguments.side, arguments.folder, arguments.k, int(arguments.threads), arguments.radius)))
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
