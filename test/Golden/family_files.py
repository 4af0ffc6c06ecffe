#!/usr/bin/env python3
"""Weights and data of families.json as files, and the comparison of what a program wrote with it and
with the gradients of families/; needs numpy only.

    family_files.py make FAMILY DIR       DIR/weights.safetensors (as PyTorch names them),
                                          DIR/data.safetensors, DIR/dims and DIR/options of compile
    family_files.py check FAMILY [--log FILE.csv] [--grads FILE] [--logits FILE]

A gradient's error is max|a-b| / max(max|b|, 1e-3 x the largest of all tensors), over all of its
elements. Losses and gradients may be off by 1e-4, logits by 1e-5 of the largest. Exit code 1 above
that.
"""

import argparse
import csv
import json
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "tools", "python"), os.path.join(HERE, "..", "Support")]
import partita_init  # noqa: E402
from tensor_files import read_doubles as read_safetensors, write_tensors as write_safetensors  # noqa: E402

SEED, TOLERANCE = 11, 1e-4


class Differs(Exception):
    pass


def load(family):
    with open(os.path.join(HERE, "families.json")) as file:
        return {"family": family, **json.load(file)[family]}


def gradients_path(family):
    return os.path.join(HERE, "families", family + ".safetensors")


def weights(specs):
    return {name: (spec["mean"] + partita_init.normal(SEED, name, spec["shape"], spec["std"]))
            .astype(numpy.float32) for name, spec in specs.items()}


def pixels(batch):
    return partita_init.normal(SEED, "pixel_values", (batch, 3, 16, 16), 1.0)


def make(golden, folder):
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "weights.safetensors"), weights(golden["parameters"]))
    columns = {name: numpy.array(column, numpy.int64) for name, column in golden["data"].items()}
    if "input_ids" not in columns:
        columns["pixel_values"] = pixels(golden["batch"])
    write_safetensors(os.path.join(folder, "data.safetensors"), columns)
    with open(os.path.join(folder, "dims"), "w") as file:
        dims = {"batch": golden["batch"], **golden["dims"]}
        file.write(" ".join(f"--dim {name}={size}" for name, size in dims.items()))
    with open(os.path.join(folder, "options"), "w") as file:
        file.write(f"--objective {golden['objective']} --optimizer sgd --lr {golden['lr']}")


def check_losses(path, golden):
    with open(path, newline="") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    expected = golden["loss_float64"]
    if len(losses) != len(expected):
        raise Differs(f"{path}: {len(losses)} steps, the golden has {len(expected)}")
    peer = max(abs(a - b) / b for a, b in zip(golden["loss_float32"], expected))
    error = max(abs(a - b) / b for a, b in zip(losses, expected))
    print(f"loss: {len(losses)} steps, worst {error:.2e} (PyTorch float32: {peer:.2e})")
    return error


def gradient_errors(found, expected):
    """{name: the largest difference of an element, by the measure above}."""
    floor = 1e-3 * max(float(numpy.abs(value).max()) for value in expected.values())
    return {name: float(numpy.abs(found[name] - value).max() /
                        max(float(numpy.abs(value).max()), floor))
            for name, value in expected.items()}


def check_gradients(path, golden):
    tensors, found = read_safetensors(path), {}
    expected = read_safetensors(gradients_path(golden["family"]))
    for name, value in expected.items():
        names = [name, *golden["parameters"][name]["aliases"]]
        same = [tensors.pop(each) for each in names if each in tensors]
        if len(same) != 1:
            raise Differs(f"{path}: has {len(same)} gradients of {' = '.join(names)}")
        if same[0].shape != value.shape:
            raise Differs(f"{path}: {name} is {list(same[0].shape)}, the golden {list(value.shape)}")
        found[name] = same[0]
    if tensors:
        raise Differs(f"{path}: PyTorch has no parameter {', '.join(sorted(tensors))}")
    errors = gradient_errors(found, expected)
    # Not-a-number is above all.
    where = max(errors, key=lambda name: numpy.nan_to_num(errors[name], nan=numpy.inf))
    print(f"gradients: {len(expected)} tensors, {sum(value.size for value in expected.values())} "
          f"elements, worst {errors[where]:.2e} at {where} "
          f"(PyTorch float32: {golden['gradient_error_float32']:.2e})")
    return errors[where]


def check_logits(path, golden):
    """`--forward` runs the first samples in their order."""
    expected = numpy.array(golden["logits"]["values"]).reshape(golden["logits"]["shape"])
    logits = read_safetensors(path)["logits"]
    if logits.shape != expected.shape:
        raise Differs(f"{path}: logits are {list(logits.shape)}, the golden's {list(expected.shape)}")
    error = float(numpy.abs(logits - expected).max() / numpy.abs(expected).max())
    print(f"logits: {list(logits.shape)}, worst {error:.2e}")
    return 10 * error  # to 1e-5


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("family")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--log")
    parser.add_argument("--grads")
    parser.add_argument("--logits")
    args = parser.parse_args()
    golden = load(args.family)
    if args.what == "make":
        make(golden, args.folder)
        return
    try:
        errors = [check(path, golden) for check, path in
                  [(check_losses, args.log), (check_gradients, args.grads),
                   (check_logits, args.logits)] if path]
    except Differs as difference:
        sys.exit(str(difference))
    if not errors:
        parser.error("nothing to check: give --log, --grads or --logits")
    if not all(error <= TOLERANCE for error in errors):  # also false for not-a-number
        sys.exit("above the tolerance")


if __name__ == "__main__":
    main()
