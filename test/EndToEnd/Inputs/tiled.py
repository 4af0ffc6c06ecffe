"""usage: tiled.py FILE.onnx REPEATS...
Writes a model that tiles five-dimensional tensors, once for each comma-separated list of repeats; and data for it, FILE.safetensors."""
import json
import struct
import sys

from onnx_writer import *

path, repeats = sys.argv[1], [list(map(int, each.split(","))) for each in sys.argv[2:]]
elements = 12
for each in repeats:
    for times in each:
        elements *= times
nodes = [node("MatMul", ["x", "w"], ["h"]), node("Reshape", ["h", "apart"], ["t0"])]
nodes += [node("Tile", [f"t{i}", f"r{i}"], [f"t{i + 1}"], f"/Tile_{i}") for i in range(len(repeats))]
nodes += [node("Reshape", [f"t{len(repeats)}", "flat"], ["f"]), node("Tanh", ["f"], ["y"])]
weights = [tensor("w", FLOAT, [12, 12], floats([(5 * k % 23 - 11) / 12 for k in range(144)])), ints("apart", [0, 3, 1, 2, 2]), ints("flat", [0, elements])]
weights += [ints(f"r{i}", each) for i, each in enumerate(repeats)]
save(path, model(graph(nodes, [value("x", FLOAT, ["batch", 12])], [value("y", FLOAT, ["batch", elements])], weights)))
header, data = {}, b""
for name, width in (("x", 12), ("labels", elements)):
    header[name] = {"dtype": "F32", "shape": [8, width], "data_offsets": [len(data), len(data) + 32 * width]}
    data += floats([(7 * k % 19 - 9) / 9 for k in range(8 * width)])
header = json.dumps(header).encode()
with open(path.replace(".onnx", ".safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + data)
