"""usage: integer_count.py FILE.onnx count|sum|max
Writes a model whose loss is divided by an integer: how many elements of its mask are not 0, the sum of
their multiples, or the largest."""
import sys

from onnx_writer import *

path, kind = sys.argv[1:]
counted = [node("Equal", ["mask", "zero"], ["is_zero"]), node("Not", ["is_zero"], ["is_counted"]),
           node("Cast", ["is_counted"], ["counted"], to=INT64)] if kind == "count" else [node("Mul", ["mask", "factor"], ["counted"])]
nodes = [node("MatMul", ["x", "w"], ["h"]), node("Mul", ["h", "h"], ["squares"]), node("ReduceSum", ["squares"], ["total"], keepdims=0), *counted,
         node("ReduceMax" if kind == "max" else "ReduceSum", ["counted"], ["count"], "/count", keepdims=0), node("Cast", ["count"], ["divisor"], to=FLOAT),
         node("Div", ["total", "divisor"], ["loss"])]
inputs = [value("x", FLOAT, ["batch", 4]), value("mask", INT64, ["batch", 3])]
weights = [tensor("w", FLOAT, [4, 4], floats([k % 7 / 5 for k in range(16)])), tensor("zero", INT64, [], int64s([0])),
           tensor("factor", INT64, [], int64s([-(10**12 + 7)]))]
save(path, model(graph(nodes, inputs, [value("loss", FLOAT, [])], weights)))
