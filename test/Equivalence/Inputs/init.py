"""init.py FOLDER-OF-PARTITA_INIT PROGRAM.safetensors INTERPRETER.safetensors: both have the documented numbers of seed 7."""

import json
import struct
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
from partita_init import normal  # noqa: E402


def tensors(path):
    data = open(path, "rb").read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    types = {"F32": np.float32, "F64": np.float64}
    return {
        name: np.frombuffer(data[start:][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in json.loads(data[8:start]).items()
        if name != "__metadata__"
    }


program, interpreter = tensors(sys.argv[2]), tensors(sys.argv[3])
for name, tensor in program.items():
    assert np.array_equal(tensor, interpreter[name]), name
assert np.array_equal(program["rows"], normal(7, "rows", (8, 6), 0.5))
print("equal:", *sorted(program))
