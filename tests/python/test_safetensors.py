"""grove's safetensors files are read by the reference package, and the reverse. Argument: the program safetensors_tool."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

NAMES = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8", "float16": "F16", "bool": "BOOL", "int32": "I32"}


def check_written(tool, path):
    subprocess.run([tool, "write", path], check=True)
    tensors = load_file(path)
    expected = {
        "weight": (np.arange(3)[:, None] + np.arange(50)[None, :] / 8).astype(np.float32),
        "moments": 1 / np.arange(1, 5, dtype=np.float64),
        "step": np.array(-12345678901, dtype=np.int64),
        "mask": np.arange(5, dtype=np.uint8),
        "none": np.zeros((0, 3), dtype=np.float32),
    }
    assert tensors.keys() == expected.keys(), tensors.keys()
    for name, value in expected.items():
        assert tensors[name].dtype == value.dtype and tensors[name].shape == value.shape, name
        assert np.array_equal(tensors[name], value), name
    with safe_open(path, "numpy") as file:
        assert file.metadata() == {"producer": 'grove "test"'}, file.metadata()
        assert np.array_equal(file.get_slice("weight")[1:2, 3:7], expected["weight"][1:2, 3:7])


def check_read(tool, path):
    random = np.random.default_rng(1)
    tensors = {
        "a.weight": random.standard_normal((4, 3, 2)).astype(np.float32),
        "b": random.standard_normal(5),
        "half": random.standard_normal(3).astype(np.float16),
        "number": np.array(7, dtype=np.int64),
        "flags": np.array([True, False, True]),
        "bytes": random.integers(0, 256, 9, dtype=np.uint8),
        "indices": np.arange(-3, 3, dtype=np.int32),
        "nothing": np.zeros((2, 0), dtype=np.float32),
    }
    save_file(tensors, path, metadata={"step": "12"})
    lines = subprocess.run([tool, "print", path], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    expected = [
        f"{name} {NAMES[str(value.dtype)]} {'x'.join(map(str, value.shape))} {value.tobytes().hex()}"
        for name, value in sorted(tensors.items())
    ]
    assert lines == expected, (lines, expected)


with tempfile.TemporaryDirectory() as directory:
    check_written(sys.argv[1], os.path.join(directory, "written.safetensors"))
    check_read(sys.argv[1], os.path.join(directory, "read.safetensors"))
