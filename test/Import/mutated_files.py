"""Imports randomly damaged models: each imports or is refused with one error; none crashes, hangs, or takes memory out of proportion.

    mutated_files.py FOLDER COUNT SEED MODEL...

Half of the mutations change bytes, half the model's structure: operators, inputs, attributes and dimensions of one node or tensor.
"""
import os
import random
import resource
import subprocess
import sys

import onnx

folder, count, seed, *models = sys.argv[1:]
SECONDS, ADDRESS_SPACE = 30, 2 << 30
DIMS = ["--dim", "batch=2", "--dim", "sequence=8"]


def bytes_changed(data, chance):
    data = bytearray(data)
    kind = chance.randrange(4)
    at = chance.randrange(len(data))
    if kind == 0:
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        del data[at:at + chance.randint(1, 64)]
    else:
        data[at:at] = data[at:at + chance.randint(1, 64)]
    return bytes(data)


def structure_changed(data, chance):
    model = onnx.load_model_from_string(data)
    nodes, graph = model.graph.node, model.graph
    node, other = chance.choice(nodes), chance.choice(nodes)
    kind = chance.randrange(8)
    if kind == 0:
        node.op_type = other.op_type
    elif kind == 1 and node.input:
        node.input[chance.randrange(len(node.input))] = chance.choice(list(other.input) + list(other.output) + ["", "nobody"])
    elif kind == 2 and node.input:
        del node.input[chance.randrange(len(node.input)):]
    elif kind == 3 and node.attribute:
        attribute = chance.choice(node.attribute)
        attribute.i, attribute.f = chance.choice([-(1 << 63), -7, -1, 0, 1, 5, 1 << 40]), chance.choice([float("nan"), -1.0, 1e30])
        if attribute.ints:
            attribute.ints[chance.randrange(len(attribute.ints))] = chance.choice([-(1 << 63), -1, 0, 3, 1 << 40])
    elif kind == 4 and graph.initializer:
        tensor = chance.choice(graph.initializer)
        tensor.dims[:] = [chance.choice([-1, 0, 1, 3, 1 << 33]) for _ in range(chance.randrange(4))]
    elif kind == 5 and graph.initializer:
        chance.choice(graph.initializer).data_type = chance.randrange(30)
    elif kind == 6:
        nodes.remove(node)
    else:
        nodes.insert(chance.randrange(len(nodes)), other)
    return model.SerializeToString()


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


os.makedirs(folder)
originals = [open(model, "rb").read() for model in models]
chance, imported, wrong = random.Random(int(seed)), 0, 0
path = os.path.join(folder, "model.onnx")
for number in range(int(count)):
    change = (bytes_changed, structure_changed)[number % 2]
    with open(path, "wb") as file:
        file.write(change(chance.choice(originals), chance))
    try:
        done = subprocess.run(["partita", "import", path, *DIMS, "-o", "/dev/null"], capture_output=True, timeout=SECONDS, preexec_fn=limit)
        errors = [line for line in done.stderr.splitlines() if b"error:" in line]
        good = not errors if done.returncode == 0 else done.returncode == 1 and len(errors) == 1
        said = f"exit code {done.returncode}, {len(errors)} errors"
    except subprocess.TimeoutExpired:
        good, said = False, f"no end after {SECONDS} s"
    imported += good and done.returncode == 0
    if not good:
        wrong += 1
        os.rename(path, os.path.join(folder, f"found-{number}.onnx"))
        print(f"found-{number}.onnx: {said}")
print(f"{count} damaged models: {wrong} neither imported nor refused with one error")
assert 0 < imported < int(count), imported
