"""usage: chain.py LAYERS WIDTH FILE.onnx
Writes a model of as many matmuls w0, w1, ..., and beside it data for it, FILE.safetensors."""
import json
import struct
import sys

from onnx_writer import *

layers, width, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
nodes = [node("MatMul", ["x" if i == 0 else f"h{i}", f"w{i}"], [f"h{i + 1}" if i + 1 < layers else "y"]) for i in range(layers)]
weights = [tensor(f"w{i}", FLOAT, [width, width], floats([(7 * k + i) % 11 / 10 for k in range(width * width)])) for i in range(layers)]
save(path, model(graph(nodes, [value("x", FLOAT, ["batch", width])], [value("y", FLOAT, ["batch", width])], weights)))
size = 16 * width * 4
header = json.dumps({name: {"dtype": "F32", "shape": [16, width], "data_offsets": [i * size, (i + 1) * size]}
                     for i, name in enumerate(("x", "labels"))}).encode()
with open(path.replace(".onnx", ".safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + floats([k % 5 / 10 for k in range(2 * 16 * width)]))
