#!/usr/bin/env python3
"""The Fourier neural operator that grove is compared with, in PyTorch, as a user of it writes it.

    fno_torch.py fno:64x64x64x16w20m12,12,12,6:peer --threads 1

A 1x1 lift from one channel to the width; blocks of (real FFT over all axes, low modes times complex weights, inverse) plus a 1x1 skip
with bias, GELU between blocks; 1x1 projection to 128, GELU, to one channel; mean squared error; Adam. float32, channels first.
Prints the medians of the forward pass without gradients and of a whole training step, after one warm-up of each.

Started directly it measures page faults more than PyTorch: use fno_torch_ratio.py, which sets the allocator up, or do it yourself:
MALLOC_MMAP_THRESHOLD_=40000000000 MALLOC_TRIM_THRESHOLD_=400000000000, OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE unset.
"""
import argparse
import glob
import itertools
import json
import os
import platform
import re
import resource
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROBLEM = re.compile(r"fno:(?P<n>\d+(?:x\d+)*)w(?P<width>\d+)m(?P<modes>\d+(?:,\d+)*):peer$")


def parse_problem(text):
    """'fno:64x64x64x16w20m12,12,12,6:peer' -> (points per axis, width, modes per axis)."""
    match = PROBLEM.match(text)
    if not match:
        raise ValueError(f"problem must look like fno:64x64x64x16w20m12,12,12,6:peer, got '{text}'")
    n, modes = [int(k) for k in match["n"].split("x")], [int(k) for k in match["modes"].split(",")]
    if len(n) != len(modes):
        raise ValueError(f"'{text}' has {len(n)} axes and {len(modes)} mode counts")
    return n, int(match["width"]), modes


def build(width, modes, blocks, hidden):
    """The network as a torch module over [sample, 1, axes...]."""
    import torch

    axes = list(range(2, 2 + len(modes)))

    class Linear(torch.nn.Linear):
        def forward(self, x):
            y = torch.einsum("oi,bi...->bo...", self.weight, x)
            return y + self.bias.view(1, -1, *[1] * len(axes))

    class Spectral(torch.nn.Module):
        """One weight tensor per corner of the spectrum: the low positive or negative frequencies of each axis but the last.
        Stored as (re, im), because torch's fused Adam refuses complex tensors."""

        def __init__(self):
            super().__init__()
            self.corners = list(itertools.product((False, True), repeat=len(modes) - 1))
            self.weights = torch.nn.ParameterList(
                torch.nn.Parameter(torch.rand(width, width, *modes, 2) / width**2) for _ in self.corners)

        def forward(self, x):
            spectrum = torch.fft.rfftn(x, dim=axes)
            mixed = torch.zeros_like(spectrum)
            for corner, weight in zip(self.corners, self.weights):
                kept = tuple(slice(-m, None) if negative else slice(0, m) for negative, m in zip(corner, modes)) + (slice(0, modes[-1]),)
                at = (slice(None), slice(None), *kept)
                mixed[at] = torch.einsum("bi...,io...->bo...", spectrum[at], torch.view_as_complex(weight))
            return torch.fft.irfftn(mixed, s=x.shape[2:], dim=axes)

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lift = Linear(1, width)
            self.spectral = torch.nn.ModuleList(Spectral() for _ in range(blocks))
            self.skip = torch.nn.ModuleList(Linear(width, width) for _ in range(blocks))
            self.hidden, self.out = Linear(width, hidden), Linear(hidden, 1)

        def forward(self, x):
            gelu = torch.nn.functional.gelu
            x = self.lift(x)
            for b in range(blocks):
                x = self.spectral[b](x) + self.skip[b](x)
                if b < blocks - 1:
                    x = gelu(x)
            return self.out(gelu(self.hidden(x)))

    return Network()


def check_against_golden():
    """Largest relative error of output and loss on the stored case fno_peer: the peer computes what grove computes."""
    import torch

    sys.path.insert(0, os.path.join(ROOT, "tests", "golden"))
    import fno_golden

    config, stored = fno_golden.settings("fno_peer"), {}
    for path in glob.glob(os.path.join(ROOT, "tests", "golden", "fno_peer*.safetensors")):
        stored |= fno_golden.read_safetensors(path)[0]
    tensor = lambda name: torch.from_numpy(stored[name].copy()).float()
    net = build(config["width"], config["modes"], config["blocks"], *config["projection_hidden"])
    with torch.no_grad():
        layers = {"lift.0": net.lift, "projection.0": net.hidden, "projection.1": net.out}
        layers |= {f"block.{b}.skip": net.skip[b] for b in range(config["blocks"])}
        for name, layer in layers.items():
            layer.weight.copy_(tensor(f"param.{name}.weight").T)
            layer.bias.copy_(tensor(f"param.{name}.bias"))
        for b, spectral in enumerate(net.spectral):
            weight = tensor(f"param.block.{b}.spectral.weight")
            for corner, mine in zip(spectral.corners, spectral.weights):
                kept = tuple(slice(m, None) if negative else slice(0, m) for negative, m in zip(corner, config["modes"]))
                mine.copy_(weight[kept].movedim((-3, -2), (0, 1)))
        output = net(tensor("input").movedim(-1, 1)).movedim(1, -1)
        loss = torch.nn.functional.mse_loss(output, tensor("target"))
    return max(float((output - tensor("output")).norm() / tensor("output").norm()), abs(float(loss / tensor("loss")) - 1))


def measure(arguments):
    """Medians in seconds of forward and step."""
    import torch

    n, width, modes = parse_problem(arguments.problem)
    torch.manual_seed(0)
    net = build(width, modes, arguments.blocks, 128)
    adam = torch.optim.Adam(net.parameters(), 1e-3, fused=arguments.adam == "fused")
    x, y = torch.randn(arguments.batch, 1, *n), torch.randn(arguments.batch, 1, *n)
    forward, step = [], []
    for _ in range(arguments.repetitions + 1):
        start = time.perf_counter()
        with torch.no_grad():
            net(x)
        forward.append(time.perf_counter() - start)
        start = time.perf_counter()
        adam.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        adam.step()
        step.append(time.perf_counter() - start)
    return statistics.median(forward[1:]), statistics.median(step[1:])


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def blas_name():
    import torch

    match = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return match[1] if match else "MKL" if torch.backends.mkl.is_available() else "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--adam", choices=("default", "fused"), default="fused", help="which of torch's Adam implementations")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        parse_problem(arguments.problem)
    except ValueError as error:
        parser.error(str(error))
    import torch

    torch.set_num_threads(arguments.threads)
    error = check_against_golden()
    forward, step = measure(arguments)
    result = dict(problem=arguments.problem, framework="torch", version=torch.__version__, blas=blas_name(), mkl=torch.backends.mkl.is_available(),
                  cpu=cpu_name(), threads=torch.get_num_threads(), blocks=arguments.blocks, batch=arguments.batch, adam=arguments.adam,
                  warm_allocator="MALLOC_MMAP_THRESHOLD_" in os.environ and "MALLOC_TRIM_THRESHOLD_" in os.environ,
                  repetitions=arguments.repetitions, forward_seconds=forward, median_seconds=step,
                  peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, golden_error=error, correct=error < 1e-5)
    if arguments.json:
        print(json.dumps(result))
    else:
        print("\n".join(f"{key:18s} {value}" for key, value in result.items()))
    return 0 if result["correct"] else 1


if __name__ == "__main__":
    sys.exit(main())
