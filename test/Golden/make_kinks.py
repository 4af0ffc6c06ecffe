#!/usr/bin/env python3
"""Makes ../Data/kinks/EXPORTER.onnx and kinks.json: functions at the points where a formula that an exporter writes for
them has the gradient 0 times infinity, or where their gradient is a matter of convention, and what PyTorch's is there.
Needs the environment of tools/python/make_venv.

Each function has parameters of its own. The model adds a column of its input to each, so that no two parameters have
equal values, which exporters merge; the loss is the sum of all functions, their elements weighted differently.
check_kinks.py compares.
"""

import io
import json
import math
import os
from contextlib import redirect_stderr, redirect_stdout

import onnx
import torch
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "Data", "kinks")
SAMPLES = 2
K = [-2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.5]
T = torch.tensor

# name: the points, the function of them; what TorchScript's exporter does not have, or writes as another function, is in DYNAMO
FUNCTIONS = {
    "std": ([[1.0, 1, 1]], lambda w: torch.std(w, dim=-1)),
    "std_of_some": ([[1.0, 1, 1, 3]], lambda w: torch.std(w.reshape(SAMPLES, 2, 2), dim=-1)),
    "std_mean": ([[2.0, 2, 2]], lambda w: sum(torch.std_mean(w, dim=-1, unbiased=False))),
    "standardized": ([[1.0, 1, 1]], lambda w: (w - w.mean(-1, keepdim=True)) / (w.std(-1, keepdim=True) + 1e-2)),
    "norm_half": ([[0.0, 2, -2]], lambda w: torch.linalg.vector_norm(w, 0.5, dim=-1)),
    "norm_1": ([[0.0, 2, -2]], lambda w: torch.linalg.vector_norm(w, 1, dim=-1)),
    "norm_2": ([[0.0, 0, 0]], lambda w: torch.linalg.vector_norm(w, dim=-1)),
    "norm_3": ([[0.0, 0, 0]], lambda w: torch.linalg.vector_norm(w, 3, dim=-1)),
    "norm_3_of_some": ([[0.0, 2, -2]], lambda w: torch.linalg.vector_norm(w, 3, dim=-1)),
    "norm_4": ([[0.0, 0, 0]], lambda w: torch.linalg.vector_norm(w, 4, dim=-1)),
    "norm_max": ([[1.0, 3, -3]], lambda w: torch.linalg.vector_norm(w, math.inf, dim=-1)),
    "matrix_norm": ([[0.0, 0, 0, 0]], lambda w: torch.linalg.matrix_norm(w.reshape(SAMPLES, 2, 2))),
    "normalize": ([[0.0, 0, 0]], lambda w: F.normalize(w, dim=-1, eps=0.25)),
    "normalize_3": ([[0.0, 0, 0]], lambda w: F.normalize(w, p=3.0, dim=-1, eps=0.25)),
    "power": ([[0.0, 0, 2, 2, 1], [0.0, 2, 0, 3, 0]], lambda w, v: w ** v),
    "power_half": ([[0.0], [1.5]], lambda w, v: w ** v),
    "power_of_0": ([[0.0, 1, 2]], lambda w: torch.pow(T([0.0, 0.0, 2.0]), w)),
    "powers": ([[0.0, 0, 0, 0]], lambda w: torch.pow(w, T([0.0, 1.0, 2.0, 3.0]))),
    "logsigmoid": ([[1.0, -1, 0]], lambda w: F.logsigmoid(200 * w)),
    "round": ([K], lambda w: torch.round(w) * w),
    "floor": ([K], lambda w: torch.floor(w) * w),
    "ceil": ([K], lambda w: torch.ceil(w) * w),
    "sign": ([K], lambda w: torch.sign(w) * w),
    "remainder": ([[2.5, -2.5, 2], [1.0, 1.5, 1]], lambda w, v: torch.remainder(w, v)),
    "fmod": ([[2.5, -2.5, 2], [1.0, 1.5, 1]], lambda w, v: torch.fmod(w, v)),
    "quotient": ([[2.5, -2.5], [1.0, 1.5]], lambda w, v: torch.div(w, v, rounding_mode="floor") * w),
    "scatter_amax": ([[1.0, 2, 3], [1.0, 1, 4]], lambda w, v: torch.scatter_reduce(w, -1, T([[0, 0, 1]] * SAMPLES), v, "amax")),
    "scatter_amin": ([[1.0, 2, 3], [1.0, 1, 2]], lambda w, v: torch.scatter_reduce(w, -1, T([[0, 0, 1]] * SAMPLES), v, "amin")),
    "scatter_amax_of_all": ([[1.0, 2, 3], [1.0, 1, 4]], lambda w, v: torch.scatter_reduce(w, -1, T([[0, 1, 2]] * SAMPLES), v, "amax")),
    "where": ([K], lambda w: torch.where(w > 0, w, -w)),
    "softmax": ([[3.0, 3, 1, 2]], lambda w: F.softmax(w.masked_fill(w > 2, -math.inf), -1)),
    "prod": ([[0.0, 2, 3]], lambda w: torch.prod(w, -1)),
    "elu": ([K], lambda w: F.elu(w, alpha=0.25)),
    "celu": ([K], lambda w: F.celu(w, alpha=0.25)),
}
DYNAMO = {
    "cosine_similarity": ([[0.0, 0, 0], [2.0, 1, 2]], lambda w, v: F.cosine_similarity(w, v, dim=-1, eps=1 / 3)),
    "sinc": ([[0.0, 0.5, 1]], torch.sinc),
    "trunc": ([K], lambda w: torch.trunc(w) * w),
    "softshrink": ([K], F.softshrink),
    "hardshrink": ([K], F.hardshrink),
    "hardtanh": ([K], F.hardtanh),
    "threshold": ([K], lambda w: F.threshold(w, 0.5, 20.0)),
    "clamp_by_tensors": ([[0.0, 1, 2, 3], [0.0, 0, 0, 4]], lambda w, v: torch.clamp(w, v, v + 1)),
    "max_dim": ([[3.0, 3, 1]], lambda w: torch.max(w, -1)[0]),
    "huber": ([K], lambda w: F.huber_loss(w, torch.zeros_like(w))),
    "smooth_l1": ([K], lambda w: F.smooth_l1_loss(w, torch.zeros_like(w), beta=0.5)),
    "l1": ([[1.0, 2], [1.0, 1]], lambda w, v: F.l1_loss(w, v)),
    "binary": ([[1.0, -1, 0]], lambda w: F.binary_cross_entropy(torch.sigmoid(200 * w), T([[1.0, 0, 1]] * SAMPLES))),
    "embedding": ([[1.0, 2, 3]], lambda w: F.embedding(T([0, 1, 1]), w[0, :, None], padding_idx=1)),
}


