#!/usr/bin/env python3
"""Data for the models of make_kinks.py, and the comparison of gradients with PyTorch's; needs numpy only.

    check_kinks.py data COLUMNS FILE.safetensors      the input of a program
    check_kinks.py numbers COLUMNS                    the same as numbers for partita-interp
    check_kinks.py check GRADIENTS.safetensors
"""

import json
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from family_files import read_safetensors, write_safetensors  # noqa: E402

SAMPLES = 2


def main():
    if sys.argv[1] != "check":
        x = numpy.tile(numpy.arange(1, int(sys.argv[2]) + 1, dtype=numpy.float32), (SAMPLES, 1))
        if sys.argv[1] == "data":
            write_safetensors(sys.argv[3], {"x": x})
        else:
            print(*x.astype(int).ravel())
        return
    with open(os.path.join(HERE, "kinks.json")) as file:
        wanted = json.load(file)
    found, wrong = read_safetensors(sys.argv[2]), 0
    for name, gradient in found.items():
        largest = numpy.abs(wanted[name]).max()
        if not numpy.allclose(gradient, wanted[name], rtol=1e-5, atol=1e-6 * max(largest, 1)):
            wrong += 1
            print(f"{name}: {gradient.tolist()} instead of {wanted[name]}")
    if wrong:
        sys.exit(f"{wrong} gradients differ")
    print(f"{len(found)} gradients are PyTorch's")


if __name__ == "__main__":
    main()
