"""usage: shared_layers.py FILE.onnx [stack] KIND:LAYER=LAYER...
Writes a model of four residual layers (norm, up, tanh, down), and data for it, FILE.safetensors. "up:3=0" makes layer 3
use layer 0's weight; a kind is norm (weight and bias), up or down. stack: each layer multiplies its branch by its row of one parameter."""
import json
import struct
import sys

from onnx_writer import *

LAYERS, WIDTH, INNER = 4, 4, 4  # one size for all: gradients of different weights can be mistaken for each other
path, shared = sys.argv[1], dict(each.split("=") for each in sys.argv[2:] if each != "stack")


def of(kind, layer):
    return f"{kind}.{shared.get(f'{kind}:{layer}', layer)}"


nodes, weights = [node("Tanh", ["x"], ["x0"])], {}
for i in range(LAYERS):
    norm, up, down = (of(kind, i) for kind in ("norm", "up", "down"))
    for name, shape in ((f"{norm}.weight", [WIDTH]), (f"{norm}.bias", [WIDTH]), (f"{up}.weight", [WIDTH, INNER]),
                        (f"{down}.weight", [INNER, WIDTH])):
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        start = len(weights)
        weights.setdefault(name, tensor(name, FLOAT, shape, floats([((start + 7 * k) % 29 - 14) / 16 for k in range(size)])))
    x = f"x{i}"
    nodes += [node("LayerNormalization", [x, f"{norm}.weight", f"{norm}.bias"], [f"n{i}"]),
              node("MatMul", [f"n{i}", f"{up}.weight"], [f"u{i}"]),
              node("Tanh", [f"u{i}"], [f"t{i}"]),
              node("MatMul", [f"t{i}", f"{down}.weight"], [f"d{i}"])]
    branch = f"d{i}"
    if "stack" in sys.argv[2:]:
        weights["stack"] = tensor("stack", FLOAT, [LAYERS, WIDTH], floats([(5 * k % 7 + 1) / 4 for k in range(LAYERS * WIDTH)]))
        weights[f"row{i}"] = tensor(f"row{i}", INT64, [], int64s([i]))
        branch = f"b{i}"
        nodes += [node("Gather", ["stack", f"row{i}"], [f"g{i}"], axis=0), node("Mul", [f"d{i}", f"g{i}"], [branch])]
    nodes.append(node("Add", [x, branch], [f"x{i + 1}"]))
nodes.append(node("Tanh", [f"x{LAYERS}"], ["y"]))
ends = ([value(name, FLOAT, ["batch", WIDTH])] for name in ("x", "y"))
save(path, model(graph(nodes, *ends, list(weights.values()))))
size = 16 * WIDTH * 4
header = json.dumps({name: {"dtype": "F32", "shape": [16, WIDTH], "data_offsets": [i * size, (i + 1) * size]}
                     for i, name in enumerate(("x", "labels"))}).encode()
with open(path.replace(".onnx", ".safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + floats([(5 * k % 17 - 8) / 10 for k in range(2 * 16 * WIDTH)]))
