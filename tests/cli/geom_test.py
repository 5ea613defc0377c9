"""The commands of `grove geom` against brute force in NumPy, and against shapes that the test makes itself.

usage: geom_test.py SCENARIO, in the environment of tests/cli (GROVE_TEST_PATH). Exit status 77: cannot be tried here.
"""

import json
import resource
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

from commands_test import SKIPPED, expect, fail, files, grove, main, one_line, start, wait_until

try:
    import numpy as np
    from numcodecs.zstd import decompress
except ImportError:
    print("NumPy and numcodecs are missing: build/venv, which ./check makes, has them")
    sys.exit(SKIPPED)

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"


def array(path):
    """An array as grove writes it: little-endian chunks packed by Zstandard (zarr-python would take a second to be loaded)."""
    document = json.loads(Path(path, "zarr.json").read_text())
    shape, chunk = document["shape"], document["chunk_grid"]["configuration"]["chunk_shape"]
    expect([c["name"] for c in document["codecs"]] == ["bytes", "zstd"] and document["fill_value"] == 0, document)
    out = np.zeros(shape, document["data_type"])
    for at in np.ndindex(*(-(-n // m) for n, m in zip(shape, chunk))):
        file = Path(path, "c", *map(str, at))
        if file.exists():
            block = np.frombuffer(decompress(file.read_bytes()), out.dtype).reshape(chunk)
            where = tuple(slice(i * m, min((i + 1) * m, n)) for i, m, n in zip(at, chunk, shape))
            out[where] = block[tuple(slice(0, w.stop - w.start) for w in where)]
    return out


def dimensions(path):
    return json.loads(Path(path, "zarr.json").read_text()).get("dimension_names")


def result(arguments):
    return json.loads(grove([*arguments, "--json"]).stdout)


def same(found, expected, what):
    expect(found.dtype == expected.dtype and found.shape == expected.shape, (what, found.dtype, found.shape, expected.dtype, expected.shape))
    expect(np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"), f"{what} differs in {(found != expected).sum()} places")


def near(found, expected, tolerance, what):
    expect(np.shape(found) == np.shape(expected), (what, np.shape(found), np.shape(expected)))
    error = np.abs(np.asarray(found, float) - expected).max()
    expect(error <= tolerance, f"{what}: at most {tolerance} expected, {error} found")


# ---- shapes ----


def icosphere(level, centre=(0, 0, 0), radius=1):
    """Corners [n, 3] and triangles [m, 3] of a ball, its corners on the sphere."""
    g = (1 + 5**0.5) / 2
    corners = [np.array(p, float) / np.hypot(1, g) for p in
               [(-1, g, 0), (1, g, 0), (-1, -g, 0), (1, -g, 0), (0, -1, g), (0, 1, g), (0, -1, -g), (0, 1, -g), (g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)]]
    faces = [(0, 11, 5), (0, 5, 1), (0, 1, 7), (0, 7, 10), (0, 10, 11), (1, 5, 9), (5, 11, 4), (11, 10, 2), (10, 7, 6), (7, 1, 8),
             (3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8), (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10), (8, 6, 7), (9, 8, 1)]
    for _ in range(level):
        middles = {}

        def middle(a, b):
            key = (min(a, b), max(a, b))
            if key not in middles:
                m = corners[a] + corners[b]
                middles[key] = len(corners)
                corners.append(m / np.linalg.norm(m))
            return middles[key]

        faces = [t for a, b, c in faces for ab, bc, ca in [(middle(a, b), middle(b, c), middle(c, a))]
                 for t in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))]
    return np.array(corners) * radius + centre, np.array(faces)


def write_stl(path, corners, faces):
    """Binary; returns the corners of each triangle as the file holds them, in double."""
    data = np.zeros(len(faces), np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]))
    data["corners"] = corners[faces]
    Path(path).write_bytes(b" " * 80 + struct.pack("<I", len(faces)) + data.tobytes())
    return data["corners"].astype(float)


def write_obj(path, corners, faces):
    """Corners in decimal, exactly."""
    Path(path).write_text("".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in corners.tolist()) + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces))


# ---- brute force ----


def closest_points(points, triangles):
    """Closest point of each triangle to each point, [n, m, 3]: the plane's if it is inside, else the nearest of three edges."""
    a, b, c = (triangles[None, :, k] for k in range(3))
    p = points[:, None]
    normal = np.cross(b - a, c - a)
    foot = p - ((p - a) * normal).sum(-1, keepdims=True) / (normal * normal).sum(-1, keepdims=True) * normal
    best, least = foot, np.where(np.all([(np.cross(v - u, foot - u) * normal).sum(-1) >= 0 for u, v in ((a, b), (b, c), (c, a))], axis=0),
                                 ((foot - p) ** 2).sum(-1), np.inf)
    for u, v in ((a, b), (b, c), (c, a)):
        t = np.clip(((p - u) * (v - u)).sum(-1) / ((v - u) ** 2).sum(-1), 0, 1)[..., None]
        q = u + t * (v - u)
        d = ((q - p) ** 2).sum(-1)
        best = np.where((d < least)[..., None], q, best)
        least = np.minimum(d, least)
    return best


