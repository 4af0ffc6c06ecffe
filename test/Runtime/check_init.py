"""check_init.py FOLDER-OF-PARTITA_INIT FILE.safetensors SEED: the example's parameters are the documented ones."""

import sys

import numpy as np

from tensor_files import read_tensors

sys.path.insert(0, sys.argv[1])
from partita_init import normal  # noqa: E402

tensors, _ = read_tensors(sys.argv[2])
seed = int(sys.argv[3])
for name, std in (("wte", 0.5), ("fc.weight", 0.2), ("head.weight", 0.2)):
    expected = normal(seed, name, tensors[name].shape, std)
    assert np.array_equal(tensors[name].view(np.uint32), expected.view(np.uint32)), name
assert not tensors["fc.bias"].any()
print("equal")
