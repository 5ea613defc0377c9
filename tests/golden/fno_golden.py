#!/usr/bin/env python3
"""Reference values for grove's Fourier neural operators, computed in float64 by PyTorch.

    fno_golden.py                     writes every case into the folder of this script
    fno_golden.py --case fno_tiny     only that one
    fno_golden.py --check             writes nothing; recomputes and compares with the stored files
    fno_golden.py --counts            parameter counts of published networks, no torch needed

The network (channels last, axes x, y, z, t or the first few of them; the last one is the one-sided axis):

    coordinates   optional: one channel per axis, value i/(n-1), appended after the input's channels in axis order
    lift          1x1 layers c_in -> lift_hidden... -> width; activation after each hidden one, after the last if lift_last
    pad           zeros appended at the end of each axis
    blocks        activation(spectral(x) + x W + b); no activation after the last block unless block_last
    crop          the padding removed
    projection    1x1 layers width -> projection_hidden... -> c_out; activation after each but the last

spectral(x): unnormalised forward transform, the kept modes multiplied by their complex [c_in][c_out] matrices, all other modes
zero, inverse with 1/N. Two-sided axes keep frequencies 0..m-1, -m..-1, the last axis 0..k-1. The inverse runs over the two-sided
axes first; the imaginary part of bin 0 (and n/2) of the last axis is ignored after that.

Inputs, targets and parameters are rounded to float32, so that a float32 implementation starts from the same numbers.
"""
import argparse
import itertools
import json
import math
import os
import struct
import sys

SHARD_BYTES = 280_000  # a case that is larger is split over several files
SKIPPED = 77  # exit status that ctest counts as skipped

DEFAULTS = dict(samples=2, blocks=4, coordinates=False, lift_hidden=[], lift_last=False, block_last=False,
                activation="gelu", loss="relative_l2", seed=1)
PAPER = dict(activation="relu", lift_last=True, block_last=True)  # the parallel FNO of SciAI4Industry

CASES = {
    "fno_tiny": dict(PAPER, n=[10, 9, 8, 6], modes=[2, 2, 2, 2], pad=[0, 0, 0, 2], width=4, c_in=3, c_out=1,
                     lift_hidden=[2], projection_hidden=[32]),
    "fno_peer": dict(n=[8, 7, 6, 5], modes=[3, 3, 2, 2], width=5, c_in=1, c_out=1, blocks=2, projection_hidden=[16],
                     loss="mse", samples=1),
    "fno_1d": dict(n=[33], modes=[7], width=6, c_in=1, c_out=1, coordinates=True, projection_hidden=[16], samples=3),
    "fno_2d": dict(n=[13, 12], modes=[4, 3], width=6, c_in=2, c_out=1, coordinates=True, projection_hidden=[16]),
    "fno_3d": dict(PAPER, n=[7, 9, 8], modes=[3, 2, 3], pad=[0, 2, 1], width=4, c_in=2, c_out=2, blocks=3,
                   lift_hidden=[3], projection_hidden=[8]),
    # Every mode there is: 2m = n on both two-sided axes that are even, k = n/2 + 1 with the Nyquist bin on the last one.
    "fno_edge": dict(n=[6, 5, 4, 6], modes=[3, 2, 2, 4], width=3, c_in=2, c_out=1, blocks=2, projection_hidden=[8]),
    "fno_edge_1d": dict(n=[8], modes=[5], width=3, c_in=1, c_out=2, blocks=2, projection_hidden=[], samples=2, loss="mse"),
}


def settings(case):
    config = dict(DEFAULTS, **CASES[case])
    config.setdefault("pad", [0] * len(config["n"]))
    return config


# ---------------------------------------------------------------- sizes, without torch

def mode_counts(modes):
    """Complex modes kept along each axis."""
    return [2 * m for m in modes[:-1]] + [modes[-1]]


def layer_widths(config):
    """Channel counts along the lift and along the projection."""
    c_in = config["c_in"] + (len(config["n"]) if config["coordinates"] else 0)
    return ([c_in] + config["lift_hidden"] + [config["width"]], [config["width"]] + config["projection_hidden"] + [config["c_out"]])


def parameter_shapes(config):
    """Name -> shape, in the order of use."""
    lift, projection = layer_widths(config)
    w = config["width"]
    shapes = {}
    for i, (a, b) in enumerate(zip(lift, lift[1:])):
        shapes[f"lift.{i}.weight"], shapes[f"lift.{i}.bias"] = (a, b), (b,)
    for i in range(config["blocks"]):
        shapes[f"block.{i}.spectral.weight"] = (*mode_counts(config["modes"]), w, w, 2)
        shapes[f"block.{i}.skip.weight"], shapes[f"block.{i}.skip.bias"] = (w, w), (w,)
    for i, (a, b) in enumerate(zip(projection, projection[1:])):
        shapes[f"projection.{i}.weight"], shapes[f"projection.{i}.bias"] = (a, b), (b,)
    return shapes


