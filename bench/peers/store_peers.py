#!/usr/bin/env python3
"""The rows of `grove bench store` by tensorstore or zarr-python, on the files that grove made: same places, same buffers, same threads.

    store_peers.py tensorstore|zarr store:fields:zstd:1024:t2 FOLDER

Prints one JSON object with the values that grove prints. What an expert user of each would do is in bench/peers/README.md.
"""
import concurrent.futures
import ctypes
import importlib.metadata
import json
import mmap
import os
import shutil
import statistics
import sys
import time

import numpy as np

N_WINDOWS, N_SAMPLES, AHEAD, COMPUTE_SECONDS = 8, 64, 8, 1e-3
SLAB_ROWS = {"fields": 8, "points": 2 << 20}
RANDOM_ROWS = {"fields": 16, "points": 256}
SAMPLE_ROWS, SAMPLE_PLANES = 16384, 32


class Problem:
    def __init__(self, text):
        words = text.removeprefix("store:").split(":")
        self.kind, self.codec, self.mebibytes, self.threads, self.repetitions = words[0], words[1], 256, 1, 3
        for word in words[2:]:
            if word[0] == "t":
                self.threads = int(word[1:])
            elif word[0] == "r":
                self.repetitions = int(word[1:])
            elif word.isdigit():
                self.mebibytes = int(word)
        self.cold, self.fresh = "cold" in words, "fresh" in words
        self.name = f"{self.kind}-{self.codec}-{self.mebibytes}"


# ---- the two libraries: open, read a region into memory (or into memory of its own), rows by number, write ----


class Tensorstore:
    """Regions are copied into memory of the caller by a write to a store that is that memory: no array of its own is made."""

    def __init__(self, threads):
        import tensorstore

        self.ts, self.name, self.version = tensorstore, "tensorstore", importlib.metadata.version("tensorstore")
        # no cache of decoded chunks: nothing here is read twice, and keeping them costs half the speed of a full read
        self.context = tensorstore.Context({"data_copy_concurrency": {"limit": threads}, "file_io_concurrency": {"limit": threads},
                                            "file_io_sync": False, "cache_pool": {"total_bytes_limit": 0}})

    def open(self, path, writable=False):
        self.array = self.ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}, context=self.context, open=True,
                                  read=not writable, write=writable).result()
        self.shape = self.array.shape
        return self

    def into(self, out):
        return self.ts.array(out, context=self.context)

    def start_read(self, selection, out):
        part = self.array[selection]
        if out is None:
            return part.read()
        return self.into(out).write(part.translate_to[(0,) * part.rank])

    def read(self, selection, out):
        self.start_read(selection, out).result()

    def read_rows(self, rows, out):
        self.start_read(rows, out).result()

    def prefetch(self, selections, outs):
        """Yields once for each sample that is there, `AHEAD` of them on their way."""
        waiting = [self.start_read(s, outs[i % AHEAD]) for i, s in enumerate(selections[:AHEAD])]
        for i in range(len(selections)):
            waiting.pop(0).result()
            yield
            if i + AHEAD < len(selections):
                waiting.append(self.start_read(selections[i + AHEAD], outs[i % AHEAD]))

    def write(self, start, data):
        self.array[start:start + len(data)].write(data).result()


class Zarr:
    def __init__(self, threads):
        import numcodecs.blosc
        import zarr

        self.zarr, self.name, self.version = zarr, "zarr-python", zarr.__version__
        zarr.config.set({"async.concurrency": max(4, 2 * threads), "threading.max_workers": threads})
        numcodecs.blosc.set_nthreads(threads)
        self.to_buffer = zarr.core.buffer.default_buffer_prototype().nd_buffer.from_numpy_array

    def open(self, path, writable=False):
        self.array = self.zarr.open_array(path, mode="r+" if writable else "r")
        self.shape = self.array.shape
        return self

    def read(self, selection, out):
        self.array.get_basic_selection(selection, out=None if out is None else self.to_buffer(out))

    def read_rows(self, rows, out):
        if np.prod(self.shape[1:]) > 2**18:  # few large rows: one by one is many times faster than a selection by numbers
            for i, row in enumerate(rows):
                self.read(row, None if out is None else out[i])
            return
        # asked for in order: an unsorted selection costs it a sort of the whole result
        order = np.argsort(rows, kind="stable")
        selection = (np.asarray(rows)[order], *[slice(None)] * (len(self.shape) - 1))
        if out is None:
            self.array.get_orthogonal_selection(selection)
        else:
            out[order] = self.array.get_orthogonal_selection(selection)

    def prefetch(self, selections, outs):
        with concurrent.futures.ThreadPoolExecutor(AHEAD) as pool:
            start = lambda i: pool.submit(self.read, selections[i], outs[i % AHEAD])
            waiting = [start(i) for i in range(min(AHEAD, len(selections)))]
            for i in range(len(selections)):
                waiting.pop(0).result()
                yield
                if i + AHEAD < len(selections):
                    waiting.append(start(i + AHEAD))

    def write(self, start, data):
        self.array[start:start + len(data)] = data


# ---- the page cache ----


