"""check_gradients.py A.safetensors B.safetensors LOG.csv: the gradients are equal up to rounding, and
their norm is the one logged in step 1."""

import sys

import numpy as np
from compare_logs import rows
from tensor_files import read_tensors

a, b = read_tensors(sys.argv[1])[0], read_tensors(sys.argv[2])[0]
assert a.keys() == b.keys() and len(a) == 4, (a.keys(), b.keys())
largest = max(np.abs(x).max() for x in a.values())
squares = 0.0
for name in a:
    error = np.abs(a[name] - b[name]).max() / max(np.abs(b[name]).max(), 1e-3 * largest)
    assert error < 1e-5, (name, error)
    squares += float((a[name].astype(np.float64) ** 2).sum())
logged = float(rows(sys.argv[3])[0]["gradient_norm"])
assert abs(np.sqrt(squares) - logged) < 1e-6 * logged, (np.sqrt(squares), logged)
print("equal")
