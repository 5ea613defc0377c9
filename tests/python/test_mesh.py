#!/usr/bin/env python3
"""Files of meshio and VTK read by grove, and what grove writes read by both: values, cells, polyhedra.
usage: test_mesh.py TOOL (tests/python/mesh_tool.c); skipped (77) without meshio or vtk."""
import itertools
import os
import subprocess
import sys
import tempfile

try:
    import meshio
    import numpy as np
    import vtk
    from vtk.util.numpy_support import numpy_to_vtk, vtk_to_numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOOL, FOLDER = sys.argv[1], tempfile.mkdtemp()
ENCODINGS = list(itertools.product(("binary", "base64"), (0, 1, 6)))
random = np.random.default_rng(1)


def convert(source, target, encoding="binary", level=0):
    subprocess.run([TOOL, source, target, encoding, str(level)], check=True)


def path(name):
    return os.path.join(FOLDER, name)


def same(a, b, what):
    assert a.dtype == b.dtype and a.shape == b.shape, what
    if "ascii" in what and a.dtype.kind == "f":  # meshio writes twelve digits
        assert np.allclose(a, b, rtol=1e-10, atol=0), what
    else:
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), what


def make_meshio():
    n = 5000
    points = random.random((n, 3))
    cells = [("tetra", random.integers(0, n, (9000, 4))), ("hexahedron", random.integers(0, n, (3000, 8))), ("triangle", random.integers(0, n, (500, 3)))]
    point_data = {"p": random.random(n).astype("f4"), "U": random.random((n, 3))}
    cell_data = {"id": [np.arange(len(c)) * (k + 1) for k, (_, c) in enumerate(cells)], "flag": [random.integers(0, 255, len(c)).astype("u1") for _, c in cells]}
    return meshio.Mesh(points, cells, point_data=point_data, cell_data=cell_data)


def same_meshio(a, b, what):
    same(a.points, b.points, what)
    assert [c.type for c in a.cells] == [c.type for c in b.cells], what
    for x, y in zip(a.cells, b.cells):
        assert np.array_equal(x.data, y.data), what
    for name, values in a.point_data.items():
        same(values, b.point_data[name], f"{what}: {name}")
    for name, blocks in a.cell_data.items():
        for x, y in zip(blocks, b.cell_data[name]):
            same(x, y, f"{what}: {name}")


def test_meshio():
    """meshio -> grove -> meshio in every encoding that both have."""
    mesh = make_meshio()
    for name, options in {"zlib.vtu": {}, "lzma.vtu": {"compression": "lzma"}, "none.vtu": {"compression": None}, "ascii.vtu": {"binary": False}, "old.vtk": {"file_format": "vtk42"},
                          "new.vtk": {"file_format": "vtk51"}}.items():
        meshio.write(path(name), mesh, **options)
        for encoding, level in ENCODINGS if name == "zlib.vtu" else ENCODINGS[:1]:
            convert(path(name), path("back.vtu"), encoding, level)
            same_meshio(mesh, meshio.read(path("back.vtu")), f"{name} {encoding} {level}")


def vtk_read(reader, name):
    reader.SetFileName(path(name))
    reader.Update()
    assert reader.GetErrorCode() == 0, name
    return reader.GetOutput()


def same_attributes(a, b, what):
    assert a.GetNumberOfArrays() == b.GetNumberOfArrays(), what
    for i in range(a.GetNumberOfArrays()):
        name = a.GetArrayName(i)
        same(vtk_to_numpy(a.GetArray(name)), vtk_to_numpy(b.GetArray(name)), f"{what}: {name}")


def same_grid(a, b, what):
    same(vtk_to_numpy(a.GetPoints().GetData()), vtk_to_numpy(b.GetPoints().GetData()), what)
    assert a.GetNumberOfCells() == b.GetNumberOfCells(), what
    for i in range(a.GetNumberOfCells()):
        x, y = vtk.vtkIdList(), vtk.vtkIdList()
        a.GetFaceStream(i, x) if a.GetCellType(i) == 42 else a.GetCellPoints(i, x)
        b.GetFaceStream(i, y) if b.GetCellType(i) == 42 else b.GetCellPoints(i, y)
        ids = [[ids.GetId(k) for k in range(ids.GetNumberOfIds())] for ids in (x, y)]
        assert a.GetCellType(i) == b.GetCellType(i) and ids[0] == ids[1], f"{what}: cell {i}"
    same_attributes(a.GetPointData(), b.GetPointData(), what)
    same_attributes(a.GetCellData(), b.GetCellData(), what)


