#!/usr/bin/env python3
"""Compares what a program wrote with a golden of this folder; needs numpy only (README.md).

    check_golden.py gpt2_4x128_dynamo.json --optimizer adamw --log run.csv \\
                    --grads grads.safetensors --parameters parameters.safetensors

Each part is checked when its file is given: losses of all steps against the float64 run (relative),
gradients of the first step, parameters after the last step. A tensor's error is
max|a-b| / max(max|b|, 1e-3 x the largest of all tensors) over the golden's samples, and likewise of
its norm. Of the parameters after AdamW, the key's third of each attention bias is left out: its
gradient is zero in exact arithmetic, and AdamW makes whole learning rates out of what rounding
leaves of it. Prints the worst of each part by name; exit code 1 above --tolerance (1e-4).
"""

import argparse
import csv
import json
import math
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Support"))
from tensor_files import read_doubles  # noqa: E402

TIED = ("transformer.wte.weight", "lm_head.weight")


def read_safetensors(path):
    tensors = read_doubles(path)
    # The exporters' two names for the tied embedding; gpt2_tiny.json serves both.
    for name, other in (TIED, TIED[::-1]):
        if name in tensors:
            tensors.setdefault(other, tensors[name])
    return tensors


def check_logits(path, golden):
    """`--forward` runs the first samples in their order."""
    expected = numpy.array(golden["logits_float64"])
    logits = read_safetensors(path)["logits"]
    if logits.shape != expected.shape:
        sys.exit(f"{path}: logits are {list(logits.shape)}, the golden's {list(expected.shape)}")
    error = float(numpy.abs(logits - expected).max() / numpy.abs(expected).max())
    print(f"logits: {list(logits.shape)}, worst {error:.2e}")
    return error if math.isfinite(error) else math.inf


def check_losses(path, golden):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    expected = golden["loss_float64"]
    if len(rows) != len(expected):
        sys.exit(f"{path}: {len(rows)} steps, the golden has {len(expected)}")
    errors = [abs(float(row["loss"]) - loss) / loss for row, loss in zip(rows, expected)]
    peer = max(abs(a - b) / b for a, b in zip(golden["loss_float32"], expected))
    worst = max(range(len(errors)), key=errors.__getitem__)
    error = errors[worst] if all(map(math.isfinite, errors)) else math.inf
    print(f"loss: {len(errors)} steps, worst {error:.2e} at step {worst + 1} "
          f"(PyTorch float32: {peer:.2e})")
    return error


def check_tensors(part, path, golden, skip_keys=False):
    tensors = read_safetensors(path)
    missing = sorted(set(golden) - set(tensors))
    if missing:
        sys.exit(f"{path}: lacks {missing[0]} and {len(missing) - 1} more of {len(golden)} tensors")
    largest = max(entry["max"] for entry in golden.values())
    worst, peer, where = 0.0, 0.0, "none"
    for name, entry in golden.items():
        values = tensors[name]
        if list(values.shape) != entry["shape"]:
            sys.exit(f"{path}: {name} is {list(values.shape)}, the golden {entry['shape']}")
        flat = values.ravel()
        samples = entry["samples"]
        keys = skip_keys and name.endswith("attn.c_attn.bias")
        if keys:  # [query, key, value]
            third = flat.size // 3
            samples = [s for s in samples if not third <= s[0] < 2 * third]
        floor = max(entry["max"], 1e-3 * largest)
        errors = [abs(flat[i] - exact) / floor for i, _, exact in samples]
        if not keys:
            norm = math.sqrt(float(flat @ flat))
            errors.append(abs(norm - entry["norm_float64"]) / max(entry["norm_float64"], floor))
        error = max(errors) if all(map(math.isfinite, errors)) else math.inf
        peer = max([peer] + [abs(a - b) / floor for _, a, b in samples])
        if error >= worst:
            worst, where = error, name
    print(f"{part}: {len(golden)} tensors, worst {worst:.2e} at {where} "
          f"(PyTorch float32: {peer:.2e})")
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden")
    parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
    parser.add_argument("--part", help="unmasked or masked, of gpt2_tiny.json")
    parser.add_argument("--tokens", metavar="FILE", help="writes the golden's tokens as uint16")
    parser.add_argument("--logits")
    parser.add_argument("--log")
    parser.add_argument("--grads")
    parser.add_argument("--parameters")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    with open(args.golden) as file:
        golden = json.load(file)
    if args.tokens:
        numpy.array(golden["tokens"], numpy.uint16).tofile(args.tokens)
        return
    errors = []
    if args.logits:
        errors.append(check_logits(args.logits, golden))
    if args.part:
        golden = golden[args.part]
    run = golden.get(args.optimizer)
    if args.log:
        errors.append(check_losses(args.log, run))
    if args.grads:
        errors.append(check_tensors("gradients", args.grads, golden["gradients"]))
    if args.parameters:
        errors.append(check_tensors("parameters", args.parameters, run["parameters"],
                                    skip_keys=args.optimizer == "adamw"))
    if not errors:
        parser.error("nothing to check: give --log, --grads, --parameters or --logits")
    if not max(errors) <= args.tolerance:
        print(f"above the tolerance of {args.tolerance:g}")
        sys.exit(1)


if __name__ == "__main__":
    main()
