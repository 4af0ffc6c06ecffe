#!/usr/bin/env python3
"""Runs an exported model in onnxruntime and compares its logits with those of the program that
trained it. Needs the environment of make_venv.

    partita run DIR --data text:FILE --steps 20 --checkpoint C --forward logits.safetensors
    partita export DIR --checkpoint C -o trained.onnx
    check_onnxruntime.py trained.onnx logits.safetensors --data FILE --seed 1

FILE holds bytes as tokens. Batch and sequence are those of the logits; the input is the batch that
`--forward` used, the first of the training data. Exit code 1 when the largest difference is above
--tolerance (1e-4) times the largest logit.
"""

import argparse
import sys

import numpy
import onnxruntime
from safetensors.numpy import load_file

import partita_data


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("logits")
    parser.add_argument("--data", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    outputs = load_file(args.logits)
    if "logits" not in outputs:
        sys.exit(f"{args.logits}: no tensor 'logits', it has {', '.join(sorted(outputs))}")
    ours = outputs["logits"]
    batch, sequence = ours.shape[:2]
    text = numpy.fromfile(args.data, numpy.uint8)
    ids, _ = partita_data.Windows(text, sequence, args.seed).batch(0, 0, batch)
    session = onnxruntime.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    theirs = session.run(["logits"], {session.get_inputs()[0].name: ids})[0]
    if theirs.shape != ours.shape:
        sys.exit(f"onnxruntime's logits are {list(theirs.shape)}, ours {list(ours.shape)}")
    error = float(numpy.abs(ours - theirs).max() / numpy.abs(theirs).max())
    print(f"logits {list(ours.shape)}: largest difference {error:.2e} of the largest logit")
    if not error <= args.tolerance:
        sys.exit(1)


if __name__ == "__main__":
    main()
