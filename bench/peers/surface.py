#!/usr/bin/env python3
"""Distances to a triangle surface: grove against Open3D (Embree's point query) and CGAL's AABB tree: same surface, same points, same cores.

    surface.py prepare MESH FOLDER [--triangles 750000]    binary STL or OBJ (.gz too), split until it has so many triangles
    surface.py compare FOLDER --threads 1 [--problem points|grid] [--cgal PROGRAM]

`compare` runs grove and the peers in turn, each in a process of its own with its affinity set to so many cores; prints medians over the rounds, ratios
(peer seconds / grove seconds), and the largest difference of the distances over the diagonal of the surface. --cgal takes the program built from
surface_cgal.cpp (its head says how). What the peers do: docs/geometry.md.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import subprocess
import sys
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# ---- the surface ----

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


def split(vertices, triangles):
    """Each triangle into four; vertices at the middles of the edges are shared."""
    edges = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    unique, number = np.unique(edges, axis=0, return_inverse=True)
    middle = (len(vertices) + number.reshape(-1, 3)).astype(np.int32)
    a, b, c = triangles.T
    ab, bc, ca = middle.T
    parts = np.stack([np.stack(t, 1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))], 1)
    return np.concatenate([vertices, (vertices[unique[:, 0]] + vertices[unique[:, 1]]) / 2]).astype(np.float32), parts.reshape(-1, 3)


def prepare(arguments):
    data = read_bytes(arguments.mesh)
    vertices, triangles = read_obj(data.decode("latin-1")) if ".obj" in arguments.mesh else read_stl(data)
    while len(triangles) < arguments.triangles:
        vertices, triangles = split(vertices, triangles)
    os.makedirs(arguments.folder, exist_ok=True)
    vertices.tofile(os.path.join(arguments.folder, "vertices.f32"))
    np.ascontiguousarray(triangles, np.int32).tofile(os.path.join(arguments.folder, "triangles.i32"))
    print(f"{len(vertices)} vertices, {len(triangles)} triangles")


def load(folder):
    read = lambda name, kind: np.fromfile(os.path.join(folder, name), kind).reshape(-1, 3)
    return read("vertices.f32", np.float32), read("triangles.i32", np.int32), read("points.f32", np.float32)


# ---- the peers ----

def run_open3d(folder, threads, repetitions):
    import open3d as o3d

    vertices, triangles, points = load(folder)
    scene = o3d.t.geometry.RaycastingScene(nthreads=threads)
    start = time.perf_counter()
    scene.add_triangles(o3d.core.Tensor(vertices), o3d.core.Tensor(triangles.astype(np.uint32)))
    query = o3d.core.Tensor(points)
    scene.compute_distance(query[:1], nthreads=threads)  # the tree is built with the first query
    build = time.perf_counter() - start

    def median(run):
        seconds = []
        for _ in range(repetitions):
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)

    unsigned = median(lambda: scene.compute_distance(query, nthreads=threads))
    signed = median(lambda: scene.compute_signed_distance(query, nthreads=threads))
    scene.compute_signed_distance(query, nthreads=threads).numpy().tofile(os.path.join(folder, "open3d.f32"))
    return dict(version="open3d " + o3d.__version__, build_seconds=build, unsigned_seconds=unsigned, signed_seconds=signed)


def run_json(command, cores):
    env = dict(os.environ, OMP_NUM_THREADS=str(len(cores)))
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def difference(folder, name):
    """Largest difference of the magnitudes, over the diagonal; how many signs differ away from the surface."""
    vertices, triangles, _ = load(folder)
    used = vertices[np.unique(triangles)]
    diagonal = np.linalg.norm(used.max(0) - used.min(0))
    ours, theirs = (np.fromfile(os.path.join(folder, file), np.float32) for file in ("distance.f32", name))
    signs = int(np.sum((ours < 0) != (theirs < 0), where=np.abs(ours) > 1e-5 * diagonal)) if (theirs < 0).any() else None
    return float(np.max(np.abs(np.abs(ours) - np.abs(theirs)))) / diagonal, signs


def compare(arguments):
    cores = sorted(os.sched_getaffinity(0))[:arguments.threads]
    folder, tail = arguments.folder, f":t{arguments.threads}:r{arguments.repetitions}"
    sides = {"grove": [arguments.grove, "bench", "sdf:" + arguments.problem + tail, folder, "--json"]}
    if not arguments.no_open3d:
        sides["open3d"] = [sys.executable, os.path.abspath(__file__), "open3d", folder, str(arguments.threads), str(arguments.repetitions)]
    if arguments.cgal:
        sides["cgal"] = [arguments.cgal, folder, str(arguments.threads)]
    runs = {side: [] for side in sides}
    for _ in range(arguments.rounds):
        for side, command in sides.items():
            runs[side].append(run_json(command, cores))
    median = {side: {key: statistics.median(run[key] for run in of_side) for key, value in of_side[0].items() if isinstance(value, (int, float))}
              for side, of_side in runs.items()}
    print(f"{arguments.problem}, {int(median['grove']['triangles'])} triangles, {arguments.threads} threads")
    for side, of_side in median.items():
        row = [f"{key[:-8]} {of_side[key]:.3f} s" + (f" ({of_side[key] / median['grove'][key]:.1f}x)" if side != "grove" and key in median["grove"] else "")
               for key in ("build_seconds", "build_signed_seconds", "unsigned_seconds", "signed_seconds", "signed_band_seconds") if key in of_side]
        print(f"  {runs[side][0].get('version', side):14s} " + ", ".join(row))
        if side != "grove":
            worst, signs = difference(folder, side + ".f32")
            print(f"  {'':14s} largest difference from grove {worst:.2g} diagonals" + ("" if signs is None else f", {signs} other signs"))
    grove = runs["grove"][0]
    print(f"  grove: {grove['bytes_per_triangle']:.0f} bytes a triangle, {grove['bytes_per_triangle_signed']:.0f} with winding numbers; "
          f"largest error against all triangles {grove['error_over_diagonal']:.2g} diagonals")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True, dest="verb")
    verb = verbs.add_parser("prepare")
    verb.add_argument("mesh")
    verb.add_argument("folder")
    verb.add_argument("--triangles", type=int, default=750000, help="at least")
    verb = verbs.add_parser("open3d")
    verb.add_argument("folder")
    verb.add_argument("threads", type=int)
    verb.add_argument("repetitions", type=int)
    verb = verbs.add_parser("compare")
    verb.add_argument("folder")
    verb.add_argument("--problem", choices=("points", "grid"), default="points")
    verb.add_argument("--threads", type=int, default=1)
    verb.add_argument("--rounds", type=int, default=3, help="processes of each side")
    verb.add_argument("--repetitions", type=int, default=3, help="in each process")
    verb.add_argument("--grove", default=os.path.join(ROOT, "build", "release", "grove"))
    verb.add_argument("--no-open3d", action="store_true")
    verb.add_argument("--cgal")
    arguments = parser.parse_args()
    if arguments.verb == "prepare":
        prepare(arguments)
    elif arguments.verb == "open3d":
        print(json.dumps(run_open3d(arguments.folder, arguments.threads, arguments.repetitions)))
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
