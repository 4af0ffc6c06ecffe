"""folded.onnx: three equal matrices, and two biases with an element for every query and key. plain.onnx: matrices that
begin alike, equal ones of one number, a table that a bias is looked up in, and a bias for every key."""
from onnx_writer import *


def attention(name, x, bias):
    return [node("MatMul", [x, "keys"], [name + "s"]), node("Add", [name + "s", bias], [name + "b"]),
            node("Softmax", [name + "b"], [name + "p"], axis=-1), node("MatMul", [name + "p", x], [name])]


def save_model(path, nodes, last, tensors):
    tensors = [tensor("keys", FLOAT, [4, 6], floats([i / 9 for i in range(24)])), *tensors]
    save(path, model(graph(nodes, [value("x", FLOAT, [2, 6, 4])], [value(last, FLOAT, [2, 6, 4])], tensors), 17))


values = [i * i / 16 for i in range(16)]
matrices = [tensor(name, FLOAT, [4, 4], floats(values)) for name in ("first", "second", "third")]
pairs = [(q - k) * (q - k) / 7 for q in range(6) for k in range(6)]
masked = [v if k <= q else -3.4e38 for (q, k), v in zip([(q, k) for q in range(6) for k in range(6)], pairs)]
matmuls = [node("MatMul", ["x", "first"], ["a"]), node("MatMul", ["a", "second"], ["b"]), node("MatMul", ["b", "third"], ["c"])]
save_model("folded.onnx", matmuls + attention("d", "c", "bias") + [node("Unsqueeze", ["hidden", "front"], ["hidden1"])]
           + attention("e", "d", "hidden1"), "e",
           [*matrices, tensor("bias", FLOAT, [1, 6, 6], floats(pairs)), tensor("hidden", FLOAT, [6, 6], floats(masked)), ints("front", [0])])
other = [*values[:-1], 1.0]
matrices = [tensor("first", FLOAT, [4, 4], floats(values)), tensor("second", FLOAT, [4, 4], floats(other)),
            tensor("third", FLOAT, [4, 4], floats([1] * 16)), tensor("fourth", FLOAT, [4, 4], floats([1] * 16))]
looked_up = [node("Gather", ["table", "places"], ["g"]), node("Transpose", ["g"], ["bias"], perm=[2, 0, 1])]
save_model("plain.onnx", matmuls + [node("MatMul", ["c", "fourth"], ["c1"])] + looked_up + attention("d", "c1", "bias")
           + attention("e", "d", "row"), "e",
           [*matrices, tensor("table", FLOAT, [11, 1], floats([i * i for i in range(11)])),
            tensor("places", INT64, [6, 6], int64s([q - k + 5 for q in range(6) for k in range(6)])),
            tensor("row", FLOAT, [1, 6], floats([i * i for i in range(6)]))])
