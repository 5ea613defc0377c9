"""What grove stores, zarr-python and xarray read, and the reverse, to the same bytes. Argument: the program zarr_tool."""
import itertools
import os
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import zarr
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec
    if int(zarr.__version__.split(".")[0]) < 3:
        raise ImportError(f"zarr {zarr.__version__} is older than 3")
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
SHAPE = (7, 10, 3)


def values_of(name, seed):
    random = np.random.default_rng(seed)
    if name == "bool":
        return random.integers(0, 2, SHAPE).astype(bool)
    if name.startswith("float"):
        return random.standard_normal(SHAPE).astype(name)
    return random.integers(0, 120, SHAPE).astype(name)


def join(values):
    return ",".join(str(value) for value in values)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def check_written_by_grove(tool, folder):
    """Every type, chunks and shards that do not divide the shape, every compressor, byte orders, keys, fill in what is not written."""
    raw, root = os.path.join(folder, "raw"), os.path.join(folder, "grove")
    layouts = [((3, 4, 3), None), ((4, 6, 3), (2, 3, 3)), ((10, 10, 3), (5, 10, 1))]
    for number, (name, (chunk, inner)) in enumerate(itertools.product(TYPES, layouts)):
        values = values_of(name, number)
        fill = np.array(1, dtype=name)
        flags = ["-", "b", "c", "bck"][number % 4]
        rows = SHAPE[0] if number % 2 else 2
        values.tofile(raw)
        pattern = f"{int.from_bytes(fill.tobytes(), 'little'):x}"
        subprocess.run([tool, "write", root, f"a{number}", raw, name, join(SHAPE), join(chunk), join(inner) if inner else "-",
                        str(number % 5), pattern, flags, str(rows)], check=True)
        values[rows:] = fill
        array = zarr.open_array(root, path=f"a{number}", mode="r")
        assert same(np.ascontiguousarray(array[...]), values), (number, name, chunk, inner)
        assert array.metadata.dimension_names == ("row", None, None) and dict(array.attrs) == {"by": "grove"}, number
        assert array.chunks == (inner or chunk) and array.shards == (chunk if inner else None), number
    assert len(list(zarr.open_group(root, mode="r").array_keys())) == number + 1
    return number + 1


def layouts_of_others():
    """Keyword arguments of zarr.create_array: codecs, shards, transposition, keys, fill values."""
    compressors = [None, ZstdCodec(level=3), ZstdCodec(level=1, checksum=True), GzipCodec(level=6), [GzipCodec(level=1), Crc32cCodec()]]
    compressors += [BloscCodec(cname=c, clevel=5, shuffle=s) for c in ("lz4", "zstd", "blosclz", "zlib", "lz4hc") for s in ("noshuffle", "shuffle", "bitshuffle")]
    for compressor in compressors:
        yield dict(compressors=compressor, chunks=(2, 5, 3))
        yield dict(compressors=compressor, chunks=(2, 3, 3), shards=(4, 6, 3))
    yield dict(chunks=(2, 5, 2), filters=[TransposeCodec(order=(1, 2, 0))])
    yield dict(chunks=(2, 3, 3), shards=(4, 6, 3), filters=[TransposeCodec(order=(2, 0, 1))])
    yield dict(chunks=(2, 3, 3), shards={"shape": (4, 6, 3), "index_location": "start"})
    yield dict(chunks=(3, 3, 3), chunk_key_encoding={"name": "v2", "separator": "."})
    yield dict(chunks=(3, 3, 3), chunk_key_encoding={"name": "v2", "separator": "/"})
    yield dict(chunks=(3, 3, 3), chunk_key_encoding={"name": "default", "separator": "."})


def check_read_by_grove(tool, folder):
    raw, root = os.path.join(folder, "raw"), os.path.join(folder, "python")
    number = 0

    def check(values, written, **layout):
        nonlocal number
        array = zarr.create_array(root, name=f"a{number}", shape=SHAPE, dtype=values.dtype, **layout)
        array[:written] = values[:written]
        subprocess.run([tool, "dump", root, f"a{number}", raw], check=True)
        expected = np.ascontiguousarray(array[...])
        assert np.fromfile(raw, dtype=values.dtype).tobytes() == expected.tobytes(), (number, values.dtype, layout)
        number += 1

    for layout in layouts_of_others():
        check(values_of("float32", number), SHAPE[0], **layout)
    for name in TYPES:
        check(values_of(name, number), 3, chunks=(2, 4, 3), fill_value=np.array(1, dtype=name)[()])
        if np.dtype(name).itemsize > 1:
            check(values_of(name, number), 3, chunks=(2, 5, 3), shards=(4, 10, 3), serializer=BytesCodec(endian="big"))
    for fill in (np.nan, np.inf, -np.inf, 0.1, -0.0, 1e-320):
        check(values_of("float64", number), 3, chunks=(2, 5, 3), fill_value=fill)
        check(values_of("float32", number), 3, chunks=(2, 5, 3), fill_value=np.float32(fill))
    check(values_of("uint64", number), 2, chunks=(2, 5, 3), fill_value=np.uint64(2**64 - 1))
    check(values_of("int64", number), 2, chunks=(2, 5, 3), fill_value=np.int64(-2**63))
    return number


def check_dataset(tool, folder):
    path = os.path.join(folder, "dataset")
    subprocess.run([tool, "dataset", path], check=True)
    group = zarr.open_group(path, mode="r")
    assert dict(group.attrs) == {"grove_dataset": 1, "seed": 7, "generator": {"problem": "sphere"}, "units": {"x": "m"}}, dict(group.attrs)
    assert group["input"].shards == (1, 8, 4, 2) and group["input"].chunks == (1, 4, 4, 2)
    assert group["target"].metadata.dimension_names == ("sample", "x", "y", "t", "target_channel")
    expected_input = np.arange(48, dtype=np.float32).reshape(6, 4, 2)
    expected_target = np.arange(72, dtype=np.float32).reshape(6, 4, 3, 1)
    for sample in (0, 2):
        assert same(group["input"][sample], expected_input + np.float32(100 * sample))
        assert same(group["target"][sample], expected_target + np.float32(1000 * sample))
    assert np.isnan(group["target"][1]).all()
    assert group["status"][...].tolist() == [1, 2, 1]
    try:
        import xarray
    except ImportError as error:
        print("xarray is not there:", error)
        return
    dataset = xarray.open_zarr(path, consolidated=False)
    assert dict(dataset.sizes) == {"sample": 3, "x": 6, "y": 4, "t": 3, "input_channel": 2, "target_channel": 1}, dataset.sizes
    assert dataset["target"].attrs["channels"] == ["vorticity"] and dataset["target"].attrs["units"] == ["1/s"]
    done = dataset.isel(sample=np.flatnonzero(dataset["status"].values == 1))
    assert done["input"].values[1].tobytes() == (expected_input + np.float32(200)).tobytes()


warnings.simplefilter("ignore")
with tempfile.TemporaryDirectory() as work:
    n_written = check_written_by_grove(sys.argv[1], work)
    n_read = check_read_by_grove(sys.argv[1], work)
    check_dataset(sys.argv[1], work)
print(f"{n_written} arrays by grove, {n_read} by zarr-python, a data set")