def winding(points, triangles):
    """Generalised winding number, a sum of solid angles (van Oosterom and Strackee)."""
    a, b, c = (triangles[None, :, k] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
    numerator = (a * np.cross(b, c)).sum(-1)
    denominator = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    return np.arctan2(numerator, denominator).sum(-1) / (2 * np.pi)


def signed_distances(points, triangles):
    """By all triangles, a few points at a time."""
    found = []
    for part in np.array_split(points, max(1, len(points) // 200)):
        d = np.sqrt(((closest_points(part, triangles) - part[:, None]) ** 2).sum(-1)).min(1)
        found.append(np.where(winding(part, triangles) > 0.5, -d, d))
    return np.concatenate(found)


def squared_distances(queries, points):
    """In the type of the points, in the order of operations that grove documents."""
    d = (queries[:, None] - points[None]) ** 2
    return (d[..., 0] + d[..., 1]) + d[..., 2] if points.shape[1] == 3 else d[..., 0] + d[..., 1]


def png_pixels(path):
    """[height, width, 3] of an RGB PNG file."""
    data, at, packed = Path(path).read_bytes(), 8, b""
    expect(data.startswith(b"\x89PNG\r\n\x1a\n"), f"{path} is no PNG")
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        packed += body if kind == b"IDAT" else b""
        at += 12 + n
    raw, row, out = zlib.decompress(packed), bytearray(3 * width + 3), []
    for y in range(height):  # three zeros stand before each row, and a row of zeros above the first one
        kind, above = raw[y * (3 * width + 1)], row
        row = bytearray(3) + raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)]
        if kind == 2:
            row = bytearray((np.frombuffer(row, np.uint8) + np.frombuffer(above, np.uint8)).tobytes())
        for i in range(3, len(row)) if kind in (1, 3, 4) else ():
            left, up, corner = row[i - 3], above[i], above[i - 3]
            if kind == 4:
                pa, pb, pc = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                guess = left if pa <= pb and pa <= pc else up if pb <= pc else corner
            else:
                guess = left if kind == 1 else (left + up) // 2
            row[i] = (row[i] + guess) & 255
        out.append(row[3:])
    return np.frombuffer(b"".join(out), np.uint8).reshape(height, width, 3).astype(int)


# ---- scenarios ----


def info():
    """Figures of a ball and of surfaces broken on purpose; files that are none do not hide the others."""
    corners, faces = icosphere(3, (1, 2, 3), 2)
    triangles = write_stl("ball.stl", corners, faces)
    a, b, c = (triangles[:, k] for k in range(3))
    (ball,) = result(["geom", "info", "ball.stl"])
    expect(ball["format"] == "STL" and ball["point_type"] == "float32" and ball["points"] == 3 * len(faces), ball)
    expect(ball["cell_types"] == {"triangle": len(faces)}, ball)
    near(ball["lower"] + ball["upper"], np.concatenate([triangles.min((0, 1)), triangles.max((0, 1))]), 0, "box")
    s = ball["surface"]
    expect(s["watertight"] and s["distinct_points"] == len(corners) and s["edges"] == 3 * len(faces) // 2 and s["parts"] == 1, s)
    expect(s["open_edges"] == s["degenerate"] == s["duplicates"] == s["opposed_edges"] == s["against_their_neighbours"] == 0, s)
    near(s["area"], np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2, 1e-9, "area")
    near(s["volume"], (a * np.cross(b, c)).sum() / 6, 1e-9, "volume")
    near(s["volume_centre"], (1, 2, 3), 1e-6, "centre")
    text = grove(["geom", "info", "ball.stl"]).stdout
    expect("watertight       yes" in text and "1280 triangle" in text and "(of the volume)" in text, text)

    # two balls, one turned inside out by half; a face twice, one without area, one missing; one point is NaN
    more, _ = icosphere(3, (9, 0, 0), 1)
    both = np.concatenate([faces, faces + len(corners)])
    both[:10] = both[:10, ::-1]
    both = np.concatenate([both[:-1], both[5:6, [1, 2, 0]], [[0, 0, 1]]])
    points = np.concatenate([corners, more, [[np.nan, 0, 0]]])
    write_obj("broken.obj", points, both)
    (broken,) = result(["geom", "info", "broken.obj"])
    s = broken["surface"]
    expect(broken["format"] == "OBJ" and broken["not_finite"] == 1 and broken["point_type"] == "float64", broken)
    expect(s["degenerate"] == 1 and s["duplicates"] == 1 and s["open_edges"] == 3 and s["parts"] == 2, s)
    expect(s["against_their_neighbours"] == 10 and s["opposed_edges"] > 0 and not s["watertight"], s)
    text = grove(["geom", "info", "broken.obj"]).stdout
    expect("1 coordinates not finite" in text and "10 triangles to turn over" in text and "volume" not in text.replace("(of the volume)", ""), text)

    # arrays of data, and their ranges
    Path("data.vtk").write_text("# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n0 0 0 1 0 0 0 1 0 0 0 1\n"
                                "CELLS 2 7\n4 0 1 2 3\n1 2\nCELL_TYPES 2\n10\n1\nPOINT_DATA 4\nVECTORS U float\n1 2 3 -1 5 6 7 8 nan 0 0 0\n"
                                "CELL_DATA 2\nSCALARS id int 1\nLOOKUP_TABLE default\n7 -3\n")
    (data,) = result(["geom", "info", "data.vtk"])
    expect(data["kind"] == "cells" and data["cell_types"] == {"vertex": 1, "tetra": 1} and "surface" not in data, data)
    u, number = data["point_data"][0], data["cell_data"][0]
    expect(u["name"] == "U" and u["components"] == 3 and u["ranges"] == [[-1, 7], [0, 8], [0, 6]] and u["not_finite"] == 1, u)
    expect(number["type"] == "int32" and number["ranges"] == [[-3, 7]] and number["tuples"] == 2, number)
    Path("all.pvd").write_text('<VTKFile type="Collection"><Collection><DataSet timestep="0.5" file="data.vtk"/><DataSet timestep="1" file="no.vtk"/></Collection></VTKFile>')
    (listed,) = result(["geom", "info", "all.pvd"])
    expect([(f["path"], f["time"], f["exists"]) for f in listed["files"]] == [("data.vtk", 0.5, True), ("no.vtk", 1, False)], listed)

    Path("junk.stl").write_bytes(b"nothing")
    done = grove(["geom", "info", "junk.stl", "ball.stl", "absent.stl", "--json"], exit_code=1)
    found = json.loads(done.stdout)
    expect("error" in found[0] and found[1]["surface"]["watertight"] and "No such file" in found[2]["error"], found)
    expect("2 of 3 files could not be read" in done.stderr, done.stderr)
    one_line(grove(["geom", "info", "absent.stl"], exit_code=1), "open absent.stl: No such file")


def convert():
    """From format to format the triangles stay; repairs do what they say; cell data follow their cells."""
    corners, faces = icosphere(1, (1, 2, 3))
    triangles = write_stl("ball.stl", corners, faces).astype(np.float32)
    chain = ["ball.stl", "a.vtp", "b.vtu", "c.stl", "d.vtp", "e.zarr"]
    options = [[], ["zlib=6", "encoding=base64"], [], ["zlib=1"], []]
    for source, target, keys in zip(chain, chain[1:], options):
        grove(["geom", "convert", source, target, *keys])
    same(array("e.zarr/points")[array("e.zarr/triangles")], triangles, "triangles")
    grove(["geom", "convert", "ball.stl", "text.stl", "encoding=ascii"])
    expect(Path("text.stl").read_text().startswith("solid"), "text.stl is not text")
    grove(["geom", "convert", "text.stl", "text.zarr"])  # decimal numbers, which become doubles
    same(array("text.zarr/points")[array("text.zarr/triangles")].astype(np.float32), triangles, "triangles of the text")

    # welded, moved, scaled
    report = result(["geom", "convert", "ball.stl", "welded.zarr", "weld=true", "scale=0.5,2,1", "translate=1,0,-3"])
    expect(report["points"] == len(corners) and report["points_joined"] == 3 * len(faces) - len(corners), report)
    moved = (triangles.astype(float) * (0.5, 2, 1) + (1, 0, -3)).astype(np.float32)
    same(array("welded.zarr/points")[array("welded.zarr/triangles")], moved, "moved triangles")

    # repaired: copies and faces without area dropped, ten turned back, the whole turned outward
    bad = np.concatenate([faces[:, ::-1], faces[3:5], [[1, 1, 2]]])
    bad[:10] = bad[:10, ::-1]
    write_obj("bad.obj", corners, bad)
    report = result(["geom", "convert", "bad.obj", "good.vtp", "clean=true", "orient=outward"])
    expect(report["degenerate_dropped"] == 1 and report["duplicates_dropped"] == 2 and report["turned_over"] == len(faces) - 10, report)
    (good,) = result(["geom", "info", "good.vtp"])
    expect(good["surface"]["watertight"] and good["surface"]["volume"] > 0 and good["cells"] == len(faces), good)
    near_by = np.concatenate([corners, corners + 1e-7])
    write_obj("near.obj", near_by, np.concatenate([faces[:40], faces[40:] + len(corners)]))
    expect(result(["geom", "convert", "near.obj", "near.vtp", "weld=true", "tolerance=1e-6"])["points_joined"] == len(corners), "tolerance")

    # polygons with data: as they are, and as triangles; point data go when points are joined, with a word about it
    Path("quads.vtk").write_text("# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 7 float\n0 0 0 1 0 0 1 1 0 0 1 0 2 0 0 2 1 0 1 0 0\n"
                                 "CELLS 2 10\n4 0 1 2 3\n4 6 4 5 2\nCELL_TYPES 2\n9\n9\nPOINT_DATA 7\nSCALARS p double 1\nLOOKUP_TABLE default\n0 1 2 3 4 5 6\n"
                                 "CELL_DATA 2\nSCALARS id short 1\nLOOKUP_TABLE default\n7 -3\n")
    expect(result(["geom", "convert", "quads.vtk", "quads.vtu"])["cells"] == 2, "quads")
    expect(grove(["geom", "convert", "quads.vtk", "quads.vtp"]).stderr == "", "a warning")
    grove(["geom", "convert", "quads.vtp", "quads.zarr"])
    same(array("quads.zarr/cell_data/id"), np.array([7, 7, -3, -3], np.int16), "cell data")
    same(array("quads.zarr/point_data/p"), np.arange(7.0), "point data")
    done = grove(["geom", "convert", "quads.vtk", "joined.zarr", "weld=true"])
    one_line(done, "point", "1 array")
    expect(not Path("joined.zarr/point_data").exists() and len(array("joined.zarr/points")) == 6, "welded quads")
    Path("image.vtk").write_text("# vtk DataFile Version 3.0\nx\nASCII\nDATASET STRUCTURED_POINTS\nDIMENSIONS 2 3 1\nORIGIN 1 2 3\nSPACING 1 1 2\n"
                                 "POINT_DATA 6\nSCALARS p float 1\nLOOKUP_TABLE default\n0 1 2 3 4 5\n")
    grove(["geom", "convert", "image.vtk", "image.vti", "scale=2", "translate=0,0,1"])
    grove(["geom", "convert", "image.vti", "image.zarr"])
    same(array("image.zarr/point_data/p"), np.arange(6, dtype=np.float32).reshape(1, 3, 2), "image")
    kept = json.loads(Path("image.zarr/zarr.json").read_text())["attributes"]["grove_mesh"]
    expect(kept["origin"] == [2, 4, 7] and kept["spacing"] == [2, 2, 4] and kept["kind"] == "image", kept)

    # cells with a volume: the faces that one of them only has; a line among them is left out
    Path("cells.vtk").write_text("# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 12 float\n"
                                 + "".join(f"{i % 2} {i // 2 % 2} {i // 4}\n" for i in range(12))
                                 + "CELLS 3 21\n8 0 1 2 3 4 5 6 7\n8 4 5 6 7 8 9 10 11\n2 0 1\nCELL_TYPES 3\n11\n11\n3\n"
                                 "CELL_DATA 3\nSCALARS id short 1\nLOOKUP_TABLE default\n1 2 3\n")
    done = grove(["geom", "convert", "cells.vtk", "hull.vtp"])
    one_line(done, "1 cells without a volume")
    expect("10 cells, the outer surface of 2" in done.stdout, done.stdout)
    grove(["geom", "convert", "cells.vtk", "hull.stl"])
    grove(["geom", "convert", "cells.vtk", "hull.zarr", "clean=true"])
    for name, n_cells in (("hull.vtp", 10), ("hull.stl", 20)):
        (hull,) = result(["geom", "info", name])
        expect(hull["cells"] == n_cells and (hull["surface"]["volume"] == 2 and hull["surface"]["watertight"]), hull)
    same(array("hull.zarr/cell_data/id"), np.repeat(np.array([1, 2], np.int16), 10), "cell data of the hull")

    # STL is known by its content; what is neither is told
    shutil.copy("ball.stl", "named_wrongly.obj")
    expect(result(["geom", "info", "named_wrongly.obj"])[0]["format"] == "STL", "STL under another name")
    Path("cut.obj").write_bytes(Path("ball.stl").read_bytes()[:1000])
    one_line(grove(["geom", "info", "cut.obj"], exit_code=1), "OBJ is text, binary data found")

    for words, parts in ((["ball.stl", "a.vtp"], ["'a.vtp' is there already"]), (["ball.stl", "x.obj"], ["x.obj", "'.obj' found"]),
                         (["ball.stl", "x.vti"], ["not this kind of mesh"]), (["absent.obj", "x.vtp"], ["absent.obj: No such file"]),
                         (["ball.stl", "nowhere/x.vtp"], ["no folder 'nowhere'"]),
                         (["image.vtk", "x.vtp", "weld=true"], ["is a grid"]), (["ball.stl", "x.vtp", "tolerance=1"], ["weld=true"]),
                         (["ball.stl", "x.vtp", "encoding=ascii"], ["binary or base64"]), (["ball.stl", "x.zarr", "scale=1,2"], ["one or three"])):
        one_line(grove(["geom", "convert", *words], exit_code=1), *parts)
    before = Path("a.vtp").read_bytes()
    grove(["geom", "convert", "near.obj", "a.vtp", "overwrite=true"])
    expect(Path("a.vtp").read_bytes() != before, "a.vtp was not replaced")
    grove(["geom", "convert", "near.obj", "e.zarr", "--overwrite"])
    expect(len(array("e.zarr/points")) == len(near_by), "e.zarr was not replaced")
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("four years")
    one_line(grove(["geom", "convert", "ball.stl", "mine", "overwrite=true"], exit_code=1), "not replaced")
    expect(Path("mine/thesis.txt").exists() and not list(Path().glob("x.*")) and not list(Path().rglob("*partial*")), "what is left")


def sdf():
    """Grids: every value against all triangles; the same as VTI, on any threads, in a band; normalised; a picture the right way round."""
    corners, faces = icosphere(1, (0.3, -0.2, 5), 1.5)
    triangles = write_stl("ball.stl", corners, faces)
    report = result(["geom", "sdf", "ball.stl", "ball.zarr", "grid=13,12,11", "fields=closest,triangle,barycentric,winding", "unit=m", "threads=1"])
    d, x, y, z = (array(f"ball.zarr/{name}") for name in ("distance", "x", "y", "z"))
    points = np.stack(np.meshgrid(x, y, z, indexing="ij"), -1)
    lower, upper = triangles.min((0, 1)), triangles.max((0, 1))
    padding = 0.2 * (upper - lower).max()
    near(points[0, 0, 0], lower - padding, 1e-12, "lower corner")
    near(points[-1, -1, -1], upper + padding, 1e-12, "upper corner")
    expected = signed_distances(points.reshape(-1, 3), triangles).reshape(d.shape)
    expect(d.dtype == np.float32 and d.shape == (13, 12, 11), d.shape)
    near(d, expected, 4e-7, "distance")
    expect(report["inside"] == (d < 0).sum() > 100 and report["open_edges"] == 0 and report["grid"] == [13, 12, 11], report)
    near([report["min"], report["max"]], [d.min(), d.max()], 0, "range")
    near(report["origin"] + report["spacing"], [x[0], y[0], z[0], x[1] - x[0], y[1] - y[0], z[1] - z[0]], 1e-12, "grid")
    attributes = json.loads(Path("ball.zarr/distance/zarr.json").read_text())
    expect(attributes["dimension_names"] == ["x", "y", "z"] and attributes["attributes"]["units"] == "m" and attributes["attributes"]["spacing"] == report["spacing"],
           attributes)
    closest, number, weights, w = (array(f"ball.zarr/{name}") for name in ("closest", "triangle", "barycentric", "winding"))
    near(np.linalg.norm(closest - points, axis=-1), np.abs(expected), 2e-6, "closest points")
    near((weights[..., None] * triangles[number]).sum(-2), closest, 2e-6, "barycentric weights")
    near(w, np.where(expected < 0, 1, 0), 1e-2, "winding numbers")

    # the same by other ways
    grove(["geom", "sdf", "ball.stl", "two.zarr", "grid=13,12,11", "threads=2"])
    same(array("two.zarr/distance"), d, "distance of two threads")
    grove(["geom", "sdf", "ball.stl", "ball.vti", "grid=13,12,11", "fields=closest"])
    grove(["geom", "convert", "ball.vti", "back.zarr"])
    same(array("back.zarr/point_data/distance"), d.transpose(2, 1, 0), "distance in the VTI file")
    same(array("back.zarr/point_data/closest"), closest.transpose(2, 1, 0, 3), "closest points in the VTI file")
    (vti,) = result(["geom", "info", "ball.vti"])
    near(vti["lower"] + vti["upper"], [x[0], y[0], z[0], x[-1], y[-1], z[-1]], 1e-12, "box of the VTI file")
    grove(["geom", "sdf", "ball.stl", "band.zarr", "grid=13,12,11", "band=0.5", "fields=exact"])
    band, exact = array("band.zarr/distance"), array("band.zarr/exact")
    expect(0 < exact.sum() < exact.size and np.array_equal(band[exact == 1], d[exact == 1]), "inside the band")
    expect((np.abs(band) >= np.abs(d) - 1e-6).all() and (np.sign(band) == np.sign(d)).all() and np.abs(band - d).max() < 0.2, "outside of the band")
    expect((exact[np.abs(d) < 0.5] == 1).all(), "the band is not all there")
    grove(["geom", "sdf", "ball.stl", "pseudo.zarr", "grid=13,12,11", "sign=pseudonormal", "type=float64"])
    near(array("pseudo.zarr/distance"), expected, 1e-12, "distance in double")
    grove(["geom", "sdf", "ball.stl", "unsigned.zarr", "grid=13,12,11", "sign=unsigned", "max_distance=0.4"])
    u = array("unsigned.zarr/distance")
    expect(np.isnan(u[np.abs(expected) > 0.41]).all() and np.array_equal(u[np.abs(expected) < 0.39], np.abs(d[np.abs(expected) < 0.39])), "max_distance")

    # one number: the same spacing on all axes, in the middle of the box; a box becomes [-1, 1] on each axis
    one = result(["geom", "sdf", "ball.stl", "one.zarr", "grid=21", "box=-2,-2,3,2,2,8"])
    expect(one["grid"] == [17, 17, 21] and one["spacing"] == [0.25] * 3 and one["origin"] == [-2, -2, 3], one)
    flat = result(["geom", "sdf", "ball.stl", "flat.zarr", "grid=5,5,1", "box=-2,-2,5,2,2,5"])
    expect(flat["origin"] == [-2, -2, 5] and array("flat.zarr/distance").shape == (5, 5, 1), flat)
    grove(["geom", "sdf", "ball.stl", "normal.zarr", "grid=9,10,11", "box=-2,-3,3,2,2,8", "normalize=true"])
    to_unit = lambda p: 2 * (p - (-2, -3, 3)) / (4, 5, 5) - 1
    cube = np.stack(np.meshgrid(*(np.linspace(-1, 1, n) for n in (9, 10, 11)), indexing="ij"), -1)
    near(array("normal.zarr/distance"), signed_distances(cube.reshape(-1, 3), to_unit(triangles)).reshape(9, 10, 11), 4e-7, "normalised distance")

    # normals inwards
    inside_out = write_stl("inwards.stl", corners, faces[:, ::-1])
    done = grove(["geom", "sdf", "inwards.stl", "in.zarr", "grid=8"])
    one_line(done, "no point is inside", "either_orientation=true")
    expect(result(["geom", "sdf", "inwards.stl", "out.zarr", "grid=8", "either_orientation=true"])["inside"] > 0 and len(inside_out), "either orientation")
    write_stl("open.stl", corners, faces[1:])
    one_line(grove(["geom", "sdf", "open.stl", "open.zarr", "grid=8", "sign=pseudonormal"]), "3 open edges")

    # in the picture the ball is low and to the left
    keys = ["grid=4", "box=-2,-3,3,6,3,9", "picture=ball.png"]
    grove(["geom", "sdf", "ball.stl", "picture.zarr", *keys, "slice=y", "position=-0.2"])
    rgb = png_pixels("ball.png")
    frame = np.argwhere((rgb == (38, 38, 42)).all(-1).sum(0) > 300)[:, 0]  # columns of the frame
    left, right = frame[0] + 1, frame[1] - 1
    top = np.argwhere((rgb[:, left:right] == (38, 38, 42)).all(-1).all(1))[:, 0]
    size = right - left
    where = lambda px, pz: (top[-1] - int((pz - 3) / 8 * size), left + int((px + 2) / 8 * size))
    at = lambda px, pz: rgb[where(px, pz)]
    darkest = lambda px, pz: min(rgb[where(px, pz)[0] + j, where(px, pz)[1] + i].max() for i in range(-4, 5) for j in range(-4, 5))
    expect(at(0.3, 5)[2] > at(0.3, 5)[0] + 30, f"blue expected in the ball's middle, {at(0.3, 5)} found")
    expect(at(5, 8)[0] > at(5, 8)[2] + 100 and at(5, 5)[0] > at(5, 5)[2], "red expected far from the ball")
    expect(all(darkest(*on) < 80 for on in ((0.3, 6.45), (-1.15, 5), (1.75, 5))), "a line expected on the surface")
    expect(darkest(0.3, 8) > 120 and darkest(0.3, 5) > 120, "no line expected above the ball and in it")

    for keys, part in ((["grid=3,3"], "one or three"), (["box=0,0,0,1,1"], "six numbers"), (["box=0,0,0,1,-1,1"], "axis y"), (["band=0.001"], "longest spacing"),
                       (["fields=closest,closest"], "twice"), (["fields=shape"], "'shape' found"), (["fields=exact"], "band"), (["picture=x.jpg"], ".png"),
                       (["picture=ball.png"], "is there already"), (["grid=2,2,2", "box=0,0,0,0,1,1"], "no size along x"), (["normalize=true", "box=0,0,0,1,1,0", "grid=2,2,1"], "along z"),
                       (["sign=unsigned", "fields=winding"], "sign=winding"), (["grid=1000000000,1000000000,1"], "too many")):
        one_line(grove(["geom", "sdf", "ball.stl", "x.zarr", *keys], exit_code=1), part)
    write_obj("nan.obj", np.array([[0, 0, 0], [1, 0, 0], [np.nan, 1, 0]]), np.array([[0, 1, 2]]))
    write_obj("empty.obj", corners, faces[:0])
    for name, part in (("nan.obj", "clean=true"), ("empty.obj", "no triangles"), ("ball.vti", "a regular grid"), ("ball.zarr", "a folder found"), ("none.stl", "No such file")):
        one_line(grove(["geom", "sdf", name, "x.zarr"], exit_code=1), part)
    one_line(grove(["geom", "sdf", "ball.stl", "ball.zarr"], exit_code=1), "overwrite=true")
    one_line(grove(["geom", "sdf", "ball.stl", "x.vtp"], exit_code=1), ".vti expected")
    expect(not Path("x.zarr").exists() and not list(Path().rglob("*partial*")), "something is left")


def sdf_points():
    """Scattered points of either type, from any file that has points."""
    corners, faces = icosphere(1, (5, 0, 0), 2)
    write_obj("ball.obj", corners, faces)
    rng = np.random.default_rng(1)
    points = rng.uniform(-3, 3, (700, 3)) + (5, 0, 0)
    points[13] = np.nan
    expected = signed_distances(np.nan_to_num(points), corners[faces])
    expected[13] = np.nan
    for kind, tolerance in ((np.float64, 1e-12), (np.float32, 2e-6)):
        np.save("points.npy", points.astype(kind))
        report = result(["geom", "sdf", "ball.obj", "out.zarr", "points=points.npy", "fields=triangle", "overwrite=true"])
        d = array("out.zarr/distance")
        expect(d.dtype == kind and np.isnan(d[13]) and array("out.zarr/triangle")[13] == -1 and report["without_distance"] == 1, report)
        near(np.nan_to_num(d), np.nan_to_num(expected), tolerance, f"distance of {kind}")
    grove(["geom", "sdf", "ball.obj", "out.vtp", "points=points.npy"])
    grove(["geom", "convert", "out.vtp", "back.zarr"])
    same(array("back.zarr/point_data/distance"), d, "distance in the VTP file")
    same(array("back.zarr/points"), points.astype(np.float32), "points of the VTP file")
    near(np.abs(array_of_sdf("ball.obj", "ball.obj")).max(), 0, 1e-15, "distances of the surface's own points")
    near(np.nan_to_num(array_of_sdf("ball.obj", "back.zarr")), np.nan_to_num(d), 0, "points of a group")
    grove(["geom", "sdf", "ball.obj", "cells.zarr", "points=ball.obj", "at=cells", "fields=triangle"])
    near(array("cells.zarr/distance"), np.zeros(len(faces)), 1e-15, "distances of the surface's own centres")
    same(array("cells.zarr/triangle"), np.arange(len(faces), dtype=np.int32), "triangles at their own centres")
    np.save("flat.npy", points[:, :2])
    one_line(grove(["geom", "sdf", "ball.obj", "x.zarr", "points=flat.npy"], exit_code=1), "[n, 2] found")
    one_line(grove(["geom", "sdf", "ball.obj", "x.zarr", "points=points.npy", "band=1"], exit_code=1), "for grids")
    one_line(grove(["geom", "sdf", "ball.obj", "x.zarr", "at=cells"], exit_code=1), "points=FILE")
    one_line(grove(["geom", "sdf", "ball.obj", "x.vti", "points=points.npy"], exit_code=1), ".vtp expected")


def array_of_sdf(surface, points):
    grove(["geom", "sdf", surface, "tmp.zarr", f"points={points}", "overwrite=true"])
    return array("tmp.zarr/distance")


def clouds():
    """Points and queries of both types and dimensions, a lattice among them: many ties."""
    rng = np.random.default_rng(7)
    yield rng.uniform(-1, 1, (400, 3)).astype(np.float32), rng.uniform(-1.2, 1.2, (150, 3)).astype(np.float32)
    for kind, dimension in ((np.float32, 2), (np.float64, 3)):
        lattice = np.stack(np.meshgrid(*[np.arange(6)] * dimension, indexing="ij"), -1).reshape(-1, dimension).astype(kind) / 4
        yield lattice, lattice[::-1].copy()


def knn():
    """Indices and distances of brute force with the documented expression, bit by bit."""
    for points, queries in clouds():
        np.save("p.npy", points)
        np.save("q.npy", queries)
        d = squared_distances(queries, points)
        order = np.argsort(d, axis=1, kind="stable")[:, :6]
        report = result(["geom", "knn", "p.npy", "q.npy", "knn.zarr", "k=6", "overwrite=true"])
        same(array("knn.zarr/indices"), order.astype(np.int32), "indices")
        same(array("knn.zarr/distances"), np.sqrt(np.take_along_axis(d, order, 1)), "distances")
        expect(report["queries"] == len(queries) and report["type"] == str(points.dtype), report)
        own = squared_distances(points, points)
        np.fill_diagonal(own, np.inf)
        order = np.argsort(own, axis=1, kind="stable")[:, :3]
        grove(["geom", "knn", "p.npy", "self.zarr", "k=3", "exclude_self=true", "squared=true", "overwrite=true"])
        same(array("self.zarr/indices"), order.astype(np.int32), "indices without self")
        same(array("self.zarr/distances"), np.take_along_axis(own, order, 1), "squared distances")
    # fewer points than places; float points and double queries; points of a mesh
    few = np.array([[0, 0, 0], [1, 0, 0]], np.float32)
    np.save("p.npy", few)
    np.save("q.npy", np.array([[0.1, 0, 0]]))
    grove(["geom", "knn", "p.npy", "q.npy", "few.zarr", "k=4"])
    same(array("few.zarr/indices"), np.array([[0, 1, -1, -1]], np.int32), "padded indices")
    same(array("few.zarr/distances"), np.array([[0.1, 0.9, np.inf, np.inf]]), "padded distances")
    corners, faces = icosphere(1)
    write_obj("ball.obj", corners, faces)
    grove(["geom", "knn", "ball.obj", "mesh.zarr", "k=1"])
    same(array("mesh.zarr/indices")[:, 0], np.arange(len(corners), dtype=np.int32), "each point is its own nearest")
    centres = corners[faces].mean(1)
    grove(["geom", "knn", "ball.obj", "cells.zarr", "k=4", "at=cells"])
    near(array("cells.zarr/distances"), np.sqrt(np.sort(squared_distances(centres, centres), axis=1)[:, :4]), 1e-14, "distances of centres")
    grove(["geom", "convert", "ball.obj", "ball.zarr"])
    for words in (["ball.zarr", "g.zarr"], ["ball.zarr/points", "h.zarr"]):
        grove(["geom", "knn", *words, "k=1"])
        expect(files(f"{words[1]}/indices") == files("mesh.zarr/indices"), words)

    np.save("nan.npy", np.array([[0, 0, 0], [np.nan, 0, 0]]))
    np.save("flat.npy", np.zeros((3, 2)))
    np.save("line.npy", np.zeros(3))
    np.save("int.npy", np.zeros((3, 3), int))
    np.save("none.npy", np.zeros((0, 3)))
    for words, part in ((["nan.npy"], "1"), (["q.npy", "nan.npy"], "1"), (["q.npy", "flat.npy"], "3 and 2"), (["line.npy"], "[3] found"), (["int.npy"], "astype"), (["none.npy"], "no points"),
                        (["absent.npy"], "absent.npy"), (["ball.zarr/triangles"], "int64 found"), (["few.zarr"], "without an array 'points'"), (["p.npy", "q.npy", "exclude_self=true"], "QUERIES")):
        keys = [w for w in words if "=" in w]
        one_line(grove(["geom", "knn", *(w for w in words if "=" not in w), "x.zarr", *keys], exit_code=1), part)
    one_line(grove(["geom", "knn", "p.npy", "few.zarr"], exit_code=1), "'few.zarr' is there already")
    one_line(grove(["geom", "knn", "p.npy", "x.vtp"], exit_code=1), ".zarr", "'.vtp' found")
    expect(not Path("x.zarr").exists() and not list(Path().rglob("*partial*")), "something is left")


def radius():
    """Lists of all neighbours and rows of the nearest, bit by bit; grid order finds the same ones."""
    for points, queries in clouds():
        np.save("p.npy", points)
        np.save("q.npy", queries)
        d = squared_distances(queries, points)
        radii = [0.25, 0.5]
        within = [d <= points.dtype.type(r) * points.dtype.type(r) for r in radii]
        report = result(["geom", "radius", "p.npy", "q.npy", "all.zarr", "r=0.25,0.5", "overwrite=true"])
        for i, inside in enumerate(within):
            rows, columns = np.nonzero(inside)
            same(array(f"all.zarr/r{i}/offsets"), np.concatenate([[0], np.cumsum(inside.sum(1))]), "offsets")
            same(array(f"all.zarr/r{i}/indices"), columns.astype(np.int32), "indices")
            same(array(f"all.zarr/r{i}/distances"), np.sqrt(d[rows, columns]), "distances")
            expect(report["neighbours"][i] == len(rows) > 0, report)
        attributes = json.loads(Path("all.zarr/r1/zarr.json").read_text())["attributes"]
        expect(attributes["radius"] == 0.5, attributes)

        report = result(["geom", "radius", "p.npy", "q.npy", "rows.zarr", "r=0.25,0.5", "mode=nearest", "max=3,500", "squared=true", "overwrite=true"])
        for i, (inside, places) in enumerate(zip(within, (3, 500))):
            counts = np.minimum(inside.sum(1), places)
            order = np.argsort(np.where(inside, d, np.inf), axis=1, kind="stable")[:, :places]
            order = np.pad(order, ((0, 0), (0, places - order.shape[1])))
            filled = np.arange(places) < counts[:, None]
            same(array(f"rows.zarr/r{i}/counts"), counts.astype(np.int32), "counts")
            same(array(f"rows.zarr/r{i}/indices"), np.where(filled, order, 0).astype(np.int32), "rows")
            same(array(f"rows.zarr/r{i}/distances"), np.where(filled, np.take_along_axis(d, order, 1), 0).astype(points.dtype), "squared distances")
            expect(report["full_rows"][i] == (counts == places).sum() and report["neighbours"][i] == counts.sum(), report)

        grove(["geom", "radius", "p.npy", "q.npy", "grid.zarr", "r=0.5", "mode=grid_order", "max=500", "overwrite=true"])
        found, counts = array("grid.zarr/indices"), array("grid.zarr/counts")
        same(counts, within[1].sum(1).astype(np.int32), "counts in grid order")
        for q in range(len(queries)):
            expect(sorted(found[q, :counts[q]]) == list(np.nonzero(within[1][q])[0]), f"neighbours of {q} in grid order")
    grove(["geom", "radius", "p.npy", "own.zarr", "r=0"])
    same(array("own.zarr/indices"), np.arange(len(points), dtype=np.int32), "at no distance is the point itself")
    np.save("far.npy", points + 100)
    grove(["geom", "radius", "p.npy", "far.npy", "far.zarr", "r=1"])
    expect(array("far.zarr/indices").shape == (0,) and not array("far.zarr/offsets").any(), "far.zarr")
    for keys, part in (([], "r: a radius"), (["r=1", "max=3"], "mode=nearest"), (["r=1", "mode=nearest"], "max"), (["r=1,2,3", "mode=nearest", "max=1,2"], "one number or 3, one for each radius, expected, 2 found"),
                       (["r=.inf", "mode=grid_order", "max=3"], "radius 0: cells")):
        one_line(grove(["geom", "radius", "p.npy", "x.zarr", *keys], exit_code=1), part)
    expect(not Path("x.zarr").exists() and not list(Path().rglob("*partial*")), "something is left")


def many():
    """More rows than a batch holds: numbers go on from batch to batch, in lists too."""
    n, seam = (1 << 20) + 5000, 1 << 20
    points = np.random.default_rng(3).random((n, 3), np.float32)
    np.save("p.npy", points)
    some = np.r_[0, seam - 3:seam + 3, n - 1]
    d = np.concatenate([squared_distances(points[i:i + 1], points) for i in some])
    grove(["geom", "knn", "p.npy", "knn.zarr", "k=1", "exclude_self=true"])
    own = d.copy()
    own[np.arange(len(some)), some] = np.inf
    same(array("knn.zarr/indices")[some, 0], own.argmin(1).astype(np.int32), "nearest across the seam")
    fewer, r = points[:180000], np.float32(0.032)  # 25 neighbours each, more than 2^22 in all
    np.save("p.npy", fewer)
    report = result(["geom", "radius", "p.npy", "all.zarr", f"r={r}"])
    offsets, indices = array("all.zarr/offsets"), array("all.zarr/indices")
    expect(report["neighbours"] == [len(indices)] and len(indices) > 1 << 22 and offsets[-1] == len(indices) and len(offsets) == len(fewer) + 1, report)
    # batches are halved until they fit: a seam is at some power of two of rows; around 2^22 entries are chunks that two batches share
    middle = int(np.searchsorted(offsets, 1 << 22))
    for i in np.r_[0, 90000 - 2:90000 + 2, middle - 2:middle + 2, len(fewer) - 1]:
        (expected,) = np.nonzero(squared_distances(fewer[i:i + 1], fewer)[0] <= r * r)
        same(indices[offsets[i]:offsets[i + 1]], expected.astype(np.int32), f"neighbours of {i}")
    corners, faces = icosphere(0, (0.5, 0.5, 0.5), 0.4)
    triangles = write_stl("ball.stl", corners, faces)
    grove(["geom", "sdf", "ball.stl", "ball.zarr", "grid=19,260,260", "sign=unsigned", "max_distance=0.2"])
    d, axes = array("ball.zarr/distance"), [array(f"ball.zarr/{name}") for name in "xyz"]
    at = np.random.default_rng(4).integers(0, (19, 260, 260), (600, 3))
    at[:300, 0] = np.r_[[7, 8, 15, 16, 18] * 60]
    expected = np.abs(signed_distances(np.stack([axes[k][at[:, k]] for k in range(3)], -1), triangles))
    found = d[tuple(at.T)]
    expect(np.isnan(found[expected > 0.2001]).all() and (expected < 0.1999).sum() > 100, "what is far")
    near(found[expected < 0.1999], expected[expected < 0.1999], 1e-6, "distances across the seams")


def sample():
    """On the surface and uniform, inside, or as far from each other as can be; the same points for any number of them."""
    corners, faces = icosphere(1, (1, 0, 0), 2)
    triangles = write_stl("ball.stl", corners, faces)
    report = result(["geom", "sample", "ball.stl", "points.zarr", "n=20000", "seed=3"])
    points, normals, number = (array(f"points.zarr/{name}") for name in ("points", "normals", "triangle"))
    a, b, c = (triangles[:, k] for k in range(3))
    normal = np.cross(b - a, c - a)
    area = np.linalg.norm(normal, axis=1) / 2
    normal /= 2 * area[:, None]
    near(report["area"], area.sum(), 1e-9, "area")
    near(normals, normal[number], 1e-6, "normals")
    near(((points - a[number]) * normal[number]).sum(1), np.zeros(20000), 1e-6, "height over the triangle")
    expect((closest_points(points[:300].astype(float), triangles)[np.arange(300), number[:300]] - points[:300]).max() < 1e-6, "points outside of their triangles")
    expected = 20000 * area / area.sum()
    chi2 = ((np.bincount(number, minlength=len(faces)) - expected) ** 2 / expected).sum()
    expect(chi2 < len(faces) + 6 * np.sqrt(2 * len(faces)), f"not uniform: chi-square {chi2} for {len(faces)} triangles")
    grove(["geom", "sample", "ball.stl", "some.zarr", "n=70", "seed=3", "threads=1"])
    same(array("some.zarr/points"), points[:70], "the first points")
    grove(["geom", "sample", "ball.stl", "other.zarr", "n=70", "seed=4"])
    expect(not np.array_equal(array("other.zarr/points"), points[:70]), "the seed changes nothing")
    grove(["geom", "sample", "ball.stl", "some.vtp", "n=70", "seed=3"])
    grove(["geom", "convert", "some.vtp", "back.zarr"])
    same(array("back.zarr/points"), points[:70], "points of the VTP file")
    same(array("back.zarr/point_data/triangle"), number[:70], "triangles of the VTP file")
    grove(["geom", "sample", "ball.stl", "double.zarr", "n=70", "seed=3", "type=float64"])
    near(array("double.zarr/points"), points[:70].astype(float), 1e-6, "points in double")

    grove(["geom", "sample", "ball.stl", "inside.zarr", "n=3000", "kind=volume"])
    inside = array("inside.zarr/points").astype(float)
    expect((winding(inside, triangles) > 0.5).all(), "points outside")
    near(inside.mean(0), (1, 0, 0), 5 * 2 / np.sqrt(5 * 3000), "mean of the points inside")

    order, least = [0], ((points - points[0]).astype(float) ** 2).sum(1)
    for _ in range(39):
        order.append(int(least.argmax()))
        least = np.minimum(least, ((points.astype(float) - points[order[-1]]) ** 2).sum(1))
    grove(["geom", "sample", "points.zarr/points", "far.zarr", "kind=farthest", "n=40"])
    same(array("far.zarr/index"), np.array(order), "farthest points")
    same(array("far.zarr/points"), points[order], "coordinates of farthest points")
    report = result(["geom", "sample", "ball.stl", "even.zarr", "kind=farthest", "n=40", "candidates=20000", "seed=3"])
    same(array("even.zarr/points"), points[order], "farthest candidates")
    same(array("even.zarr/triangle"), number[order], "triangles of farthest candidates")
    distance = array("even.zarr/distance")
    expect(np.isinf(distance[0]) and (np.diff(distance) <= 0).all() and report["least_distance"] == distance[-1], distance)
    write_obj("flat.obj", corners * (1, 1, 0), faces)
    for words, part in ((["ball.stl", "x.zarr", "kind=farthest", "n=1000"], "240 points of the file"), (["ball.stl", "x.zarr", "candidates=5"], "kind=farthest"),
                        (["ball.stl", "x.vti"], ".vtp expected"), (["flat.obj", "x.zarr", "kind=volume"], "inside"), (["points.zarr", "x.zarr"], "a folder found")):
        one_line(grove(["geom", "sample", *words], exit_code=1), part)
    expect(not Path("x.zarr").exists() and not list(Path().rglob("*partial*")), "something is left")


def cut_short():
    """Ctrl-C, and files that may not grow: one line, nothing half-made, and what was there before is as it was."""
    corners, faces = icosphere(4)
    write_stl("ball.stl", corners, faces)
    grove(["geom", "sdf", "ball.stl", "out.zarr", "grid=8"])
    before = files("out.zarr")
    process = start(["geom", "sdf", "ball.stl", "out.zarr", "grid=300", "sign=unsigned", "max_distance=0.05", "picture=p.png", "overwrite=true", "threads=1"])
    wait_until(lambda: list(Path().glob("out.zarr.partial-*/distance/c/*/*/*")), "a chunk", process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    expect(process.returncode == 1 and "nothing is kept" in errors, errors)
    expect(files("out.zarr") == before and not list(Path().glob("*partial*")), "what is left after Ctrl-C")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    for arguments in (["sdf", "ball.stl", "out.zarr", "grid=30"], ["sdf", "ball.stl", "out.vti", "grid=30"], ["knn", "ball.stl", "knn.zarr"], ["radius", "ball.stl", "r.zarr", "r=0.1"],
                      ["sample", "ball.stl", "s.vtp"], ["convert", "ball.stl", "c.vtp"], ["convert", "ball.stl", "c.zarr"], ["sdf", "ball.stl", "p.zarr", "grid=4", "picture=p.png"]):
        one_line(grove(["geom", *arguments, "overwrite=true"], exit_code=1, preexec_fn=limit), "File too large")
        expect(not list(Path().glob("*partial*")), f"{arguments}: parts are left")
    expect(files("out.zarr") == before, "out.zarr was changed")
    expect({p.name for p in Path().iterdir()} == {"ball.stl", "out.zarr"}, f"left: {list(Path().iterdir())}")


def geom_files():
    """Files of others: every surface is described, and stays the same from format to format."""
    folder = SHARED / "geometry"
    if not folder.exists():
        print(f"no {folder}")
        sys.exit(SKIPPED)
    names = sorted(p for p in folder.rglob("*") if p.name.lower().endswith((".stl", ".obj", ".stl.gz", ".obj.gz")) and p.stat().st_size < 1 << 18)
    names += [SHARED / "vtk/vtk_data" / name for name in ("cow.vtp", "Bunny.vtp")]
    done = grove(["geom", "info", *map(str, names), "--json"], exit_code=None)
    facts = {Path(f["file"]).name: f for f in json.loads(done.stdout)}
    expect({n for n, f in facts.items() if "error" in f} == {"malformed.obj", "number_formats.obj"}, [f for f in facts.values() if "error" in f])
    unit = facts["unit_sphere.STL"]["surface"]
    expect(unit["watertight"] and abs(unit["volume"] - 4 * np.pi / 3) < 0.05 and facts["unit_cube.STL"]["surface"]["volume"] == 1, unit)
    expect(facts["sphereWithHole.stl"]["surface"]["open_edges"] > 0, facts["sphereWithHole.stl"])
    surfaces = {p: facts[p.name]["surface"] for p in names if "surface" in facts[p.name]}
    expect(len(surfaces) > 25, f"{len(surfaces)} surfaces")
    for i, path in enumerate(surfaces):
        grove(["geom", "convert", str(path), f"{i}.stl", "triangulate=true", "-q"])
    for i, (path, before) in enumerate(surfaces.items()):
        expect(Path(f"{i}.stl").stat().st_size == 84 + 50 * before["triangles"], f"triangles of {path}")
    for (path, before), after in zip(surfaces.items(), result(["geom", "info", *(f"{i}.stl" for i in range(len(surfaces)))])):
        near(after["surface"]["area"], before["area"], 1e-4 * before["area"], f"area of {path}")
    cow = SHARED / "geometry/waterlily/spherical_cow.stl"
    report = result(["geom", "sdf", str(cow), "cow.zarr", "grid=24"])
    x = [array(f"cow.zarr/{name}") for name in "xyz"]
    points = np.stack(np.meshgrid(*x, indexing="ij"), -1).reshape(-1, 3)
    some = np.random.default_rng(5).permutation(len(points))[:60]
    grove(["geom", "convert", str(cow), "cow_surface.zarr"])
    triangles = array("cow_surface.zarr/points")[array("cow_surface.zarr/triangles")].astype(float)
    near(array("cow.zarr/distance").reshape(-1)[some], signed_distances(points[some], triangles), 1e-5, "distance to the cow")
    expect(report["inside"] > 100, report)


def examples():
    """The examples of docs/geometry.md run as they stand."""
    text = (ROOT / "docs" / "geometry.md").read_text()
    example = text[text.index("## Commands"):].split("```")[1]
    expect(example.count("grove geom") >= 10, f"ten commands expected:\n{example}")
    corners, faces = icosphere(3, (0, 0, 20), 20)
    write_stl("body_mm.stl", corners, faces)
    done = subprocess.run(["sh", "-e", "-c", example], capture_output=True, text=True, timeout=100, check=False)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}")
    near(array("body_sdf.zarr/distance").min(), -0.02, 1e-3, "distance in the middle of the ball, in m")

    for name, expected in (("body_sdf.zarr/distance", ["x", "y", "z"]), ("points.zarr/normals", ["point", "component"]), ("at_points.zarr/triangle", ["point"]),
                           ("neighbours.zarr/indices", ["query", "neighbour"]), ("near.zarr/r1/counts", ["query"]), ("all.zarr/offsets", ["offset"])):
        expect(dimensions(name) == expected, (name, dimensions(name)))

    # the program, against the library beside the command
    compiler, folder = shutil.which("cc"), Path(shutil.which("grove")).parent
    if compiler is None or not (folder / "libgrove_base.so").exists():
        return
    Path("near.c").write_text(text[text.index("### In C"):].split("```c\n")[1].split("```")[0])
    subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", "near.c", "-L", folder, "-lgrove_base",
                    f"-Wl,-rpath,{folder}", "-o", "near"], check=True, timeout=60)
    done = subprocess.run(["./near", "body_mm.stl"], capture_output=True, text=True, timeout=60, check=False)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}")
    near([float(line.split()[2].rstrip(";")) for line in done.stdout.splitlines()], [0, np.hypot(5**0.5, 17) - 20], 0.1, "distances of the program")


SCENARIOS = {f.__name__: f for f in (info, convert, sdf, sdf_points, knn, radius, many, sample, cut_short, examples)} | {"files": geom_files}

if __name__ == "__main__":
    main(SCENARIOS)
