"""many.onnx: a model with many problems, most of them behind others."""
from onnx_writer import *

FLOAT8 = 17
branches = [graph([node(op, ["x"], ["r"], f"/{op}")], outputs=[value("r", FLOAT, ["n", 4])]) for op in ("Bar", "Relu")]
called = function("Fn", ["u"], ["v"], [node("Qux", ["u"], ["t"], "/qux"), node("Elu", ["t"], ["v"], "/inner", beta=2.0),
                                          node("Cast", ["u"], ["unused"], "/to8", to=FLOAT8)])
nodes = [node("Foo", ["x"], ["a"], "/foo"),
         node("Elu", ["a"], ["b"], "/elu", beta=2.0),
         node("Cast", ["b"], ["c"], "/cast", to=FLOAT8),
         node("If", ["k"], ["d"], "/if", then_branch={"graph": branches[0]}, else_branch={"graph": branches[1]}),
         node("Fn", ["d"], ["e"], "/fn", "local"),
         node("Softmax", ["e"], ["f"], "/softmax", axis=1.5),
         node("Reshape", ["f", "sizes"], ["g"], "/reshape"),  # perhaps of known sizes
         node("MatMul", ["g", "w"], ["h"], "/matmul"),        # perhaps of fitting sizes
         node("Elu", ["h"], ["y"], "/last", gamma=1.0, delta=1.0),
         node("TopK", ["a", "k1"], ["t1", "t2"], "/topk", axis=7), node("TopK", ["a", "k1"], ["t3", "t4"], "/topk3", axis=3),
         node("LogSoftmax", ["e"], ["l"], "/logsoftmax", axis=-9),
         node("Gather", ["x", "c"], ["o"], "/gather", axis=2),  # of what is known
         node("Reshape", ["x", "ids"], ["z"], "/apart")]
save("many.onnx", model(graph(
    nodes, [value("x", FLOAT, ["n", 4]), value("k", BOOL, []), value("ids", INT64, [2])],
    [value("y", FLOAT, ["n", 4]), value("z", FLOAT, ["n", 4])],
    [tensor("w", FLOAT, [4, 4], floats([1] * 16)), ints("sizes", [2, 2, 2]), ints("k1", [1])]), functions=[called]))
