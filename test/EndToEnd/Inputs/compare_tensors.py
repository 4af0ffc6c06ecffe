#!/usr/bin/env python3
"""compare_tensors.py TOLERANCE A B...: do all files, or folders of checkpoints, have A's float32 tensors?

Measure: max |a - b| / max(max |a|, 1e-3 x the largest of the file); prints the worst tensor of each.
"""
import sys

import numpy
from checkpoints import read as read_checkpoint


def read(path):
    return {name: value for name, value in read_checkpoint(path)[0].items() if value.dtype == numpy.float32}


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