def parameter_count(**config):
    config = dict(DEFAULTS, n=[0] * len(config["modes"]), **config)
    return sum(math.prod(shape) for shape in parameter_shapes(config).values())


def published_counts():
    """(network, printed count, what the formula gives). Complex weights count twice; batch norm adds 2 w per block and is not here."""
    fno = dict(c_out=1, projection_hidden=[128])
    paper = dict(c_out=1, projection_hidden=[32])
    norm = 2 * 20 * 4
    yield "FNO-1D Burgers", 549_569, parameter_count(c_in=2, modes=[16], width=64, **fno)
    yield "FNO-2D Darcy", 2_368_001, parameter_count(c_in=3, modes=[12, 12], width=32, **fno)
    yield "FNO-2D Navier-Stokes", 414_517, parameter_count(c_in=12, modes=[8, 8], width=20, **fno) + norm
    yield "FNO-3D Navier-Stokes", 6_558_537, parameter_count(c_in=13, modes=[8, 8, 8], width=20, **fno) + norm
    ns = dict(c_in=3, modes=[18, 18, 18, 12], width=12, **paper)
    sleipner = dict(c_in=4, modes=[16, 16, 12, 10], width=10, **paper)
    for name, config, per_block in (("parallel FNO, Navier-Stokes", ns, 80_621_568), ("parallel FNO, Sleipner", sleipner, 24_576_000)):
        yield name + ", complex weights of a block", per_block, math.prod(mode_counts(config["modes"])) * config["width"] ** 2
        lift = config["width"] // 2
        yield name + ", all", None, parameter_count(lift_hidden=[lift], **config)
    yield "peer 20 x (12,12,12,6)", None, parameter_count(c_in=1, modes=[12, 12, 12, 6], width=20, **fno)


def print_counts():
    wrong = 0
    for name, printed, ours in published_counts():
        wrong += printed not in (None, ours)
        print(f"{name:55s} {ours:13,d}  " + ("not published" if printed is None else "as published" if printed == ours else f"PUBLISHED {printed:,d}"))
    return wrong


# ---------------------------------------------------------------- the network

def make_values(config):
    """Parameters, input and target in float64, each number representable in float32."""
    import numpy as np
    import torch

    numbers = np.random.Generator(np.random.Philox(key=config["seed"]))

    def draw(shape, low, high):
        return torch.from_numpy(numbers.uniform(low, high, shape).astype(np.float32).astype(np.float64))

    parameters = {}
    for name, shape in parameter_shapes(config).items():
        scale = 1 / config["width"] if "spectral" in name else 1 / math.sqrt(shape[-1])
        parameters[name] = draw(shape, -scale, scale).requires_grad_()
    grid = [config["samples"], *config["n"]]
    return parameters, draw((*grid, config["c_in"]), -1, 1), draw((*grid, config["c_out"]), -1, 1)


def kept(config, n):
    """Index lists of the kept frequencies, one per axis, as an open mesh."""
    import numpy as np

    two_sided = [np.r_[0:m, length - m:length] for m, length in zip(config["modes"][:-1], n[:-1])]
    return np.ix_(*two_sided, np.arange(config["modes"][-1]))


def spectral(config, x, weight):
    """x [sample, axes..., c_in] -> [sample, axes..., c_out]."""
    import torch

    n = list(x.shape[1:-1])
    axes = list(range(1, len(n) + 1))
    index = (slice(None), *kept(config, n))
    modes = torch.fft.rfftn(x, dim=axes)
    mixed = torch.einsum("n...i,...io->n...o", modes[index], torch.view_as_complex(weight))
    spectrum = torch.zeros(*modes.shape[:-1], weight.shape[-2], dtype=mixed.dtype).index_put(
        (torch.arange(x.shape[0]).reshape(-1, *[1] * len(n)), *map(torch.as_tensor, index[1:])), mixed)
    if axes[:-1]:
        spectrum = torch.fft.ifftn(spectrum, dim=axes[:-1])
    return torch.fft.irfft(spectrum, n=n[-1], dim=axes[-1])


def with_coordinates(x):
    """x with one channel i/(n-1) per axis appended."""
    import torch

    n = x.shape[1:-1]
    lines = [torch.arange(length, dtype=x.dtype) / max(length - 1, 1) for length in n]
    mesh = torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1)
    return torch.cat([x, mesh.expand(x.shape[0], *mesh.shape)], dim=-1)