class Kinks(torch.nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions, self.columns = functions, 0
        for name, (points, _) in functions.items():
            for letter, at in zip("wv", points):
                self.columns += 1
                self.register_parameter(f"{name}_{letter}", torch.nn.Parameter(T(at) - self.columns))

    def forward(self, x):
        losses, column = [], 0
        for name, (points, function) in self.functions.items():
            operands = []
            for letter, _ in zip("wv", points):
                operands.append(x[:, column:column + 1] + getattr(self, f"{name}_{letter}"))
                column += 1
            y = function(*operands).flatten()
            losses.append((y * (torch.arange(y.numel(), dtype=torch.float32) + 1)).sum())
        return torch.stack(losses).sum()


def strip(path):
    """Of what dynamo records of a node, import reads the call alone; the rest is larger than the model."""
    model = onnx.load(path)
    for node in model.graph.node:
        for entry in [each for each in node.metadata_props if each.key != "pkg.torch.onnx.fx_node"]:
            node.metadata_props.remove(entry)
    onnx.save(model, path)


def export(functions, path, **options):
    model = Kinks(functions).eval()
    x = (torch.arange(model.columns, dtype=torch.float32) + 1).expand(SAMPLES, -1)
    model(x).backward()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        if options["dynamo"]:
            torch.onnx.export(model, (x,), input_names=["x"], output_names=["loss"], verbose=False, **options).save(path)
        else:
            torch.onnx.export(model, (x,), path, input_names=["x"], output_names=["loss"], opset_version=17, **options)
    strip(path)
    return {name: parameter.grad.tolist() for name, parameter in model.named_parameters()}


def main():
    torch.manual_seed(0)
    os.makedirs(MODELS, exist_ok=True)
    everything = {**FUNCTIONS, **DYNAMO}
    gradients = export(everything, os.path.join(MODELS, "dynamo.onnx"), dynamo=True, optimize=False)
    export(everything, os.path.join(MODELS, "dynamo_optimized.onnx"), dynamo=True)
    export(FUNCTIONS, os.path.join(MODELS, "torchscript.onnx"), dynamo=False)
    with open(os.path.join(HERE, "kinks.json"), "w") as file:
        json.dump(gradients, file, indent=0)


if __name__ == "__main__":
    main()
