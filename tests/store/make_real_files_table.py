#!/usr/bin/env python3
"""Prints tests/store/real_files_table.inc: every Zarr array below a folder, of version 2 and 3, with the CRC-32C of its elements
(row-major, little-endian) as zarr-python reads them, or the reason for which grove must refuse it.
usage: make_real_files_table.py FOLDER   (needs zarr >= 3.1, google_crc32c)"""
import json
import pathlib
import re
import sys
import warnings

import google_crc32c
import numpy
import zarr

warnings.simplefilter("ignore")
TYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128", "fixed_length_utf32", "null_terminated_bytes"}
V2_TYPE = re.compile(r"^[<>|][biufcSUV]\d+$")
CODECS = {"bytes", "transpose", "sharding_indexed", "zstd", "blosc", "gzip", "crc32c", "bitround", "zlib", "lz4", "bz2", "shuffle",
          "delta", "fixedscaleoffset", "astype", "crc32", "adler32", "fletcher32"}


def refused_v3(metadata):
    name = metadata["data_type"] if isinstance(metadata["data_type"], str) else metadata["data_type"]["name"]
    if name not in TYPES:
        return f"data type '{name}'"
    unknown = [c["name"] for c in metadata["codecs"] if c["name"].removeprefix("numcodecs.") not in CODECS]
    return f"codec '{unknown[0]}'" if unknown else None


def refused_v2(metadata):
    if not V2_TYPE.match(metadata["dtype"]):
        return f"data type '{metadata['dtype']}'"
    codecs = (metadata["filters"] or []) + ([metadata["compressor"]] if metadata["compressor"] else [])
    unknown = [c["id"] for c in codecs if c["id"] not in CODECS]
    return f"codec 'numcodecs.{unknown[0]}'" if unknown else None


def written_values(path):
    """What the writer of zarr_python_2_13 meant, saved beside it; None elsewhere."""
    expected = path.parent.parent / "expected"
    names = {"blosc_multiblock.zarr": "field_f4", "filters_order.zarr": "sub_f4"}
    for name in (path.name, {"delta": "delta_i4"}.get(path.name), names.get(path.parent.name)):
        if name and (expected / f"{name}.npy").exists():
            return numpy.load(expected / f"{name}.npy")
    return None


def values_of(path, version):
    expected = written_values(path)
    try:
        values = numpy.asarray(zarr.open_array(str(path), mode="r", zarr_format=version)[...])
    except RuntimeError:  # its Blosc has no snappy
        values = expected
    except zarr.errors.UnknownCodecError:  # "bitround" by its registered name: decoding changes nothing, there is one raw chunk
        values = numpy.fromfile(path / "c" / "0", json.loads((path / "zarr.json").read_text())["data_type"])
    assert expected is None or numpy.array_equal(values, expected, equal_nan=values.dtype.kind in "fc"), path
    return values.astype(values.dtype.newbyteorder("<"))


def print_array(root, document, version):
    metadata = json.loads(document.read_text())
    path = document.parent.relative_to(root)
    reason = refused_v3(metadata) if version == 3 else refused_v2(metadata)
    if reason:
        print(f'{{"{path}", 0, "{reason}"}},')
        return
    crc = google_crc32c.value(values_of(document.parent, version).tobytes("C"))
    print(f'{{"{path}", 0x{crc:08x}, NULL}},')


folder = pathlib.Path(sys.argv[1])
for file in sorted([*folder.rglob("zarr.json"), *folder.rglob(".zarray")]):
    if file.name == ".zarray" and not (file.parent / "zarr.json").exists():
        print_array(folder, file, 2)
    elif file.name == "zarr.json" and json.loads(file.read_text())["node_type"] == "array":
        print_array(folder, file, 3)
