#!/usr/bin/env python3
"""grove's distances to a triangle surface against Open3D (Embree's point query), CGAL's AABB tree and Warp's mesh query: one run, the same surface and
points, the same cores.

    build/peers/bin/python bench/peers/surface.py                        car body, split to 1.0 M triangles: a grid and 1 M points; about 10 minutes

README.md says how to make that interpreter; g++ and CGAL's headers (Debian: libcgal-dev) are needed, and grove's release build.
Every side runs in processes of its own, in turn; medians over the rounds, of which the peers, each minutes long, have but --peer-rounds. What is run
how, and figures: docs/geometry.md.
"""
import argparse
import json
import os
import sys

import numpy as np

from geometry_peers import BODY, ROOT, cell, compile_peer, load, medians, print_lowest, print_machine, print_table, read_mesh, run, save, timed

ROWS = ("build", "build signed", "distance", "signed", "signed in a band")
OWN_ROWS = dict(zip(ROWS, ("build_seconds", "build_signed_seconds", "unsigned_seconds", "signed_seconds", "signed_band_seconds")))
PACKAGES = ("numpy", "open3d-cpu", "warp-lang")


# ---- the surface ----

def split(vertices, triangles):
    """Each triangle into four; vertices at the middles of the edges are shared."""
    edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    unique, number = np.unique(edges, axis=0, return_inverse=True)
    middle = (len(vertices) + number.reshape(-1, 3)).astype(np.int32)
    a, b, c = triangles.T
    ab, bc, ca = middle.T
    parts = np.stack([np.stack(part, 1) for part in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))], 1)
    return np.concatenate([vertices, (vertices[unique[:, 0]] + vertices[unique[:, 1]]) / 2]).astype(np.float32), parts.reshape(-1, 3)


def prepare(folder, mesh, n_triangles):
    vertices, triangles = read_mesh(mesh)
    while len(triangles) < n_triangles:
        vertices, triangles = split(vertices, triangles)
    save(folder, "vertices.f32", vertices, np.float32)
    save(folder, "triangles.i32", triangles, np.int32)
    return len(triangles)


# ---- the peers in Python ----

def run_open3d(folder, threads):
    import open3d as o3d
    triangles, points = load(folder, "triangles.i32", np.int32), o3d.core.Tensor(load(folder, "points.f32"))
    result, scene = {}, o3d.t.geometry.RaycastingScene(nthreads=threads)

    def build():
        scene.add_triangles(o3d.core.Tensor(load(folder, "vertices.f32")), o3d.core.Tensor(triangles.astype(np.uint32)))
        scene.compute_distance(points[:1], nthreads=threads)  # the tree is built with the first query
    timed(result, "build", build)
    timed(result, "distance", lambda: scene.compute_distance(points, nthreads=threads))
    save(folder, "open3d.f32", timed(result, "signed", lambda: scene.compute_signed_distance(points, nthreads=threads)).numpy(), np.float32)
    return result


def run_warp(folder, threads):
    """Warp runs a launch on one core, so each thread launches its part of the points."""
    from concurrent.futures import ThreadPoolExecutor
    import warp_kernels
    import warp as wp
    points = wp.array(load(folder, "points.f32"), dtype=wp.vec3, device="cpu")
    n, result = len(points), {}
    distances = wp.zeros(n, dtype=float, device="cpu")
    wp.load_module(warp_kernels, device="cpu")
    mesh = timed(result, "build", lambda: wp.Mesh(points=wp.array(load(folder, "vertices.f32"), dtype=wp.vec3, device="cpu"),
                                                  indices=wp.array(load(folder, "triangles.i32", np.int32, 1).ravel(), dtype=int, device="cpu")))

    def launch(kernel):
        def launch_part(t):
            part = slice(n * t // threads, n * (t + 1) // threads)
            wp.launch(kernel, dim=part.stop - part.start, device="cpu", inputs=[mesh.id, points[part], 1e6, distances[part]])
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(launch_part, range(threads)))
    timed(result, "distance", lambda: launch(warp_kernels.closest))
    save(folder, "warp.f32", distances.numpy(), np.float32)
    return result


# ---- the run ----

def run_grove(arguments, problem, cpus):
    r = run([arguments.grove, "bench", f"sdf:{problem}:t{len(cpus)}:r1", arguments.folder, "--json"], cpus)
    return {row: r[name] for row, name in OWN_ROWS.items() if name in r} | {
        "peak_bytes": r["peak_bytes"], "tree_bytes": r["bytes_per_triangle_signed"] * r["triangles"], "error": r["error_over_diagonal"]}


