"""Writes a model whose scores are multiplied by a learned number, a parameter without dimensions.

    temperature.py MODEL.onnx
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
from onnx_writer import FLOAT, INT64, floats, graph, model, node, save, tensor, value  # noqa: E402

save(sys.argv[1], model(graph(
    [node("Gather", ["embedding", "input_ids"], ["x"]), node("Tanh", ["x"], ["h"]), node("MatMul", ["h", "head"], ["scores"]),
     node("Mul", ["scores", "temperature"], ["logits"])],
    [value("input_ids", INT64, ["batch", 8])], [value("logits", FLOAT, ["batch", 8, 16])],
    [tensor("embedding", FLOAT, [16, 6], floats([i * 37 % 19 / 19 - 0.5 for i in range(96)])),
     tensor("head", FLOAT, [6, 16], floats([i * 41 % 23 / 23 - 0.5 for i in range(96)])),
     tensor("temperature", FLOAT, [], floats([1.5]))]), 17))
