"""same_names.py FOLDER-OF-SAFETENSORS.PY MODEL TRAINED: the same initializers by name, other values in the parameters."""

import sys

sys.path.insert(0, sys.argv[1])
from safetensors import onnx_tensors  # noqa: E402

old, new = onnx_tensors(sys.argv[2]), onnx_tensors(sys.argv[3])
assert list(old) == list(new)
trained = sum(old[name]["raw"] != new[name]["raw"] for name in old)
assert trained > 10, trained
print(f"same names, {trained} trained values")
