#!/usr/bin/env python3
"""grove's VTU reader against meshio and VTK: one run, the same files, the same cores, one table.

    mesh_vtu.py --python build/venv/bin/python --folder /tmp/mesh_bench          files of 20 to 140 MB, a few minutes

The files, raw and base64, with and without zlib, are made by grove in the folder and stay there. Every side runs in processes of its own, in turn; medians over
rounds of the median of five reads. A row's ratio is the time of the peer over that of grove. All sides read everything: points, cells, data.
VTK's reader uses one thread; meshio too. Both peers check the sums of points and connectivity, grove every bit.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

PEER = """
import json, resource, statistics, sys, time
import numpy as np
side_name, path, side = sys.argv[1], sys.argv[2], int(sys.argv[3])
if side_name == "meshio":
    import meshio
    version = meshio.__version__
    def read():
        mesh = meshio.read(path)
        return mesh, mesh.points, mesh.cells[0].data
else:
    import vtk
    from vtk.util.numpy_support import vtk_to_numpy
    version = vtk.vtkVersion().GetVTKVersion()
    def read():
        reader = vtk.vtkXMLUnstructuredGridReader()
        reader.SetFileName(path)
        reader.Update()
        grid = reader.GetOutput()
        return grid, vtk_to_numpy(grid.GetPoints().GetData()), vtk_to_numpy(grid.GetCells().GetConnectivityArray())
seconds = []
for _ in range(5):
    start = time.perf_counter()
    mesh, points, ids = read()
    seconds.append(time.perf_counter() - start)
    n = side + 1
    correct = len(points) == n**3 and int(ids.sum()) == 8 * side**3 * (n**3 - 1) // 2 and abs(float(points.sum(dtype="f8")) - 0.15 * side * n**3) < 1e-3 * n**3
    del mesh, points, ids
print(json.dumps({"median_seconds": statistics.median(seconds), "correct": correct, "version": version, "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def run(command, n_threads, warm):
    env = dict(os.environ, OMP_NUM_THREADS=str(n_threads), OMP_WAIT_POLICY="passive", VTK_SMP_MAX_THREADS=str(n_threads))
    if warm:  # freed blocks stay in the process, as they do in grove (grv_memory_keep): nobody waits for fresh pages
        env.update(MALLOC_MMAP_THRESHOLD_="40000000000", MALLOC_TRIM_THRESHOLD_="400000000000")
    cpus = sorted(os.sched_getaffinity(0))[:n_threads]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode:
        sys.exit(f"{command[:3]}: exit status {done.returncode}")
    return json.loads(done.stdout)


def measure(problem, n_threads, arguments):
    encoding, compressor = problem
    path = os.path.join(arguments.folder, f"{encoding}_{compressor}_{arguments.side}.vtu")
    commands = {"grove": [arguments.grove, "bench", f"mesh:{encoding}:{compressor}:{arguments.side}:t{n_threads}", arguments.folder, "--json"]}
    for peer in ("meshio", "vtk"):
        commands[peer] = [arguments.python, "-c", PEER, peer, path, str(arguments.side)]
    runs = {side: [] for side in commands}
    for number in range(arguments.rounds):
        order = list(commands)
        for side in order if number == 0 else order[number % 3:] + order[:number % 3]:  # grove first: it makes the file
            runs[side].append(run(commands[side], n_threads, not arguments.default_allocator))
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--grove", default=os.path.join(ROOT, "build/release/grove"))
    parser.add_argument("--folder", default="/tmp/mesh_bench")
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--default-allocator", action="store_true", help="the peers as most users have them: fresh pages for every read; grove keeps its own")
    arguments = parser.parse_args()
    print(f"{'file':14s} {'threads':>7s} {'MB':>6s} {'grove':>9s} {'meshio':>9s} {'VTK':>9s}   ratios")
    for n_threads in [int(t) for t in arguments.threads.split(",")]:
        for problem in [(e, c) for e in ("raw", "base64") for c in ("none", "zlib")]:
            runs = measure(problem, n_threads, arguments)
            seconds = {side: statistics.median(r["median_seconds"] for r in of_side) for side, of_side in runs.items()}
            wrong = [side for side, of_side in runs.items() if not all(r["correct"] for r in of_side)]
            print(f"{'-'.join(problem):14s} {n_threads:7d} {runs['grove'][0]['file_bytes'] / 1e6:6.0f} {seconds['grove']:8.3f}s {seconds['meshio']:8.3f}s {seconds['vtk']:8.3f}s"
                  f"   meshio {seconds['meshio'] / seconds['grove']:5.1f}  VTK {seconds['vtk'] / seconds['grove']:5.1f}{'   WRONG: ' + ', '.join(wrong) if wrong else ''}", flush=True)
    memory = {side: max(r["peak_rss_bytes"] for r in runs[side]) for side in ("meshio", "vtk")}
    grove = runs["grove"][0]
    print(f"arrays {grove['mesh_bytes'] / 1e6:.0f} MB; most resident: meshio {memory['meshio'] / 1e6:.0f} MB, VTK {memory['vtk'] / 1e6:.0f} MB; "
          f"grove holds {(grove['peak_bytes'] - grove['mesh_bytes']) / 1e6:.0f} MB with the copy that it compares taken off")
    print(f"meshio {runs['meshio'][0]['version']}, VTK {runs['vtk'][0]['version']}")


if __name__ == "__main__":
    main()
