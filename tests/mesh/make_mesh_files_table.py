#!/usr/bin/env python3
"""Prints tests/mesh/mesh_files_table.inc: every mesh file below a folder with counts and checksums of what VTK's readers give (STL, VTK files) or of a plain
reading of the text (OBJ), or a part of the message with which grove must refuse it.
usage: make_mesh_files_table.py FOLDER >mesh_files_table.inc   (needs numpy, vtk, google_crc32c)

Checksums are CRC-32C, as the test makes them (mesh_files_impl_test.c): points as float64 (STL: float32); of each cell its type, number of points and points, of
polyhedra the points sorted and then the stream of faces; the sum over arrays of that of the name and the values as int64 or float64, cell data with its CRC
inverted. All little-endian.
"""
import gzip
import os
import pathlib
import sys
import tempfile

import google_crc32c
import numpy
import vtk
from vtk.util.numpy_support import vtk_to_numpy

ENDINGS = (".stl", ".obj", ".vtp", ".vtu", ".vti", ".vtr", ".vts", ".vtk", ".pvtu", ".pvtp", ".pvtr", ".vtm", ".pvd")
COLLECTIONS = (".pvtu", ".pvtp", ".pvtr", ".vtm", ".pvd")
KINDS = {"vtkPolyData": "GRV_MESH_SURFACE", "vtkUnstructuredGrid": "GRV_MESH_CELLS", "vtkImageData": "GRV_MESH_IMAGE", "vtkStructuredPoints": "GRV_MESH_IMAGE",
         "vtkRectilinearGrid": "GRV_MESH_RECTILINEAR", "vtkStructuredGrid": "GRV_MESH_STRUCTURED"}
XML_READERS = {".vtp": vtk.vtkXMLPolyDataReader, ".vtu": vtk.vtkXMLUnstructuredGridReader, ".vti": vtk.vtkXMLImageDataReader, ".vtr": vtk.vtkXMLRectilinearGridReader,
               ".vts": vtk.vtkXMLStructuredGridReader}
# What grove refuses, and why (part of its message).
REFUSED = {
    "geometry/assimp/malformed.obj": "vertex 0 at byte",
    "vtk/vtkio/field.vtk": "no DATASET",
    "geometry/assimp/number_formats.obj": "a number expected, '3.1+e2",
}
# VTK refuses the text that it wrote for NaN; the same values in another encoding.
SAME_AS = {"vtk/vtk91_matrix/poly_ascii.vtp": "vtk/vtk91_matrix/poly_inline_u32_none.vtp"}
crc = google_crc32c.value


def flat(values):
    kind = {"f": "<f8", "u": "<u8"}.get(values.dtype.kind, "<i8")
    # text loses the sign of zero
    return (numpy.ascontiguousarray(values).astype(kind) + (0.0 if kind == "<f8" else 0)).astype(kind).tobytes()


def data_sum(attributes, flip):
    total = 0
    for i in range(attributes.GetNumberOfArrays()):
        array = attributes.GetArray(i)
        if array is None:
            continue
        name = (attributes.GetArrayName(i) or "").encode()
        total += crc(name + flat(vtk_to_numpy(array))) ^ flip
    return total & 0xFFFFFFFF


def cell_lists(data):
    if data.IsA("vtkUnstructuredGrid"):
        return [data.GetCells()]
    return [data.GetVerts(), data.GetLines(), data.GetPolys(), data.GetStrips()] if data.IsA("vtkPolyData") else []


def listed_type(number, n):
    return ([1, 3, {3: 5, 4: 9}.get(n, 7), 6] if n == (1, 2, n, n)[number] else [2, 4, 0, 0])[number]


def cells_crc(data):
    parts, n_cells = [], 0
    for number, cells in enumerate(cell_lists(data)):
        offsets, ids = vtk_to_numpy(cells.GetOffsetsArray()).astype("<i8"), vtk_to_numpy(cells.GetConnectivityArray()).astype("<i8")
        for i in range(len(offsets) - 1):
            of_cell = ids[offsets[i]:offsets[i + 1]]
            kind = data.GetCellType(i) if data.IsA("vtkUnstructuredGrid") else listed_type(number, len(of_cell))
            faces = []
            if kind == 42:
                stream = vtk.vtkIdList()
                data.GetFaceStream(i, stream)
                faces = [stream.GetId(k) for k in range(stream.GetNumberOfIds())]
                of_cell = numpy.sort(of_cell)
            parts += [numpy.array([kind, len(of_cell)], "<i8"), of_cell, numpy.array(faces, "<i8")]
            n_cells += 1
    return crc(b"".join(p.tobytes() for p in parts)), n_cells