def make_polyhedra():
    grid, points = vtk.vtkUnstructuredGrid(), vtk.vtkPoints()
    for corner in itertools.product((0, 1), repeat=3):
        points.InsertNextPoint(corner)
    points.InsertNextPoint(0.5, 0.5, 2)
    grid.SetPoints(points)
    cube = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    faces = vtk.vtkIdList()
    for value in [6, *itertools.chain(*([len(f), *f] for f in cube))]:
        faces.InsertNextId(value)
    grid.InsertNextCell(vtk.VTK_TETRA, 4, (0, 1, 2, 4))
    grid.InsertNextCell(vtk.VTK_POLYHEDRON, faces)
    faces.Reset()
    for value in [4, 3, 1, 3, 8, 3, 1, 5, 8, 3, 3, 5, 8, 3, 1, 3, 5]:
        faces.InsertNextId(value)
    grid.InsertNextCell(vtk.VTK_POLYHEDRON, faces)
    values = numpy_to_vtk(np.array([1.5, -2.0, 3.0]), deep=True)
    values.SetName("a <b>")
    grid.GetCellData().AddArray(values)
    return grid


def test_polyhedra():
    """The layouts of faces that this VTK writes, XML and legacy, and grove's."""
    grid = make_polyhedra()
    writers = {"appended.vtu": vtk.vtkXMLUnstructuredGridWriter(), "text.vtu": vtk.vtkXMLUnstructuredGridWriter(), "new.vtk": vtk.vtkUnstructuredGridWriter(), "old.vtk": vtk.vtkUnstructuredGridWriter()}
    writers["text.vtu"].SetDataModeToAscii()
    writers["old.vtk"].SetFileVersion(42)
    for name, writer in writers.items():
        writer.SetFileName(path(name))
        writer.SetInputData(grid)
        assert writer.Write() == 1
        for encoding, level in ENCODINGS:
            convert(path(name), path("back.vtu"), encoding, level)
            same_grid(vtk_read(vtk.vtkXMLUnstructuredGridReader(), "back.vtu"), grid, f"{name} {encoding} {level}")


def make_surface():
    sphere = vtk.vtkSphereSource()
    sphere.SetThetaResolution(60)
    sphere.SetPhiResolution(40)
    sphere.Update()
    data = sphere.GetOutput()
    values = numpy_to_vtk(random.integers(-9, 9, data.GetNumberOfCells()).astype("i2"), deep=True)
    values.SetName("i2")
    data.GetCellData().AddArray(values)
    return data


def test_surface():
    data = make_surface()
    writer = vtk.vtkXMLPolyDataWriter()
    writer.SetFileName(path("sphere.vtp"))
    writer.SetInputData(data)
    for compressor in (writer.SetCompressorTypeToZLib, writer.SetCompressorTypeToLZ4, writer.SetCompressorTypeToLZMA, writer.SetCompressorTypeToNone):
        compressor()
        assert writer.Write() == 1
        for encoding, level in ENCODINGS:
            convert(path("sphere.vtp"), path("back.vtp"), encoding, level)
            same_grid(vtk_read(vtk.vtkXMLPolyDataReader(), "back.vtp"), data, f"surface {encoding} {level}")
    for encoding in ("binary", "ascii"):
        convert(path("sphere.vtp"), path("back.stl"), encoding)
        mesh = meshio.read(path("back.stl"))
        corners = vtk_to_numpy(data.GetPoints().GetData())[vtk_to_numpy(data.GetPolys().GetConnectivityArray()).reshape(-1, 3)]
        assert np.allclose(mesh.points[mesh.cells_dict["triangle"]], corners, rtol=0, atol=1e-7), encoding
        assert vtk_read(vtk.vtkSTLReader(), "back.stl").GetNumberOfCells() == data.GetNumberOfCells()


def test_image():
    image = vtk.vtkImageData()
    image.SetExtent(-3, 40, 2, 30, 0, 25)
    image.SetOrigin(1, 2, 3)
    image.SetSpacing(0.1, 0.2, 0.25)
    values = numpy_to_vtk(random.random((image.GetNumberOfPoints(), 3)).astype("f4"), deep=True)
    values.SetName("velocity")
    image.GetPointData().AddArray(values)
    writer = vtk.vtkXMLImageDataWriter()
    writer.SetFileName(path("image.vti"))
    writer.SetInputData(image)
    assert writer.Write() == 1
    for encoding, level in ENCODINGS:
        convert(path("image.vti"), path("back.vti"), encoding, level)
        back = vtk_read(vtk.vtkXMLImageDataReader(), "back.vti")
        assert (back.GetExtent(), back.GetOrigin(), back.GetSpacing()) == (image.GetExtent(), image.GetOrigin(), image.GetSpacing())
        same_attributes(back.GetPointData(), image.GetPointData(), f"image {encoding} {level}")


for test in (test_meshio, test_polyhedra, test_surface, test_image):
    test()
    print(f"{test.__name__}: ok (meshio {meshio.__version__}, VTK {vtk.vtkVersion().GetVTKVersion()})")
