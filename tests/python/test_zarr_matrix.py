"""Arrays of every kind, each made by grove, zarr-python and tensorstore, and read by the others to the same bits.

Factors (type, order, codec, sharding, edges, fill, keys, ...) are combined so that any two values of any two of them meet (pairs.py).
For each case and each library that can make it:
  the library writes a part; grove, and the others, read the whole; grove reads a region and writes one; the library reads the whole again.
What counts is bits: NaNs with a payload and the sign of zero included. Argument: the program zarr_matrix_tool. A second argument, a number of
a case such as 3:17, runs that case alone and says all.
"""
import json
import os
import subprocess
import sys
import tempfile
import warnings

from pairs import all_pairs

try:
    import numpy as np
    import zarr
    if int(zarr.__version__.split(".")[0]) < 3:
        raise ImportError(f"zarr {zarr.__version__} is older than 3")
    import numcodecs
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)
try:
    import ml_dtypes
    import tensorstore
except ImportError as error:
    print("without tensorstore:", error)
    tensorstore = ml_dtypes = None

# ---- factors ----

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
# shape, stored object (chunk or shard), inner chunk, inner chunk of an inner shard
LAYOUTS = {
    "edges": ((7, 10, 3), (4, 6, 3), (2, 3, 3), (1, 3, 1)),
    "exact": ((8, 12, 4), (4, 6, 2), (2, 6, 1), (1, 3, 1)),
    "line": ((23,), (8,), (4,), (2,)),
    "scalar": ((), (), (), ()),
    "empty": ((9, 0, 2), (4, 3, 2), (2, 3, 1), (1, 1, 1)),
    "larger chunk": ((3, 5), (8, 16), (4, 4), (2, 2)),
    "four axes": ((3, 4, 5, 2), (2, 4, 3, 2), (1, 2, 3, 1), (1, 1, 3, 1)),
    "many chunks": ((61, 6), (16, 6), (4, 6), (4, 3)),
}
FILLS = ["zero", "one", "nan", "negative zero", "lowest", "highest", "infinity", "nan with payload", "smallest"]
COMMON = {"layout": list(LAYOUTS), "fill": FILLS, "written": ["all", "some", "none"], "values": ["bits", "smooth", "mostly fill"], "big_endian": [False, True]}


def blosc(cname, shuffle, level=5):
    return {"name": "blosc", "configuration": {"cname": cname, "clevel": level, "shuffle": shuffle, "blocksize": 0}}


def codec(name, **configuration):
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


BYTE_CODECS = {
    "none": [],
    "zstd": [codec("zstd", level=1, checksum=False)],
    "zstd with checksum": [codec("zstd", level=5, checksum=True)],
    "gzip": [codec("gzip", level=4)],
    "blosc lz4": [blosc("lz4", "shuffle")],
    "blosc zstd": [blosc("zstd", "shuffle", 3)],
    "blosc zstd bits": [blosc("zstd", "bitshuffle", 1)],
    "blosc blosclz": [blosc("blosclz", "noshuffle")],
    "blosc lz4hc": [blosc("lz4hc", "shuffle", 9)],
    "blosc zlib": [blosc("zlib", "bitshuffle", 1)],
    "crc32c": [codec("crc32c")],
    "gzip and crc32c": [codec("gzip", level=1), codec("crc32c")],
    "zlib": [codec("numcodecs.zlib", level=4)],
    "lz4": [codec("numcodecs.lz4", acceleration=1)],
    "bz2": [codec("numcodecs.bz2", level=2)],
    "shuffle and zlib": [codec("numcodecs.shuffle", elementsize="item"), codec("numcodecs.zlib", level=1)],
}
FACTORS_3 = COMMON | {
    "type": NUMBERS + (["bfloat16"] if ml_dtypes else []),
    "codec": list(BYTE_CODECS),
    "order": ["none", "reversed", "rotated"],
    "sharding": ["none", "index at end", "index at start", "plain index", "nested"],
    "keys": ["default/", "default.", "v2.", "v2/"],
}
# numcodecs' filters within version 3; tensorstore has none of them
FACTORS_FILTERS = COMMON | {
    "type": NUMBERS,
    "codec": ["none", "zstd", "blosc lz4"],
    "order": ["none", "rotated"],
    "sharding": ["none", "index at end"],
    "filter": ["delta", "fixedscaleoffset", "astype", "bitround"],
    "keys": ["default/"],
}
FACTORS_2 = COMMON | {
    "type": NUMBERS + ["S5", "U4", "V6"],
    "codec": ["none", "zstd", "gzip", "blosc lz4", "blosc zstd", "blosc zstd bits", "blosc blosclz", "zlib", "lz4", "bz2"],
    "order": ["none", "reversed"],
    "filter": ["none", "delta", "shuffle", "fixedscaleoffset", "astype", "bitround"],
    "keys": ["v2.", "v2/"],
}