class Network:
    """The forward pass; `kink` is the smallest |argument| of a ReLU over the root mean square of its layer."""

    def __init__(self, config, parameters):
        self.config, self.parameters, self.kink = config, parameters, math.inf

    def activate(self, z):
        import torch

        if self.config["activation"] == "gelu":
            return torch.nn.functional.gelu(z)  # exact: z Phi(z)
        self.kink = min(self.kink, float((z.abs() / z.square().mean().sqrt()).min().detach()))
        return torch.relu(z)

    def linear(self, name, x):
        return x @ self.parameters[name + ".weight"] + self.parameters[name + ".bias"]

    def stack(self, name, n_layers, activate_last, x):
        for i in range(n_layers):
            x = self.linear(f"{name}.{i}", x)
            if i < n_layers - 1 or activate_last:
                x = self.activate(x)
        return x

    def __call__(self, x):
        import torch

        config = self.config
        n = x.shape[1:-1]
        if config["coordinates"]:
            x = with_coordinates(x)
        x = self.stack("lift", len(config["lift_hidden"]) + 1, config["lift_last"], x)
        at_end = itertools.chain.from_iterable((0, p) for p in reversed(config["pad"]))
        x = torch.nn.functional.pad(x, (0, 0, *at_end))
        for b in range(config["blocks"]):
            x = spectral(config, x, self.parameters[f"block.{b}.spectral.weight"]) + self.linear(f"block.{b}.skip", x)
            if b < config["blocks"] - 1 or config["block_last"]:
                x = self.activate(x)
        x = x[(slice(None), *(slice(0, length) for length in n))]
        return self.stack("projection", len(config["projection_hidden"]) + 1, False, x)


def loss_of(config, output, target):
    """Mean over the batch of ||p - y|| / ||y||, norms over everything else of a sample; or the mean of (p - y)^2."""
    error, truth = (output - target).flatten(1), target.flatten(1)
    if config["loss"] == "mse":
        return error.square().mean()
    return (error.norm(dim=1) / truth.norm(dim=1)).mean()


def run(config, dtype):
    """Name -> numpy array of everything that is stored, and the network."""
    parameters, x, y = make_values(config)
    parameters = {name: p.detach().to(dtype).requires_grad_() for name, p in parameters.items()}
    x, y = x.to(dtype), y.to(dtype)
    network = Network(config, parameters)
    output = network(x)
    loss = loss_of(config, output, y)
    loss.backward()
    tensors = dict(input=x, target=y, output=output, loss=loss)
    tensors |= {"param." + name: p for name, p in parameters.items()}
    tensors |= {"grad." + name: p.grad for name, p in parameters.items()}
    return {name: t.detach().numpy() for name, t in tensors.items()}, network


# ---------------------------------------------------------------- the oracle's own checks

def relative(a, b):
    import numpy as np

    scale = np.linalg.norm(b)
    return float(np.linalg.norm(np.subtract(a, b)) / scale) if scale else float(np.linalg.norm(a))


def direct_spectral(config, x, weight):
    """spectral() from its definition, as sums over points and modes with explicit exponentials."""
    import numpy as np

    n = x.shape[1:-1]
    frequencies = [np.r_[0:m, -m:0] for m in config["modes"][:-1]] + [np.arange(config["modes"][-1])]
    waves = [np.exp(-2j * np.pi * np.outer(f, np.arange(length)) / length) for f, length in zip(frequencies, n)]
    modes = x.astype(complex)
    for axis, wave in enumerate(waves, start=1):
        modes = np.moveaxis(np.tensordot(wave, modes, axes=(1, axis)), 0, axis)
    y = np.einsum("n...i,...io->n...o", modes, weight[..., 0] + 1j * weight[..., 1])
    for axis, wave in enumerate(waves[:-1], start=1):
        y = np.moveaxis(np.tensordot(wave.conj().T, y, axes=(1, axis)), 0, axis)
    last, length = frequencies[-1], n[-1]
    fold = np.where((last == 0) | (2 * last == length), 1, 2)
    angle = 2 * np.pi * np.outer(np.arange(length), last) / length
    axis = len(n)
    real = np.tensordot(np.cos(angle) * fold, y.real, axes=(1, axis)) - np.tensordot(np.sin(angle) * fold, y.imag, axes=(1, axis))
    return np.moveaxis(real, 0, axis) / math.prod(n)


