"""Writes a model that adds the hidden states of tokens to those of three classes, within each sample: torch.scatter_add along dimension 1.

    scatter_add.py MODEL.onnx
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
from onnx_writer import FLOAT, INT64, floats, graph, int64s, model, node, save, tensor, value  # noqa: E402

save(sys.argv[1], model(graph(
    [node("Gather", ["embedding", "input_ids"], ["x"]), node("Tanh", ["x"], ["h"]), node("Mod", ["input_ids", "three"], ["class"]),
     node("Unsqueeze", ["class", "last"], ["classes"]), node("Shape", ["x"], ["full"]), node("Expand", ["classes", "full"], ["at"]),
     node("Slice", ["h", "zero", "three1", "one"], ["begin"]), node("ScatterElements", ["begin", "at", "x"], ["sums"], axis=1, reduction="add"),
     node("GatherElements", ["sums", "at"], ["back"], axis=1), node("MatMul", ["back", "head"], ["logits"])],
    [value("input_ids", INT64, ["batch", 8])], [value("logits", FLOAT, ["batch", 8, 16])],
    [tensor("embedding", FLOAT, [16, 6], floats([i * 37 % 19 / 19 - 0.5 for i in range(96)])),
     tensor("head", FLOAT, [6, 16], floats([i * 41 % 23 / 23 - 0.5 for i in range(96)])),
     tensor("three", INT64, [], int64s([3])), tensor("last", INT64, [1], int64s([2])), tensor("zero", INT64, [1], int64s([0])),
     tensor("three1", INT64, [1], int64s([3])), tensor("one", INT64, [1], int64s([1]))]), 17))
