# export.py make MODEL DIR: a manifest and a checkpoint with random values for every float tensor.
#   Names after DIR are copies of parameters, not parameters.
# export.py split DIR: the checkpoint in shards.
# export.py checksums DIR [VERSION]: the checkpoint, of either form, with checksums; of shards as format VERSION (3) has them.
# export.py damage FILE BYTE [BIT]: flips a bit of it.
# export.py hostile FILE: a safetensors file whose names are for terminals.
# export.py transposed DIR TRAINED TABLE COPY: the copy holds the checkpoint's table, transposed.
# export.py compare MODEL DIR TRAINED: the same file but for those values.
import json
import os
import sys

import numpy as np
from safetensors import add_checksums, damage, fields, onnx_tensors, read_safetensors, split_checkpoint, write_safetensors


def parameters(model):
    return {n: t for n, t in onnx_tensors(model).items() if t["type"] == 1 and np.prod(t["dims"], dtype=int) > 1}


def make(model, folder, *copies):
    os.makedirs(folder, exist_ok=True)
    random = np.random.default_rng(1)
    tensors = {n: random.standard_normal(t["dims"]).astype(np.float32) for n, t in parameters(model).items() if n not in copies}
    tensors["step"] = np.zeros([], np.int64)
    write_safetensors(f"{folder}/checkpoint.safetensors", tensors)
    names = [{"name": name} for name in tensors if name != "step"]
    with open(f"{folder}/manifest.json", "w") as file:
        json.dump({"program": "none", "model": os.path.abspath(model), "parameters": names}, file)


def rest(path):
    """Everything but the initializers, and those without their values."""
    result = []
    with open(path, "rb") as file:
        model = file.read()
    for number, value in fields(model):
        if number != 7:
            result.append((number, value))
            continue
        for inner, content in fields(value):
            if inner == 5:
                content = [f for f in fields(content) if f[0] not in (4, 9, 13, 14)]
            result.append((number, inner, content))
    return result


def compare(model, folder, trained):
    old, new = onnx_tensors(model), onnx_tensors(trained)
    weights = read_safetensors(f"{folder}/checkpoint.safetensors")
    assert list(old) == list(new)
    count = 0
    for name, tensor in new.items():
        if name in weights:
            assert tensor["raw"] == weights[name].tobytes(), name
            count += 1
        else:
            assert tensor["raw"] == old[name]["raw"], name
    assert count == len(weights) - 1 and count > 10, count
    assert rest(model) == rest(trained)
    print(f"{count} parameters exported, all else unchanged")


def transposed(folder, trained, table, copy):
    weights = read_safetensors(f"{folder}/checkpoint.safetensors")[table]
    new = onnx_tensors(trained)
    assert new[table]["raw"] == weights.tobytes()
    assert new[copy]["raw"] == np.ascontiguousarray(weights.T).tobytes()
    print("the copy is the table transposed")


def hostile(path):
    header = json.dumps({"\x1b[31mred\n": {"dtype": "F33\a", "shape": [1], "data_offsets": [0, 4]}}).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + b"data")


{"make": make, "compare": compare, "split": split_checkpoint, "transposed": transposed, "checksums": add_checksums,
 "damage": damage, "hostile": hostile}[sys.argv[1]](*sys.argv[2:])