def row_of(data):
    kind = KINDS[data.GetClassName()]
    points = b""
    if hasattr(data, "GetPoints") and not data.IsA("vtkImageData") and not data.IsA("vtkRectilinearGrid"):
        points = flat(vtk_to_numpy(data.GetPoints().GetData())) if data.GetPoints() else b""
    if data.IsA("vtkRectilinearGrid"):
        points = b"".join(flat(vtk_to_numpy(axis)) for axis in (data.GetXCoordinates(), data.GetYCoordinates(), data.GetZCoordinates()))
    cells, n_cells = cells_crc(data)
    sums = data_sum(data.GetPointData(), 0) + data_sum(data.GetCellData(), 0xFFFFFFFF)
    n_cells = n_cells if cell_lists(data) else data.GetNumberOfCells()
    return f"{kind}, {data.GetNumberOfPoints()}, {n_cells}, 0x{crc(points):08x}, 0x{cells:08x}, 0x{sums & 0xFFFFFFFF:08x}, NULL"


def read_legacy(path):
    reader = vtk.vtkGenericDataObjectReader()
    reader.SetFileName(str(path))
    for what in ("Scalars", "Vectors", "Normals", "Tensors", "ColorScalars", "TCoords", "Fields"):
        getattr(reader, f"ReadAll{what}On")()
    reader.Update()
    return reader.GetOutput()


def read_xml(path, ending):
    reader = XML_READERS[ending]()
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def read_stl(path):
    reader = vtk.vtkSTLReader()
    reader.MergingOff()
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def stl_row(path):
    data = read_stl(path)
    n_points = data.GetNumberOfPoints()
    points = vtk_to_numpy(data.GetPoints().GetData()).astype("<f4").tobytes() if n_points else b""
    cells, n_cells = cells_crc(data) if n_points else (0, 0)
    return f"GRV_MESH_SURFACE, {n_points}, {n_cells}, 0x{crc(points):08x}, 0x{cells:08x}, 0, NULL"


def obj_row(path):
    raw = path.read_bytes() if not path.name.endswith(".gz") else gzip.decompress(path.read_bytes())
    text = raw.decode("utf-16") if raw[:2] in (b"\xfe\xff", b"\xff\xfe") else raw.decode("utf-8", "replace")
    points, parts, n_cells = [], [], 0
    for line in text.replace("\\\r\n", "").replace("\\\n", "").split("\n"):
        words = line.split()
        if words[:1] == ["v"]:
            points.append([float(w) for w in words[1:4]])
        elif words[:1] == ["f"] and len(words) > 3:
            ids = [int(w.split("/")[0]) for w in words[1:]]
            ids = [i - 1 if i > 0 else len(points) + i for i in ids]
            parts.append(numpy.array([listed_type(2, len(ids)), len(ids), *ids], "<i8").tobytes())
            n_cells += 1
    return f"GRV_MESH_SURFACE, {len(points)}, {n_cells}, 0x{crc(numpy.array(points, '<f8').tobytes()):08x}, 0x{crc(b''.join(parts)):08x}, -1, NULL"


def row(root, path):
    name = str(path.relative_to(root))
    ending = pathlib.Path(path.name.removesuffix(".gz")).suffix.lower()
    if name in REFUSED:
        return f'"{name}", 0, 0, 0, 0, 0, 0, "{REFUSED[name]}"'
    if ending in COLLECTIONS:
        return f'"{name}", 0, 0, 0, 0, 0, 0, "which is no mesh of one file"'
    if ending == ".obj":
        return f'"{name}", {obj_row(path)}'
    if path.name.endswith(".gz"):
        with tempfile.TemporaryDirectory() as folder:
            plain = pathlib.Path(folder) / path.name.removesuffix(".gz")
            plain.write_bytes(gzip.decompress(path.read_bytes()))
            return f'"{name}", {stl_row(plain)}'
    if ending == ".stl":
        return f'"{name}", {stl_row(path)}'
    path = root / SAME_AS.get(name, name)
    data = read_legacy(path) if ending == ".vtk" else read_xml(path, ending)
    return f'"{name}", {row_of(data)}'


root = pathlib.Path(sys.argv[1])
vtk.vtkObject.GlobalWarningDisplayOff()
for path in sorted(p for folder in ("geometry", "vtk", "cfd") for p in (root / folder).rglob("*") if p.name.lower().removesuffix(".gz").endswith(ENDINGS)):
    try:
        print("{" + row(root, path) + "},", flush=True)
    except Exception as error:  # to be judged by hand
        print(f"// {path.relative_to(root)}: {error!r}", file=sys.stderr)