def self_check(case, config, tensors, network):
    """The spectral layer against its definition, gradients against central differences, and what float32 reaches."""
    import numpy as np
    import torch

    rng = np.random.default_rng(0)
    padded = [length + p for length, p in zip(config["n"], config["pad"])]
    x = rng.standard_normal((2, *padded, config["width"]))
    weight = tensors["param.block.0.spectral.weight"]
    ours = spectral(config, torch.from_numpy(x), torch.from_numpy(weight)).numpy()
    spectral_error = relative(ours, direct_spectral(config, x, weight))

    x, y = torch.from_numpy(tensors["input"]), torch.from_numpy(tensors["target"])
    slope_error = 0.0
    for name in parameter_shapes(config):
        parameter, gradient = tensors["param." + name], tensors["grad." + name]
        direction = gradient * rng.uniform(0.5, 1.5, gradient.shape)  # random, yet with a slope that is not small
        direction *= np.linalg.norm(parameter) / np.linalg.norm(direction)
        h = 1e-6

        def loss_at(step):
            moved = {key: torch.from_numpy(tensors["param." + key] + (step * direction if key == name else 0)) for key in parameter_shapes(config)}
            return float(loss_of(config, Network(config, moved)(x), y))

        expected = float((gradient * direction).sum())
        slope_error = max(slope_error, abs((loss_at(h) - loss_at(-h)) / (2 * h) / expected - 1))

    single, _ = run(config, torch.float32)
    single_error = max((relative(single[name], tensors[name]), name) for name in tensors)
    print(f"{case}: spectral layer against its definition {spectral_error:.1e}, gradients against differences {slope_error:.1e}, "
          f"float32 differs most in {single_error[1]}: {single_error[0]:.1e}" +
          (f", nearest ReLU kink {network.kink:.1e}" if config["activation"] == "relu" else ""))
    assert spectral_error < 1e-13 and slope_error < 1e-5 and single_error[0] < 1e-5
    assert network.kink > 1e-6, "a float32 run may fall on the other side of a ReLU: take another seed"


# ---------------------------------------------------------------- safetensors

def write_safetensors(path, tensors, metadata):
    header, offset = {"__metadata__": metadata}, 0
    for name, t in tensors.items():
        header[name] = dict(dtype="F64", shape=list(t.shape), data_offsets=[offset, offset + t.nbytes])
        offset += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            file.write(t.astype("<f8").tobytes())


def read_safetensors(path):
    import numpy as np

    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    return {name: np.frombuffer(data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]], "<f8").reshape(e["shape"])
            for name, e in header.items()}, metadata


def shards(tensors):
    """The tensors in groups of at most SHARD_BYTES, order kept."""
    groups, room = [], 0
    for name, t in tensors.items():
        if t.nbytes > room:
            groups.append({})
            room = SHARD_BYTES
        groups[-1][name] = t
        room -= t.nbytes
    return groups


def shard_paths(folder, case, count):
    if count == 1:
        return [os.path.join(folder, f"{case}.safetensors")]
    return [os.path.join(folder, f"{case}-{i:05d}-of-{count:05d}.safetensors") for i in range(1, count + 1)]


def store(folder, case, config, tensors):
    import numpy
    import torch

    metadata = dict(case=case, config=json.dumps(config, sort_keys=True), torch=torch.__version__, numpy=numpy.__version__, seed=str(config["seed"]))
    groups = shards(tensors)
    for path, group in zip(shard_paths(folder, case, len(groups)), groups):
        write_safetensors(path, group, metadata)
        print(f"  {os.path.basename(path)}  {os.path.getsize(path):,d} bytes")


def compare(folder, case, config, tensors):
    """Stored values against recomputed ones: the given ones equal, the computed ones to rounding."""
    groups = shards(tensors)
    stored = {}
    for path in shard_paths(folder, case, len(groups)):
        part, metadata = read_safetensors(path)
        assert json.loads(metadata["config"]) == config, f"{path}: other settings than this script's"
        stored |= part
    assert stored.keys() == tensors.keys()
    worst = max((relative(stored[name], tensors[name]), name) for name in tensors)
    print(f"  stored values differ most in {worst[1]}: {worst[0]:.1e}")
    assert worst[0] < 1e-12


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append", help="only this one; may be given several times")
    parser.add_argument("--folder", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--check", action="store_true", help="compare with the stored files instead of writing them")
    parser.add_argument("--counts", action="store_true", help="print parameter counts of published networks and stop")
    arguments = parser.parse_args()
    if arguments.counts:
        return print_counts()
    try:
        import torch
    except ImportError:
        print("skipped: this Python has no torch")
        return SKIPPED

    torch.set_num_threads(1)
    for case in arguments.case or CASES:
        config = settings(case)
        tensors, network = run(config, torch.float64)
        self_check(case, config, tensors, network)
        (compare if arguments.check else store)(arguments.folder, case, config, tensors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
