#!/usr/bin/env python3
"""Compares every element of every gradient of a program's first step with PyTorch's, which is computed
anew, in float64: the goldens of the larger models hold norms and samples, since whole gradients of
6 layers x 384 are 43 MB. Needs the environment of tools/python/make_venv.

    partita run PROGRAM --data text:/usr/share/common-licenses/GPL-3 --seed 1 --init seed:1 --steps 1 --grads grads.safetensors
    check_full_gradients.py gpt2_6x384_dynamo.json grads.safetensors

Prints the worst tensor, beside PyTorch's own float32; exit code 1 above --tolerance (1e-4). The measure is
check_golden.py's.
"""

import argparse
import json
import sys

import numpy
import torch

import check_golden
import make_goldens


def errors(gradients, exact):
    largest = max(numpy.abs(tensor).max() for tensor in exact.values())
    return {name: numpy.abs(gradients[name] - tensor).max() / max(numpy.abs(tensor).max(), 1e-3 * largest)
            for name, tensor in exact.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("golden", metavar="GOLDEN.json", help="of a model that is trained on a text")
    parser.add_argument("gradients", metavar="GRADS.safetensors")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    with open(args.golden) as file:
        golden = json.load(file)
    exporter = "dynamo" if "_dynamo_" in golden["onnx"] or "example" in golden["onnx"] else "torchscript"
    shape = golden["model"]
    text = numpy.fromfile(golden["data"]["file"], numpy.uint8)
    order = make_goldens.partita_data.Windows(text, golden["sequence"], golden["data"]["seed"])
    accumulate = golden["accumulate"]
    batch = [order.batch(0, micro, golden["batch"], accumulate) for micro in range(accumulate)]
    assert batch[0][0].tolist() == golden["data"]["first_batch"], "other data than the golden's"
    values = make_goldens.seeded_values(shape, exporter)
    single, double = (make_goldens.train(shape, exporter, values, dtype, "sgd", [batch])[1]
                      for dtype in (torch.float32, torch.float64))
    ours, peers = errors(check_golden.read_safetensors(args.gradients), double), errors(single, double)
    wrong = [name for name, error in ours.items() if not numpy.isfinite(error)]
    if wrong:
        sys.exit(f"{args.gradients}: {wrong[0]} has elements that are no numbers")
    worst = max(ours, key=ours.get)
    print(f"{len(ours)} gradients, {sum(tensor.size for tensor in double.values())} elements: worst {worst} "
          f"{ours[worst]:.1e}, PyTorch's float32 {max(peers.values()):.1e}")
    sys.exit(not ours[worst] <= args.tolerance)


if __name__ == "__main__":
    main()
