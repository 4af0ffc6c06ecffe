# merged.onnx: a tied table, a scale and a bias that were several, and a vector of its own that two nodes read.
# constant.onnx: the same, but the exporter recorded that the scale and the bias are no parameters.
# again.onnx: one layer applied three times, with the scale and the matrix that it has. newer.onnx: opset 29.
from onnx_writer import *

values = [i / 7 - 1 for i in range(8)]
table, matrix = tensor("table", FLOAT, [4, 2], floats(values)), tensor("matrix", FLOAT, [2, 2], floats(values[:4]))
one, zero = tensor("one", FLOAT, [2], floats([1, 1])), tensor("zero", FLOAT, [2], floats([0, 0]))
own = tensor("own", FLOAT, [2], floats([0.25, 0.5]))
nodes = [node("Gather", ["table", "ids"], ["a"]), node("Mul", ["a", "one"], ["b"], "b"), node("Add", ["b", "zero"], ["c"], "c"),
         node("Identity", ["one"], ["again"]), node("Cast", ["again"], ["same"], to=FLOAT), node("Mul", ["c", "same"], ["d"], "d"), node("Add", ["d", "zero"], ["e"], "e"),
         node("Mul", ["e", "same"], ["f"], "f"), node("Mul", ["f", "own"], ["g"], "g"), node("Add", ["g", "own"], ["h"], "h"),
         node("MatMul", ["h", "matrix"], ["i"], "i"), node("Transpose", ["table"], ["t"], perm=[1, 0]), node("MatMul", ["i", "t"], ["y"], "y")]
ids, y = [value("ids", INT64, [2, 3])], [value("y", FLOAT, [2, 3, 4])]
save("merged.onnx", model(graph(nodes, ids, y, [table, one, zero, own, matrix])))
save("newer.onnx", model(graph(nodes, ids, y, [table, one, zero, own, matrix]), 29))
record = [("PARAMETER", name) for name in ("table", "own", "matrix")]
save("constant.onnx", model(exported(graph(nodes, ids, y, [table, one, zero, own, matrix]), record, {"one": ["b", "val_0"], "zero": ["c", "val_1"]})))
layers, last = [], "x"
for layer in "pqr":
    layers += [node("Mul", [last, "one"], ["m" + layer], "m" + layer), node("MatMul", ["m" + layer, "matrix"], [layer], layer)]
    last = layer
save("again.onnx", model(graph(layers, [value("x", FLOAT, [3, 2])], [value(last, FLOAT, [3, 2])], [one, matrix])))
