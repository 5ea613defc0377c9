#!/usr/bin/env python3
"""Prints tests/store/real_files_table.inc: every Zarr v3 array below a folder, with the CRC-32C of its elements (row-major,
little-endian) as zarr-python reads them, or the name for which grove must refuse it.
usage: make_real_files_table.py FOLDER   (needs zarr >= 3, google_crc32c)"""
import json
import pathlib
import sys

import google_crc32c
import numpy
import zarr

TYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}
CODECS = {"bytes", "transpose", "sharding_indexed", "zstd", "blosc", "gzip", "crc32c"}

root = pathlib.Path(sys.argv[1])
for document in sorted(root.rglob("zarr.json")):
    metadata = json.loads(document.read_text())
    if metadata["node_type"] != "array":
        continue
    path = str(document.parent.relative_to(root))
    name = metadata["data_type"] if isinstance(metadata["data_type"], str) else metadata["data_type"]["name"]
    unknown = [c["name"] for c in metadata["codecs"] if c["name"] not in CODECS]
    if name not in TYPES:
        print(f'{{"{path}", 0, "data type \'{name}\'"}},')
    elif unknown:
        print(f'{{"{path}", 0, "codec \'{unknown[0]}\'"}},')
    else:
        values = numpy.ascontiguousarray(zarr.open_array(str(document.parent), mode="r")[...])
        values = values.astype(values.dtype.newbyteorder("<"))
        print(f'{{"{path}", 0x{google_crc32c.value(values.tobytes()):08x}, NULL}},')
