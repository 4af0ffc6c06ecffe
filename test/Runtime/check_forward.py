"""check_forward.py FOLDER A.safetensors B.safetensors: the example's logits, against numpy in double."""

import sys
from math import erf

import numpy as np

from tensor_files import read_tensors

sys.path.insert(0, sys.argv[1])
from partita_init import normal  # noqa: E402

a, b = read_tensors(sys.argv[2])[0], read_tensors(sys.argv[3])[0]
ids = a["input_ids"]
assert ids.shape == (8, 16) and np.array_equal(ids, b["input_ids"])
assert np.array_equal(a["labels"][:, :-1], ids[:, 1:])
wte = normal(3, "wte", (256, 24), 0.5).astype(np.float64)
fc = normal(3, "fc.weight", (24, 40), 0.2).astype(np.float64)
head = normal(3, "head.weight", (40, 256), 0.2).astype(np.float64)
h = wte[ids] @ fc
logits = 0.5 * h * (1 + np.vectorize(erf)(h / np.sqrt(2))) @ head
for tensors in (a, b):
    error = np.abs(tensors["logits"] - logits).max() / np.abs(logits).max()
    assert error < 1e-6, error
print("equal")