# ---- a case: values ----


def type_of(case):
    return np.dtype(ml_dtypes.bfloat16) if case["type"] == "bfloat16" else np.dtype(case["type"])


def kind_of(dtype):
    return "f" if dtype.name == "bfloat16" else dtype.kind


def real_fill(dtype, level):
    """One number as an array of no axes."""
    finfo = ml_dtypes.finfo if ml_dtypes and dtype.name == "bfloat16" else np.finfo
    if level == "nan with payload":
        nan = np.array(np.nan, dtype)
        bits = nan.view(f"u{dtype.itemsize}")
        return (bits | bits.dtype.type(5)).view(dtype)
    values = {"zero": 0, "one": 1, "nan": np.nan, "negative zero": -0.0, "infinity": -np.inf}
    if level in values:
        return np.array(values[level], dtype)
    info = finfo(dtype)
    return np.array({"lowest": info.min, "highest": info.max, "smallest": info.smallest_subnormal}[level], dtype)


def fill_of(case):
    dtype, level = type_of(case), case["fill"]
    if kind_of(dtype) == "b":
        return np.array(FILLS.index(level) % 2 == 1)
    if kind_of(dtype) in "iu":
        info = np.iinfo(dtype)
        return np.array({"zero": 0, "one": 1, "highest": info.max, "infinity": info.max, "nan": info.max - 1}.get(level, info.min), dtype)
    if kind_of(dtype) in "SUV":
        return np.zeros((), dtype) if level == "zero" or kind_of(dtype) == "V" else np.array(b"ab" if kind_of(dtype) == "S" else "aé", dtype)
    if case["format"] == 2 and level == "nan with payload":
        level = "nan"  # there is no way to say it
    if kind_of(dtype) == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return np.array([real_fill(part, level), real_fill(part, FILLS[FILLS.index(level) // 2])], part).view(dtype).reshape(())
    return real_fill(dtype, level)


def filter_of(case):
    """The filter, where the type can have it."""
    name, dtype = case.get("filter", "none"), type_of(case)
    able = {"none": True, "shuffle": True, "delta": kind_of(dtype) in "iuf", "fixedscaleoffset": kind_of(dtype) == "f" and dtype.itemsize > 2,
            "astype": dtype == np.float64, "bitround": kind_of(dtype) == "f" and dtype.itemsize > 2}
    return name if able[name] else "none"


def values_of(case, random, shape):
    dtype, kind = type_of(case), case["values"]
    n = int(np.prod(shape, dtype=np.int64))
    if filter_of(case) not in ("none", "shuffle"):
        kind = "smooth"  # arithmetic on anything else is not exact, or not defined
    if kind_of(dtype) == "b":
        return random.integers(0, 2 if kind == "bits" else 1, shape).astype(bool)
    if kind_of(dtype) == "U":
        return np.array(random.choice(["", "abc", "äöüß", "x\U0001f600"], shape), dtype)
    bits = np.frombuffer(random.bytes(n * dtype.itemsize), dtype).reshape(shape)
    if kind == "bits" or kind_of(dtype) in "SV":
        return bits.copy()
    if kind == "mostly fill":
        return np.where(random.random(shape) < 0.05, bits, fill_of(case))
    return (np.arange(n) % 100).astype(dtype).reshape(shape)


def native(array):
    array = np.asarray(array)
    return array if array.dtype.isnative else array.byteswap().view(array.dtype.newbyteorder("="))


# ---- a case: metadata ----


def fill_json(fill, text_of_nan=True):
    dtype = fill.dtype
    if kind_of(dtype) == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return [fill_json(x) for x in np.atleast_1d(fill).view(part)]
    if kind_of(dtype) in "biu":
        return fill.item()
    value = float(fill)
    if np.isnan(value):
        bits = int.from_bytes(fill.tobytes(), "little")
        return "NaN" if bits == int.from_bytes(np.array(np.nan, dtype).tobytes(), "little") else f"0x{bits:0{2 * dtype.itemsize}x}"
    return {np.inf: "Infinity", -np.inf: "-Infinity"}.get(value, value)


def byte_codecs(case, dtype):
    """Of version 3, complete."""
    result = json.loads(json.dumps(BYTE_CODECS[case["codec"]]))
    for c in result:
        if c["name"] == "blosc":
            c["configuration"]["typesize"] = dtype.itemsize
        if c["name"] == "numcodecs.shuffle":
            c["configuration"]["elementsize"] = dtype.itemsize
    return result


def transposition(case):
    rank = len(LAYOUTS[case["layout"]][0])
    return {"none": list(range(rank)), "reversed": list(range(rank))[::-1], "rotated": list(range(1, rank)) + list(range(min(rank, 1)))}[case["order"]]


def filters_2(case):
    """numcodecs' configuration of version 2's filter list. Types of version 3 have no byte order."""
    dtype = type_of(case).newbyteorder(">" if case["big_endian"] and case["format"] == 2 else "<")
    text = {"delta": dict(id="delta", dtype=dtype.str), "shuffle": dict(id="shuffle", elementsize=dtype.itemsize),
            "fixedscaleoffset": dict(id="fixedscaleoffset", scale=10, offset=3, dtype=dtype.str, astype="<i4"),
            "astype": dict(id="astype", encode_dtype="<f4", decode_dtype=dtype.str), "bitround": dict(id="bitround", keepbits=9)}
    name = filter_of(case)
    return None if name == "none" else [text[name]]


def codecs_3(case):
    dtype = type_of(case)
    _, _, inner, innermost = LAYOUTS[case["layout"]]
    order = transposition(case)
    transpose = [codec("transpose", order=order)] if order != sorted(order) else []
    transpose += [codec("numcodecs." + f["id"], **{key: value for key, value in f.items() if key != "id"}) for f in filters_2(case) or []]
    tail = [codec("bytes", endian="big" if case["big_endian"] else "little"), *byte_codecs(case, dtype)]
    if case["sharding"] == "none":
        return transpose + tail
    index = [codec("bytes", endian="little"), codec("crc32c")]
    if case["sharding"] == "plain index":
        index = [codec("bytes", endian="big")]
    location = "start" if case["sharding"] == "index at start" else "end"

    def shard(shape, codecs):
        return codec("sharding_indexed", chunk_shape=list(shape), codecs=codecs, index_codecs=index, index_location=location)

    if case["sharding"] == "nested":
        return [shard(inner, [shard(innermost, transpose + tail)])]
    if case["order"] == "rotated" and case["sharding"] == "index at start":  # around the shard: its inner chunks are in transposed axes
        return transpose + [shard([inner[i] for i in order], tail)]
    return [shard(inner, transpose + tail)]


def compressor_2(case):
    if case["codec"] == "none":
        return None
    [c] = byte_codecs(case, type_of(case))
    result = dict(id=c["name"].removeprefix("numcodecs."), **c["configuration"])
    if result["id"] == "blosc":
        result["shuffle"] = ["noshuffle", "shuffle", "bitshuffle"].index(result["shuffle"])
        del result["typesize"]
    result.pop("checksum", None)
    return result


def codecs_for_grove(case):
    if case["format"] == 3:
        return codecs_3(case)
    order = transposition(case)
    result = [codec("transpose", order=order)] if order != sorted(order) else []
    after = []  # what works on bytes rather than numbers
    for f in filters_2(case) or []:
        (after if f["id"] == "shuffle" else result).append(codec("numcodecs." + f["id"], **{key: value for key, value in f.items() if key != "id"}))
    return result + [codec("bytes", endian="big" if case["big_endian"] else "little"), *after, *byte_codecs(case, type_of(case))]


def describe(case):
    return ", ".join(f"{key} {value}" for key, value in case.items())


# ---- the three libraries ----


def known_trouble(library, case):
    """What the other libraries are known to get wrong; such cases are left out for them."""
    if library == "zarr-python" and case["layout"] == "scalar" and case.get("sharding", "none") != "none":
        return "takes the index of a shard without axes for one-dimensional (3.1.6)"
    if library == "zarr-python" and case["type"] == "float16" and case["fill"] == "nan with payload":
        return "loses the payload of a float16 fill value (3.1.6)"
    if library == "zarr-python" and case["format"] == 3 and filter_of(case) == "fixedscaleoffset" and case["big_endian"]:
        return "reads its own scaled big-endian chunks as other values (3.1.6)"
    if library == "tensorstore" and case["type"] in ("S5", "U4", "V6"):
        return "has single characters along one more axis"
    return None


class Refused(Exception):
    pass


class Grove:
    name = "grove"

    def __init__(self, tool):
        self.process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *words, data=b""):
        self.process.stdin.write("\t".join(words).encode() + b"\n" + data)
        self.process.stdin.flush()
        kind, _, rest = self.process.stdout.readline().decode().rstrip("\n").partition(" ")
        if kind == "error":
            raise Refused(rest)
        assert kind == "ok", f"zarr_matrix_tool ended at {words}"
        return self.process.stdout.read(int(rest))

    def create(self, root, name, case):
        dtype, (shape, chunk, _, _) = type_of(case), LAYOUTS[case["layout"]]
        kind = {"S": "null_terminated_bytes", "U": "fixed_length_utf32", "V": "raw_bytes"}.get(kind_of(dtype), dtype.name)
        self.ask("create", root, name, str(case["format"]), kind, str(dtype.itemsize), join(shape), join(chunk), case["keys"][0] + case["keys"][-1],
                 fill_of(case).tobytes().hex(), json.dumps(codecs_for_grove(case)))

    def write(self, root, name, case, start, values):
        data = np.ascontiguousarray(values).tobytes()
        self.ask("write", root, name, join(start), join(values.shape), str(len(data)), data=data)

    def read(self, root, name, case, start=None, count=None):
        shape = LAYOUTS[case["layout"]][0]
        start, count = start or (0,) * len(shape), shape if count is None else count
        return np.frombuffer(self.ask("read", root, name, join(start), join(count)), type_of(case)).reshape(count)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


def join(numbers):
    return ",".join(str(number) for number in numbers) or "-"


class ZarrPython:
    name = "zarr-python"

    def create(self, root, name, case):
        dtype, (shape, chunk, _, _) = type_of(case), LAYOUTS[case["layout"]]
        options = dict(store=root, path=name, shape=shape, chunks=chunk, dtype=dtype, fill_value=fill_of(case)[()], zarr_format=case["format"])
        if case["format"] == 2:
            filters, compressor = filters_2(case), compressor_2(case)
            options |= dict(dtype=dtype.newbyteorder(">" if case["big_endian"] else "<"), order="C" if case["order"] == "none" else "F",
                            dimension_separator=case["keys"][-1], filters=filters and [numcodecs.get_codec(dict(f)) for f in filters],
                            compressor=compressor and numcodecs.get_codec(compressor))
        else:
            codecs = [zarr.registry.get_codec_class(c["name"]).from_dict(c) for c in codecs_3(case)]
            options |= dict(codecs=codecs, chunk_key_encoding=(case["keys"][:-1], case["keys"][-1]))
        zarr.create(**options)

    def write(self, root, name, case, start, values):
        region = tuple(slice(s, s + n) for s, n in zip(start, values.shape))
        zarr.open_array(root, path=name, mode="r+", zarr_format=case["format"])[region if region else ...] = values if values.shape else values[()]

    def read(self, root, name, case):
        values = native(zarr.open_array(root, path=name, mode="r", zarr_format=case["format"])[...])
        # one string alone comes without its padding
        return values.astype(type_of(case)) if type_of(case).kind in "SU" else values


    def has_words_of_grove(self, root, name, case):
        """Attributes and names of axes, as zarr_matrix_tool gives them."""
        array = zarr.open_array(root, path=name, mode="r", zarr_format=case["format"])
        if case["format"] == 3:
            names = [None if i else "a" for i in range(array.ndim)]
            return dict(array.attrs) == {"by": "grove"} and array.metadata.dimension_names == (tuple(names) if names else None)
        names = {"_ARRAY_DIMENSIONS": list("abcd"[:array.ndim])} if array.ndim else {}
        return dict(array.attrs) in ({"by": "grove"} | names, {"by": "grove", "_ARRAY_DIMENSIONS": []})


class Tensorstore:
    name = "tensorstore"

    def open(self, root, name, case, **options):
        spec = {"driver": f"zarr{3 if case['format'] == 3 else ''}", "kvstore": {"driver": "file", "path": os.path.join(root, name)}}
        return tensorstore.open(spec | options.pop("spec", {}), context=self.context, **options).result()

    def __init__(self):
        self.context = tensorstore.Context({"file_io_sync": False})

    def create(self, root, name, case):
        dtype, (shape, chunk, _, _) = type_of(case), LAYOUTS[case["layout"]]
        fill = fill_json(fill_of(case)) if kind_of(dtype) not in "SUV" else None
        if case["format"] == 3:
            metadata = {"shape": shape, "chunk_grid": codec("regular", chunk_shape=chunk), "data_type": dtype.name, "fill_value": fill,
                        "codecs": codecs_3(case), "chunk_key_encoding": codec(case["keys"][:-1], separator=case["keys"][-1])}
        else:
            metadata = {"shape": shape, "chunks": chunk, "dtype": dtype.newbyteorder(">" if case["big_endian"] else "<").str, "fill_value": fill,
                        "order": "C" if case["order"] == "none" or len(shape) < 2 else "F", "compressor": compressor_2(case), "filters": filters_2(case),
                        "dimension_separator": case["keys"][-1]}
        self.open(root, name, case, spec={"metadata": metadata}, create=True)

    def write(self, root, name, case, start, values):
        region = tuple(slice(s, s + n) for s, n in zip(start, values.shape))
        self.open(root, name, case, open=True)[region].write(values).result()

    def read(self, root, name, case):
        return native(self.open(root, name, case, open=True, read=True).read().result())


# ---- one case ----


class Matrix:
    def __init__(self, grove, others, root, verbose):
        self.grove, self.others, self.root, self.verbose = grove, others, root, verbose
        self.counts = {library.name: 0 for library in (grove, *others)}
        self.refused, self.failures = {}, []

    def fail(self, label, case, text):
        self.failures.append(f"{label} {text}\n    {describe(case)}")

    def compare(self, label, case, what, expected, found):
        expected, found = native(expected), native(found)
        if expected.shape == found.shape and expected.tobytes() == found.tobytes():
            return
        if expected.shape != found.shape or expected.dtype != found.dtype:
            self.fail(label, case, f"{what}: {found.dtype}{found.shape} found, {expected.dtype}{expected.shape} expected")
            return
        width = expected.dtype.itemsize
        a, b = (np.frombuffer(x.tobytes(), np.uint8).reshape(-1, width) for x in (expected, found))
        at = int(np.flatnonzero((a != b).any(axis=1))[0])
        self.fail(label, case, f"{what}: element {np.unravel_index(at, expected.shape) if expected.shape else ()} is {b[at].tobytes().hex()}, "
                  f"{a[at].tobytes().hex()} expected; {int((a != b).any(axis=1).sum())} of {len(a)} differ")

    def run(self, label, case, random):
        makers = []
        for library in self.others:
            trouble = known_trouble(library.name, case)
            if trouble is not None:
                self.refused.setdefault((library.name, trouble), []).append((label, case))
                continue
            try:
                library.create(self.root, f"probe-{label}-{library.name}", case)
                makers.append(library)
            except Exception as error:  # what a library does not support it says in many ways
                self.refused.setdefault((library.name, f"{type(error).__name__}: {str(error)[:90]}"), []).append((label, case))
        for maker in (self.grove, *makers):
            try:
                self.made_by(maker, [m for m in makers if m is not maker], label, case, random)
                self.counts[maker.name] += 1
            except Refused as error:
                self.fail(label, case, f"made by {maker.name}: refused by grove: {error}")
            except Exception as error:
                self.fail(label, case, f"made by {maker.name}: {type(error).__name__}: {str(error)[:300]}")
                if self.verbose:
                    raise

    def made_by(self, maker, readers, label, case, random):
        grove, name = self.grove, f"{label}-{maker.name}"
        shape = LAYOUTS[case["layout"]][0]
        maker.create(self.root, name, case)
        expected = np.full(shape, fill_of(case), type_of(case))
        expected.view(f"V{expected.dtype.itemsize}")[...] = fill_of(case).view(f"V{expected.dtype.itemsize}")
        if case["written"] != "none":
            part = shape if case["written"] == "all" or not shape else (shape[0] // 2 + 1, *shape[1:])
            values = values_of(case, random, part)
            maker.write(self.root, name, case, (0,) * len(shape), values)
            expected[tuple(slice(n) for n in part)] = values
        own = maker.read(self.root, name, case)
        exact = filter_of(case) in ("none", "shuffle")
        if maker is grove and exact:
            self.compare(label, case, "made and read by grove", expected, own)
        if maker is not grove:
            expected = own
            self.compare(label, case, f"made by {maker.name}, read by grove", own, grove.read(self.root, name, case))
        for reader in readers if maker is grove else []:
            if reader.name == "zarr-python" and not reader.has_words_of_grove(self.root, name, case):
                self.fail(label, case, "made by grove: zarr-python finds other names of axes or attributes")
            self.compare(label, case, f"made by grove, read by {reader.name}", own, reader.read(self.root, name, case))
        start = tuple(int(random.integers(0, n + 1)) for n in shape)
        count = tuple(int(random.integers(0, n - s + 1)) for n, s in zip(shape, start))
        region = tuple(slice(s, s + n) for s, n in zip(start, count))
        self.compare(label, case, f"made by {maker.name}, region {start} {count} read by grove", own[(*region, ...)], grove.read(self.root, name, case, start, count))
        if maker is grove:
            return
        values = values_of(case, random, count)
        grove.write(self.root, name, case, start, values)
        changed = own.copy()
        changed[(*region, ...)] = values
        if exact:
            self.compare(label, case, f"made by {maker.name}, region {start} {count} changed by grove", changed, maker.read(self.root, name, case))
        self.compare(label, case, f"made by {maker.name}, changed by grove, read by both", maker.read(self.root, name, case), grove.read(self.root, name, case))

    def report(self, n_cases):
        print(f"{n_cases} cases; made by " + ", ".join(f"{name} {count}" for name, count in self.counts.items()))
        for (library, reason), cases in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            if self.verbose or os.environ.get("GROVE_MATRIX_REASONS"):
                print(f"  {library} cannot make {len(cases)}: {reason}\n    e.g. {cases[0][0]}: {describe(cases[0][1])}")
        for text in self.failures[:40]:
            print("FAILED", text)
        return not self.failures


def main():
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    grove = Grove(sys.argv[1])
    wanted = sys.argv[2] if len(sys.argv) > 2 else None
    n_cases = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as work:
        others = [ZarrPython()] + ([Tensorstore()] if tensorstore else [])
        matrix = Matrix(grove, others, None, wanted is not None)
        for group, version, factors in (("3", 3, FACTORS_3), ("filters", 3, FACTORS_FILTERS), ("2", 2, FACTORS_2)):
            matrix.root = os.path.join(work, group)
            for number, case in enumerate(all_pairs(factors)):
                label = f"{group}:{number}"
                if wanted in (None, label):
                    matrix.run(label, dict(format=version) | case, np.random.default_rng([version, number]))
                    n_cases += 1
        grove.close()
    passed = matrix.report(n_cases)
    # each of the others must have taken part, or nothing was compared
    assert wanted or all(count > n_cases // 4 for count in matrix.counts.values()), matrix.counts
    sys.exit(0 if passed else 1)


main()