def drop_pages(folder):
    """Fraction of the pages that stayed, by mincore."""
    libc = ctypes.CDLL(None, use_errno=True)
    resident = total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                n = os.fstat(file.fileno()).st_size
                if n == 0:
                    continue
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                with mmap.mmap(file.fileno(), n, access=mmap.ACCESS_READ) as mapped:
                    view = np.frombuffer(mapped, np.uint8)
                    present = np.zeros(-(-n // mmap.PAGESIZE), np.uint8)
                    if libc.mincore(ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(n), ctypes.c_void_p(present.ctypes.data)) != 0:
                        raise OSError(ctypes.get_errno(), "mincore")
                    resident += int((present & 1).sum())
                    total += len(present)
                    del view
    return resident / total


# ---- the rows ----


class Bench:
    def __init__(self, library, problem, folder):
        self.library, self.problem, self.folder = library, problem, folder
        self.path = os.path.join(folder, problem.name)
        self.written = os.path.join(folder, f"written-by-{library.name}")
        self.array = library.open(self.path)
        self.shape = tuple(self.array.shape)
        self.n_rows = self.shape[0]
        self.slab_rows = min(SLAB_ROWS[problem.kind], self.n_rows)
        self.window_rows = max(1, self.n_rows // 100)
        self.random_rows = min(RANDOM_ROWS[problem.kind], self.n_rows)
        self.slab = np.empty((max(self.slab_rows, self.window_rows, self.random_rows), *self.shape[1:]), np.float32)
        self.slab[...] = 1
        sample = (SAMPLE_ROWS, self.shape[1]) if problem.kind == "points" else (SAMPLE_PLANES, *self.shape[2:])
        self.sample_buffers = [None if problem.fresh else np.ones(sample, np.float32) for _ in range(AHEAD)]
        self.block = np.ones(4096, np.float32)

    def start(self, i, count, factor=2654435761, n=None):
        """As random_start of src/store/store_bench.c."""
        return ((i + 1) * factor % 2**32) * ((self.n_rows if n is None else n) - count + 1) >> 32

    def out(self, n):
        return None if self.problem.fresh else self.slab[:n]

    def full(self):
        for first in range(0, self.n_rows, self.slab_rows):
            n = min(self.slab_rows, self.n_rows - first)
            self.array.read(slice(first, first + n), self.out(n))

    def window(self):
        for i in range(N_WINDOWS):
            first = self.start(i, self.window_rows)
            self.array.read(slice(first, first + self.window_rows), self.out(self.window_rows))

    def rows(self):
        self.array.read_rows([self.start(i, 1) for i in range(self.random_rows)], self.out(self.random_rows))

    def sample(self, i):
        if self.problem.kind == "points":
            first = self.start(i, SAMPLE_ROWS)
            return slice(first, first + SAMPLE_ROWS)
        plane = self.start(i, SAMPLE_PLANES, 2246822519, self.shape[1])
        return self.start(i, 1), slice(plane, plane + SAMPLE_PLANES)

    def samples(self):
        for _ in self.array.prefetch([self.sample(i) for i in range(N_SAMPLES)], self.sample_buffers):
            end = time.perf_counter() + COMPUTE_SECONDS
            while time.perf_counter() < end:  # numpy lets go of the interpreter's lock in here, as a training step does
                np.sin(self.block, out=self.block)

    def write(self, n_rows=None):
        with open(os.path.join(self.path, "zarr.json")) as file:
            metadata = json.load(file)
        unit = metadata["chunk_grid"]["configuration"]["chunk_shape"][0]
        metadata["shape"][0] = n_rows = n_rows or max(1, self.n_rows // unit // 4) * unit
        os.makedirs(self.written)
        with open(os.path.join(self.written, "zarr.json"), "w") as file:
            json.dump(metadata, file)
        target = type(self.library)(self.problem.threads).open(self.written, writable=True)
        for first in range(0, n_rows, self.slab_rows):
            target.write(first, self.slab[:min(self.slab_rows, n_rows - first)])

    def seconds_of(self, name, calls):
        if name == "write":
            shutil.rmtree(self.written, ignore_errors=True)
            os.sync()  # what was written before is on the disk, and not in the way
        elif self.problem.cold:
            self.resident = max(self.resident, drop_pages(self.path))
        start, cpu = time.perf_counter(), time.process_time()
        getattr(self, name)()
        seconds = (time.perf_counter() - start) / calls, (time.process_time() - cpu) / calls
        shutil.rmtree(self.written, ignore_errors=True)
        return seconds

    def run(self):
        calls = dict(full=1, window=N_WINDOWS, rows=1, samples=1) | ({} if self.problem.cold or self.problem.fresh else dict(write=1))
        times, self.resident = {name: [] for name in calls}, 0.0
        self.array.read(slice(0, self.slab_rows), self.out(self.slab_rows))
        self.window()
        shutil.rmtree(self.written, ignore_errors=True)
        self.write(self.slab_rows)
        shutil.rmtree(self.written)
        for _ in range(self.problem.repetitions):
            for name in calls:
                times[name].append(self.seconds_of(name, calls[name]))
        result = dict(library=self.library.name, version=self.library.version)
        for name, pairs in times.items():
            result[f"{name}_seconds"], result[f"{name}_cpu_seconds"] = (statistics.median(t) for t in zip(*pairs))
        if self.problem.cold:
            result["resident_fraction"] = self.resident
        return result


if __name__ == "__main__":
    task = Problem(sys.argv[2])
    print(json.dumps(Bench({"tensorstore": Tensorstore, "zarr": Zarr}[sys.argv[1]](task.threads), task, sys.argv[3]).run()))