def run_side(arguments, side, problem, cpus):
    if side == "grove":
        return run_grove(arguments, problem, cpus)
    if side == "cgal":
        return run([arguments.cgal, arguments.folder, str(len(cpus))], cpus)
    return run([sys.executable, os.path.abspath(__file__), "--folder", arguments.folder, "--side", side, "--threads", str(len(cpus))], cpus)


def measure(arguments, problem, cpus, sides):
    runs = {side: [] for side in sides}
    for number in range(arguments.rounds):
        for side in sides:
            if side == "grove" or number < arguments.peer_rounds:
                runs[side].append(run_side(arguments, side, problem, cpus))
    return {side: medians(of_side) for side, of_side in runs.items()}


def check(folder, side, own):
    """In words: the largest difference of the distances (grove's own: from all triangles, at some points) over the diagonal, and other signs away from the surface."""
    if side == "grove":
        return f"off by {own['error']:.1e} diagonals from all triangles"
    vertices, triangles = load(folder, "vertices.f32"), load(folder, "triangles.i32", np.int32)
    used = vertices[np.unique(triangles)]
    diagonal = np.linalg.norm(used.max(0) - used.min(0))
    ours, theirs = (np.fromfile(os.path.join(folder, file), np.float32) for file in ("distance.f32", side + ".f32"))
    worst = float(np.max(np.abs(np.abs(ours) - np.abs(theirs)))) / diagonal
    signs = f", {int(np.sum((ours < 0) != (theirs < 0), where=np.abs(ours) > 1e-5 * diagonal))} other signs" if (theirs < 0).any() else ""
    return f"off by {worst:.1e} diagonals{signs}"


def goal(side, row):
    """The issue's goals."""
    if row in ("distance", "signed"):
        return {"open3d": 2, "cgal": 10, "warp": 10}.get(side) if row == "distance" or side == "open3d" else None
    return None


def compare(arguments):
    os.makedirs(arguments.folder, exist_ok=True)
    available, sides = sorted(os.sched_getaffinity(0)), arguments.sides.split(",")
    threads = [int(t) for t in arguments.threads.split(",") if int(t) <= len(available)]
    print_machine(PACKAGES, available[:max(threads)])
    if "cgal" in sides:
        arguments.cgal = compile_peer("surface_cgal.cpp", arguments.folder, "-fopenmp", "-DCGAL_DISABLE_GMP", "-DCGAL_HAS_THREADS")
    n_triangles = prepare(arguments.folder, arguments.mesh, arguments.triangles)
    rows, results = [], []
    for problem in arguments.problems.split(","):
        name = problem + (f":n{arguments.points}" if problem == "points" else "")
        for n_threads in threads:
            result = measure(arguments, name, available[:n_threads], sides)
            own = result["grove"]
            for side, of in result.items():
                seconds = [cell(of.get(row), own.get(row) if side != "grove" else None) for row in ROWS]
                tree = f"{of['tree_bytes'] / 1e6:.0f}" if "tree_bytes" in of else ""
                rows.append([problem, str(n_threads), of.get("version", side), *seconds, tree, f"{of['peak_bytes'] / 1e6:.0f}", check(arguments.folder, side, own)])
            results.append(result)
            print(f"{problem}, {n_threads} threads: done", flush=True)
    print(f"\n{n_triangles} triangles; grid: 128 x 64 x 64 points, points: {arguments.points} scattered ones; medians of {arguments.rounds} processes (peers "
          f"{min(arguments.rounds, arguments.peer_rounds)}); grove's signs by winding number, Open3D's by counting crossings")
    print_table(["points", "threads", "side", *ROWS, "tree MB", "peak MB", "check"], rows)
    print_lowest(results, ROWS[:-1], goal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "peers-surface"), help="for the surface, points and results")
    parser.add_argument("--mesh", default=BODY, help="OBJ or binary STL, .gz too")
    parser.add_argument("--triangles", type=int, default=750000, help="at least: triangles are split into four until there are so many")
    parser.add_argument("--problems", default="grid,points")
    parser.add_argument("--points", type=int, default=1000000, help="scattered ones")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=1)
    parser.add_argument("--sides", default="grove,open3d,cgal,warp")
    parser.add_argument("--grove", default=os.path.join(ROOT, "build", "release", "grove"))
    parser.add_argument("--side", help=argparse.SUPPRESS)  # what the script calls itself for
    arguments = parser.parse_args()
    if arguments.side:
        side = {"open3d": run_open3d, "warp": run_warp}[arguments.side]
        print(json.dumps(side(arguments.folder, int(arguments.threads))))
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
