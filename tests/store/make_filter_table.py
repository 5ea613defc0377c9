#!/usr/bin/env python3
"""Prints tests/store/filter_table.inc: the CRC-32C of what numcodecs' filters make of the values of filter_impl_test.c, encoded and
decoded again, for all pairs of numeric types.
usage: make_filter_table.py   (needs numcodecs, google_crc32c)"""
import itertools
import warnings

import google_crc32c
import numcodecs
import numpy

warnings.simplefilter("ignore")
NAMES = {"i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64", "f2": "F16", "f4": "F32",
         "f8": "F64"}
N = 700


def values(dtype, other):
    x = numpy.arange(N, dtype="i8") * 7919 % 211
    if "u" not in dtype + other:
        x = x - 100
    return (x / 8).astype(dtype) if dtype[0] == "f" else x.astype(dtype)


def crc(array):
    return f"0x{google_crc32c.value(numpy.ascontiguousarray(array).tobytes()):08x}"


def print_line(name, configuration, codec, dtype, other):
    data = values(dtype, other)
    encoded = numpy.asarray(codec.encode(data))
    decoded = numpy.asarray(codec.decode(encoded)).view(dtype)
    text = configuration.replace('"', '\\"')
    print(f'{{"numcodecs.{name}", "{text}", GRV_STORE_{NAMES[dtype]}, {crc(encoded)}, {crc(decoded)}}},')


for dtype, other in itertools.product(NAMES, NAMES):
    # negative differences in floats and unsigned integers at once: not defined, numcodecs does not get its own values back
    if dtype[0] + other[0] not in ("fu", "uf") and not (dtype[0] == "i" and other == "u8"):
        print_line("delta", f'{{"dtype":"<{dtype}","astype":"<{other}"}}', numcodecs.Delta(f"<{dtype}", f"<{other}"), dtype, other)
    print_line("astype", f'{{"encode_dtype":"<{other}","decode_dtype":"<{dtype}"}}', numcodecs.AsType(f"<{other}", f"<{dtype}"),
               dtype, other)
    print_line("fixedscaleoffset", f'{{"offset":-3.0,"scale":2.5,"dtype":"<{dtype}","astype":"<{other}"}}',
               numcodecs.FixedScaleOffset(-3.0, 2.5, f"<{dtype}", f"<{other}"), dtype, other)
for dtype, bits in itertools.product(("f2", "f4", "f8"), (1, 3, 10)):
    print_line("bitround", f'{{"keepbits":{bits}}}', numcodecs.BitRound(bits), dtype, "f8")
