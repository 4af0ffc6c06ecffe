# family_cache.py DIR: a cache for try_families.py with a hand-made model (y = x W) in place of exports of llama and bert: one
# correct, one with wrong expected logits, one that is no ONNX file, one that the exporter refused.
import json
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
from family_files import write_safetensors  # noqa: E402

RATE = 0.1
random = numpy.random.default_rng(1)
x, target, weight = (random.standard_normal(shape).astype(numpy.float32) for shape in ((4, 5), (4, 3), (5, 3)))


def trained():
    """(losses before three steps of SGD, weight after them)."""
    w, losses = weight.astype(numpy.float64), []
    for _ in range(3):
        difference = x @ w - target
        losses.append(float((difference ** 2).mean()))
        w = w - RATE * 2 * x.T @ difference / difference.size
    return losses, w


def write_model(path):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["logits"])], "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 5])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def write_case(folder, logits):
    os.makedirs(folder)
    losses, w = trained()
    write_safetensors(os.path.join(folder, "data.safetensors"), {"x": x, "labels": target})
    write_safetensors(os.path.join(folder, "expected.safetensors"), {"logits": logits(x @ w), "parameter:w": w})
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump({"dims": {"batch": 4}, "objective": "mse", "lr": RATE, "losses": losses, "single": 1e-7,
                   "torch": "0.1", "transformers": "0.2"}, file)


write_case(os.path.join(sys.argv[1], "newest", "llama"), lambda logits: logits)
write_case(os.path.join(sys.argv[1], "newest", "bert"), lambda logits: logits + 0.01)
for family in ("llama", "bert"):
    write_model(os.path.join(sys.argv[1], "newest", family, "dynamo.onnx"))
with open(os.path.join(sys.argv[1], "newest", "llama", "torchscript.onnx"), "wb") as file:
    file.write(b"no model")
with open(os.path.join(sys.argv[1], "newest", "bert", "torchscript.error"), "w") as file:
    file.write("UnsupportedOperatorError: no such operator\n")
