"""function_names.py MODEL: a model whose parameters are called like functions, one like a safetensors file's own key, and MODEL.txt, tokens for it.
function_names.py MODEL TRAINED: which of them have other values."""
import random
import sys

path = sys.argv[1]
if len(sys.argv) > 2:
    from safetensors import onnx_tensors
    old, new = onnx_tensors(path), onnx_tensors(sys.argv[2])
    assert list(old) == list(new)
    trained = sorted(name for name in old if old[name]["raw"] != new[name]["raw"])
    print("trained:", *trained, end=", kept: ")
    print(*sorted(set(old) - set(trained)))
    sys.exit()

from onnx_writer import *  # noqa: E402,F403
source = random.Random(1)


def weight(name, *dims):
    count = 1
    for dim in dims:
        count *= dim
    return tensor(name, FLOAT, dims, floats([source.gauss(0, 0.5) for _ in range(count)]))


save(path, model(graph(
    [node("Gather", ["train_step", "ids"], ["rows"]), node("MatMul", ["rows", "forward"], ["wide"]),
     node("Add", ["wide", "init"], ["moved"]), node("Mul", ["moved", "__metadata__"], ["sum"]), node("Tanh", ["sum"], ["bent"]), node("MatMul", ["bent", "eval_step"], ["logits"])],
    [value("ids", INT64, ["batch", 6])], [value("logits", FLOAT, ["batch", 6, 16])],
    [weight("train_step", 16, 8), weight("forward", 8, 12), weight("init", 12), weight("__metadata__", 12), weight("eval_step", 12, 16)])))
with open(path + ".txt", "wb") as file:
    file.write(bytes(i * i % 16 for i in range(100)))
