"""What a model rounds to 16 bits and widens again, x.half().float(), and the gradients behind it.

    rounding.py make DIR           DIR/rounding.onnx, whose loss is a sum of squares of rounded products, DIR/tiny.onnx, whose
                                   loss is a tiny multiple of the sum of matmuls' rounded results, and DIR/data.safetensors
    rounding.py check GRADIENTS    a file of --grads against numpy's: rounded where the values were, as PyTorch does
    rounding.py check-tiny PARAMETERS    of tiny.onnx after a step from zeros: float16 has rounded the gradient to zero, bfloat16 has not
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "Import"), os.path.join(HERE, "..", "..", "Golden")]
import numpy  # noqa: E402
from family_files import read_safetensors, write_safetensors  # noqa: E402
from onnx_writer import FLOAT, constant, floats, graph, model, node, save, tensor, value  # noqa: E402

FACTOR, X, TINY = 0.3, [[1.0], [3.0]], 1e-9
# name: ONNX's type, the bits of a float32 that it keeps, the weights (the last float16 is below its smallest number)
TYPES = {"half": (10, None, [1.0007, -0.333, 7.77, 1e-9]), "bfloat16": (16, 16, [1.007, -0.3333, 77.7, 1e-9])}


def make(folder):
    nodes, tensors = [constant("factor", FLOAT, [], floats([FACTOR]))], []
    for name, (kind, _, weights) in TYPES.items():
        tensors.append(tensor(f"{name}.w", FLOAT, [4], floats(weights)))
        nodes += [node("Mul", ["x", f"{name}.w"], [f"{name}_p"]), node("Cast", [f"{name}_p"], [f"{name}_16"], f"{name}_narrow", to=kind),
                  node("Cast", [f"{name}_16"], [f"{name}_r"], f"{name}_widen", to=FLOAT)]
    nodes += [node("Concat", [f"{name}_r" for name in TYPES], ["all"], axis=1), node("Mul", ["all", "all"], ["squares"]), node("ReduceSum", ["squares"], ["sum"], keepdims=0),
              node("Mul", ["sum", "factor"], ["loss"])]
    save(os.path.join(folder, "rounding.onnx"), model(graph(nodes, [value("x", FLOAT, ["batch", 1])], [value("loss", FLOAT, [])], tensors)))
    nodes, tensors = [constant("tiny", FLOAT, [], floats([TINY]))], []
    for name, (kind, _, _) in TYPES.items():
        tensors.append(tensor(f"{name}.w", FLOAT, [1, 2], floats([0, 0])))
        nodes += [node("MatMul", ["x", f"{name}.w"], [f"{name}_p"]), node("Cast", [f"{name}_p"], [f"{name}_16"], to=kind), node("Cast", [f"{name}_16"], [f"{name}_r"], to=FLOAT)]
    nodes += [node("Add", [f"{name}_r" for name in TYPES], ["sum"]), node("Mul", ["sum", "tiny"], ["small"]), node("ReduceSum", ["small"], ["loss"], keepdims=0)]
    save(os.path.join(folder, "tiny.onnx"), model(graph(nodes, [value("x", FLOAT, ["batch", 1])], [value("loss", FLOAT, [])], tensors)))
    write_safetensors(os.path.join(folder, "data.safetensors"), {"x": numpy.array(X, numpy.float32)})


def rounded(numbers, bits):
    """To float16, or to the upper bits of a float32: to nearest, ties to even."""
    numbers = numpy.asarray(numbers, numpy.float32)
    if bits is None:
        return numbers.astype(numpy.float16).astype(numpy.float32)
    words = numbers.view(numpy.uint32)
    return ((words + (1 << (bits - 1)) - 1 + (words >> bits & 1)) >> bits << bits).astype(numpy.uint32).view(numpy.float32)


if sys.argv[1] == "make":
    make(sys.argv[2])
elif sys.argv[1] == "check-tiny":
    found = read_safetensors(sys.argv[2])
    for name, wanted in {"half": 0, "bfloat16": -TINY * numpy.sum(X)}.items():
        if not numpy.allclose(found[f"{name}.w"], wanted, rtol=0.01, atol=0):
            sys.exit(f"{name}: {found[f'{name}.w'].tolist()} instead of {wanted}")
    print("rounded as in PyTorch")
else:
    found, x = read_safetensors(sys.argv[2]), numpy.array(X, numpy.float32)
    for name, (_, bits, weights) in TYPES.items():
        values = rounded(x * numpy.array(weights, numpy.float32), bits)
        wanted = (x * rounded(2 * FACTOR * values, bits)).sum(0)
        gradient = found[f"{name}.w"]
        if not numpy.allclose(gradient, wanted, rtol=1e-6, atol=0):
            sys.exit(f"{name}: {gradient.tolist()} instead of {wanted.tolist()}")
        if numpy.allclose(wanted, (2 * FACTOR * x * x * numpy.array(weights)).sum(0), rtol=1e-5, atol=0):
            sys.exit(f"{name}: nothing is rounded")
    print("rounded as in PyTorch")
