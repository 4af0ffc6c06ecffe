#!/usr/bin/env python3
"""Tries what Partita makes of modules whose weights exporters fold, slice, copy or confuse with
constants: each is exported by PyTorch in four ways, trained for three steps by both and exported
again. Needs the environment of make_venv, and partita in the PATH.

    try_exports.py [--work DIR] [MODULE...]

A line per module and way of exporting: "equal", the outputs after three steps differ by less than
1e-5 of the largest; "said", they differ, and compile has warned; "DIFFERENT", nobody has said a
word, which makes the exit code 1.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
from safetensors.numpy import load_file, save_file
from torch import nn
from torch.nn.functional import linear
from torch.nn.utils.parametrizations import weight_norm

BATCH, STEPS, RATE, TOLERANCE = 4, 3, 0.05, 1e-5


class Chain(nn.Module):
    """Linear, a module, linear, on vectors or, if `long`, on sequences of them."""

    def __init__(self, middle, first=None, long=False):
        super().__init__()
        self.first, self.middle, self.last = first or nn.Linear(4, 8), middle, nn.Linear(8, 3)
        self.long = long

    def example(self):
        return torch.randn(BATCH, 5, 4) if self.long else torch.randn(BATCH, 4)

    def forward(self, x):
        return self.last(torch.tanh(self.middle(self.first(x))))


class Groups(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv1d(4, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Linear(4, 3)

    def example(self):
        return torch.randn(BATCH, 4, 6)

    def forward(self, x):
        return self.last(self.norm(self.conv(x)).mean(-1))


class Buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("row", torch.randn(1, 8))

    def forward(self, x):
        return x + self.row


class Scaled(nn.Module):
    """A parameter that is scaled inside the decomposition of the operation that reads it."""

    def __init__(self, operation, alpha):
        super().__init__()
        self.row, self.operation, self.alpha = nn.Parameter(torch.randn(1, 8)), operation, alpha

    def forward(self, x):
        return self.operation(x, self.row, alpha=self.alpha)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.middle, self.head = nn.Embedding(11, 6), nn.Linear(6, 6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.table.weight

    def example(self):
        return torch.randint(0, 11, (BATCH, 5))

    def forward(self, x):
        return self.head(torch.tanh(self.middle(self.table(x))))


class Sliced(nn.Module):
    """A weight cut into slices, which share `shared` rows."""

    def __init__(self, shared):
        super().__init__()
        self.weight, self.last, self.shared = nn.Parameter(torch.zeros(12, 4)), nn.Linear(6, 3), shared

    def example(self):
        return torch.randn(BATCH, 5, 4)

    def forward(self, x):
        begin = 6 - self.shared
        return self.last(torch.tanh(linear(x, self.weight[:6])) * linear(x, self.weight[begin:begin + 6]))


class Repeated(nn.Module):
    """One layer, twice."""

    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def example(self):
        return torch.randn(BATCH, 5, 4)

    def forward(self, x):
        return self.last(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


MODULES = {
    "layernorm-without-weights": lambda: Chain(nn.LayerNorm(8, elementwise_affine=False)),
    "groupnorm": Groups,
    "buffer": lambda: Chain(Buffer()),
    "add-scaled": lambda: Chain(Scaled(torch.add, 0.5)),
    "subtract-scaled": lambda: Chain(Scaled(torch.sub, 2.0)),
    "prelu": lambda: Chain(nn.PReLU(8)),
    "weightnorm": lambda: Chain(nn.Identity(), weight_norm(nn.Linear(4, 8))),
    "weightnorm-on-sequences": lambda: Chain(nn.Identity(), weight_norm(nn.Linear(4, 8)), long=True),
    "linear-on-sequences": lambda: Chain(nn.Identity(), long=True),
    "tied": Tied,
    "slices": lambda: Sliced(0),
    "slices-that-overlap": lambda: Sliced(3),
    "layer-twice": Repeated,
}
WAYS = ["dynamo", "dynamo-unoptimized", "torchscript", "torchscript-unfolded"]


def export(module, example, way, path):
    if way.startswith("dynamo"):
        sizes = {"x": {0: torch.export.Dim("batch", min=2, max=64)}}
        torch.onnx.export(module, (example,), dynamo=True, optimize=way == "dynamo", dynamic_shapes=sizes,
                          output_names=["y"], verbose=False).save(path)
    else:
        torch.onnx.export(module, (example,), path, dynamo=False, do_constant_folding=way == "torchscript",
                          opset_version=17, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}})


def train(module, x, targets):
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.mse_loss(module(x), targets).backward()
        optimizer.step()
    return module(x).detach().numpy()


def partita(*arguments):
    done = subprocess.run(["partita", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1])
    return done.stderr


def attempt(name, way, folder):
    torch.manual_seed(0)
    module = MODULES[name]()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.4)
    x = module.example() if hasattr(module, "example") else torch.randn(BATCH, 4)
    path = lambda file: os.path.join(folder, file)  # noqa: E731
    export(module, x, way, path("model.onnx"))
    targets = torch.randn_like(module(x))
    save_file({"x": x.numpy(), "labels": targets.numpy()}, path("data.safetensors"))
    expected = train(module, x, targets)
    said = partita("compile", path("model.onnx"), "--dim", f"batch={BATCH}", "--objective", "mse", "--optimizer", "sgd",
                   "--lr", str(RATE), "-o", path("program"))
    data = ["--data", path("data.safetensors")]
    partita("run", path("program"), *data, "--steps", str(STEPS), "--checkpoint", path("checkpoint"),
            "--forward", path("trained"))
    partita("export", path("program"), "--checkpoint", path("checkpoint"), "-o", path("trained.onnx"))
    partita("compile", path("trained.onnx"), "--dim", f"batch={BATCH}", "--objective", "none", "-o", path("inference"))
    partita("run", path("inference"), *data, "--forward", path("again"))
    trained, again = (load_file(path(file))["y"] for file in ("trained", "again"))
    scale = abs(expected).max()
    if abs(again - trained).max() > TOLERANCE * scale:
        return "DIFFERENT after export"
    error = abs(trained - expected).max() / scale
    return f"{'equal' if error <= TOLERANCE else 'said' if 'warning' in said else 'DIFFERENT'} {error:.0e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--work", metavar="DIR")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        for name in args.modules or MODULES:
            for way in WAYS:
                work = os.path.join(args.work or folder, f"{name}_{way}")
                os.makedirs(work, exist_ok=True)
                try:
                    result = attempt(name, way, work)
                except RuntimeError as failure:
                    result = f"refused: {failure}"
                wrong |= "DIFFERENT" in result
                print(f"{name:28} {way:22} {result}", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    numpy.seterr(all="raise")
    main()
