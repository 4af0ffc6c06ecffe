"""Writes a model with the gates of a token's two best experts of four, torch.zeros_like(p).scatter(-1, best, values), which weigh four vectors.

    scatter_gates.py MODEL.onnx
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
from onnx_writer import FLOAT, INT64, floats, graph, int64s, model, node, save, tensor, value  # noqa: E402

save(sys.argv[1], model(graph(
    [node("Gather", ["embedding", "input_ids"], ["x"]), node("MatMul", ["x", "router"], ["scores"]), node("Softmax", ["scores"], ["p"], axis=-1),
     node("TopK", ["p", "two"], ["values", "best"], axis=-1), node("ReduceSum", ["values", "last"], ["sum"]), node("Div", ["values", "sum"], ["shares"]),
     node("Shape", ["p"], ["full"]), node("Expand", ["nothing", "full"], ["zeros"]), node("ScatterElements", ["zeros", "best", "shares"], ["gates"], axis=-1),
     node("MatMul", ["gates", "experts"], ["y"]), node("MatMul", ["y", "head"], ["logits"])],
    [value("input_ids", INT64, ["batch", 8])], [value("logits", FLOAT, ["batch", 8, 16])],
    [tensor("embedding", FLOAT, [16, 6], floats([i * 37 % 19 / 19 - 0.5 for i in range(96)])),
     tensor("router", FLOAT, [6, 4], floats([i * 29 % 17 / 17 - 0.5 for i in range(24)])),
     tensor("experts", FLOAT, [4, 6], floats([i * 31 % 13 / 13 - 0.5 for i in range(24)])),
     tensor("head", FLOAT, [6, 16], floats([i * 41 % 23 / 23 - 0.5 for i in range(96)])),
     tensor("two", INT64, [1], int64s([2])), tensor("last", INT64, [1], int64s([-1])), tensor("nothing", FLOAT, [], floats([0]))]), 17))
