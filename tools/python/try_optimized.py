#!/usr/bin/env python3
"""Tries models as onnxruntime's optimizer leaves them: each family of export_families.py, exported with its
weights, optimized (ORT_ENABLE_EXTENDED, for CPUs), saved, compiled for inference by Partita; the logits must
be onnxruntime's of the model as exported. Needs the environment of make_venv and partita in the PATH.

    try_optimized.py [FAMILY...]

One line per model, with the operators of other domains that the optimizer made. Exit code 1 when a model
is refused or its logits differ.
"""
import collections
import os
import subprocess
import sys
import tempfile

import onnx
import onnxruntime
from safetensors.numpy import save_file

import check_onnxruntime
import export_families

BATCH, SEQUENCE, TOLERANCE = 2, 7, "1e-5"


def optimize(path, optimized):
    """Optimizes a model; returns the operators of domains other than ONNX's in the result."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = optimized
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(optimized).graph.node
    return collections.Counter(node.op_type for node in nodes if node.domain not in ("", "ai.onnx"))


def attempt(family, exporter, folder):
    def path(name):
        return os.path.join(folder, name)

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip() or done.stdout.strip() or command[0]).splitlines()[-1])
        return done.stdout

    names = export_families.FAMILIES[family][3]
    inputs = export_families.example_inputs(family, names, BATCH, SEQUENCE)
    axes = {name: export_families.dynamic_axes(family, name) for name in names}
    model = export_families.build_model(family)
    if exporter == "torchscript":
        onnx.save(export_families.export_torchscript(model, axes, ["logits"], inputs, False), path("model.onnx"))
    else:
        onnx.save(export_families.export_dynamo(model, axes, ["logits"], inputs, False), path("model.onnx"))
    made = optimize(path("model.onnx"), path("optimized.onnx"))
    print(", ".join(f"{op} {count}" for op, count in sorted(made.items())), end=": ")
    sizes = {dim: tensor.shape[axis] for name, tensor in zip(names, inputs)
             for axis, dim in axes[name].items()}
    run("partita", "compile", path("optimized.onnx"), *[f"--dim={dim}={size}" for dim, size in sizes.items()],
        "--objective", "none", "-o", path("program"))
    save_file({name: tensor.numpy() for name, tensor in zip(names, inputs)}, path("data.safetensors"))
    run("partita", "run", path("program"), "--data", path("data.safetensors"), "--forward", path("logits"))
    return run(sys.executable, check_onnxruntime.__file__, path("model.onnx"), path("logits"), "--data",
               path("data.safetensors"), "--tolerance", TOLERANCE).strip()


def main():
    failed = False
    for family in sys.argv[1:] or export_families.FAMILIES:
        for exporter in ("torchscript", "dynamo"):
            with tempfile.TemporaryDirectory() as folder:
                print(f"{family} {exporter}:", end=" ", flush=True)
                try:
                    print(attempt(family, exporter, folder), flush=True)
                except RuntimeError as problem:
                    failed = True
                    print(problem, flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
