#!/usr/bin/env python3
"""Runs an exported model in onnxruntime and compares its outputs, whatever they are called, with
those of the program that trained it. Needs the environment of make_venv.

    partita run DIR --data text:FILE --steps 20 --checkpoint C --forward outputs.safetensors
    partita export DIR --checkpoint C -o trained.onnx
    check_onnxruntime.py trained.onnx outputs.safetensors --data FILE

FILE holds bytes as tokens, or is a .safetensors with a column per input; what it lacks is filled as
`partita run` does: positions, a mask of ones, targets moved by one. Batch and sequence are those of
the first output with two dimensions or more; the input is the batch that `--forward` used, the first
of the data. Exit code 1 when the largest difference of an output is above --tolerance (1e-4) times
the largest of its numbers.
"""

import argparse
import sys

import numpy
import onnxruntime
from safetensors.numpy import load_file


def columns_batch(path, session, batch):
    """Returns the model's inputs for the first batch of a file of columns."""
    columns = {name: column[:batch] for name, column in load_file(path).items()}
    like = next((column for column in columns.values() if column.ndim == 2), None)
    inputs = {}
    for name in (each.name for each in session.get_inputs()):
        if name in columns:
            inputs[name] = columns[name]
        elif "position" in name:
            inputs[name] = numpy.broadcast_to(numpy.arange(like.shape[1]), like.shape).copy()
        elif "mask" in name:
            inputs[name] = numpy.ones_like(like)
        elif name.startswith("decoder_"):
            labels = numpy.where(columns["labels"] < 0, 0, columns["labels"])
            inputs[name] = numpy.pad(labels[:, :-1], ((0, 0), (1, 0)))
        else:
            sys.exit(f"{path}: has no column '{name}'")
    return inputs


def compare(name, ours, theirs):
    """Returns the max difference, relative to the max number."""
    if theirs.shape != ours.shape:
        sys.exit(f"{name}: onnxruntime's are {list(theirs.shape)}, ours {list(ours.shape)}")
    error = float(numpy.abs(ours - theirs).max() / numpy.abs(theirs).max())
    print(f"{name} {list(ours.shape)}: largest difference {error:.2e} of the largest")
    return error


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("outputs")
    parser.add_argument("--data", required=True)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    ours = load_file(args.outputs)
    session = onnxruntime.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    if missing := sorted(set(names) - set(ours)):
        sys.exit(f"{args.outputs}: has no '{missing[0]}', it has {', '.join(sorted(ours))}")
    batched = next((ours[name] for name in names if ours[name].ndim > 1), None)
    if batched is None:
        sys.exit(f"{args.outputs}: no output has the dimensions of a batch")
    if args.data.endswith(".safetensors"):
        inputs = columns_batch(args.data, session, len(batched))
    else:
        batch, sequence = batched.shape[:2]
        text = numpy.fromfile(args.data, numpy.uint8, batch * sequence).astype(numpy.int64)
        ids = text.reshape(batch, sequence)
        inputs = {session.get_inputs()[0].name: ids}
    worst = [compare(name, ours[name], theirs) for name, theirs in
             zip(names, session.run(names, inputs))]
    if not all(error <= args.tolerance for error in worst):
        sys.exit(1)


if __name__ == "__main__":
    main()
