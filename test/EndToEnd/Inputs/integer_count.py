"""usage: integer_count.py FILE.onnx count|sum
Writes a model whose loss is divided by an integer: how many elements of its mask are not 0, or their sum."""
import sys

from onnx_writer import *

path, kind = sys.argv[1:]
counted = [node("Equal", ["mask", "zero"], ["is_zero"]), node("Not", ["is_zero"], ["is_counted"]),
           node("Cast", ["is_counted"], ["counted"], to=INT64)] if kind == "count" else [node("Identity", ["mask"], ["counted"])]
nodes = [node("MatMul", ["x", "w"], ["h"]), node("Mul", ["h", "h"], ["squares"]), node("ReduceSum", ["squares"], ["total"], keepdims=0), *counted,
         node("ReduceSum", ["counted"], ["count"], "/count", keepdims=0), node("Cast", ["count"], ["divisor"], to=FLOAT),
         node("Div", ["total", "divisor"], ["loss"])]
inputs = [value("x", FLOAT, ["batch", 4]), value("mask", INT64, ["batch", 3])]
weights = [tensor("w", FLOAT, [4, 4], floats([k % 7 / 5 for k in range(16)])), tensor("zero", INT64, [], int64s([0]))]
save(path, model(graph(nodes, inputs, [value("loss", FLOAT, [])], weights)))
