#!/usr/bin/env python3
"""compare_tensors.py TOLERANCE A.safetensors B.safetensors...: do all files have A's float32 tensors?

Measure: max |a - b| / max(max |a|, 1e-3 x the largest of the file); prints the worst tensor of each.
"""
import json
import sys

import numpy


def read(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        data = file.read()
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32"}


tolerance, first, *others = float(sys.argv[1]), *sys.argv[2:]
expected = read(first)
scale = 1e-3 * max(float(numpy.abs(value).max(initial=0)) for value in expected.values())
failed = False
for path in others:
    found = read(path)
    if found.keys() != expected.keys():
        sys.exit(f"{path} has other tensors: {sorted(found.keys() ^ expected.keys())[:4]}")
    errors = {name: float(numpy.abs(found[name] - value).max(initial=0)) / max(float(numpy.abs(value).max(initial=0)), scale)
              for name, value in expected.items()}
    worst = max(errors, key=errors.get)
    print(f"{path}: {errors[worst]:.1e} in {worst}")
    failed |= not errors[worst] <= tolerance
sys.exit(failed)
