# family_cache.py DIR: a cache for try_families.py with hand-made models in place of exports. llama and bert are y = x W: correct, with
# wrong expected logits, no ONNX file, refused by the exporter. bart and opt are y = x W + g g of a vector g that has one row: with g, and
# with the product in its place as an exporter folds it; of opt the export with g is missing. mbart keeps g, a buffer. pegasus is bart,
# but its folded export has 2 W - round(W) in place of W, which is W with another gradient.
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
weight = numpy.round(weight)


vector = random.standard_normal((1, 3)).astype(numpy.float32)


def trained(trains_vector=None):
    """(losses before three steps of SGD, weight, vector and logits after them), of y = x W, or with a vector that is trained or not."""
    w, losses = weight.astype(numpy.float64), []
    g = numpy.zeros((1, 3)) if trains_vector is None else vector.astype(numpy.float64)
    for _ in range(3):
        difference = x @ w + g * g - target
        losses.append(float((difference ** 2).mean()))
        by_y = 2 * difference / difference.size
        w = w - RATE * x.T @ by_y
        if trains_vector:
            g = g - RATE * 2 * g * by_y.sum(0, keepdims=True)
    return losses, w, g, x @ w + g * g


def write_model(path, with_vector=None, rounds=False):
    """y = x W; "factor": with g g; "product": with that in place of g; `rounds`: with 2 W - round(W) in place of W."""
    nodes = [helper.make_node("MatMul", ["x", "v" if rounds else "w"], ["xw" if with_vector else "logits"])]
    tensors = [numpy_helper.from_array(weight, "w")]
    if rounds:
        nodes = [helper.make_node("Add", ["w", "w"], ["twice"]), helper.make_node("Round", ["w"], ["rounded"]),
                 helper.make_node("Sub", ["twice", "rounded"], ["v"]), *nodes]
    if with_vector == "factor":
        nodes.append(helper.make_node("Mul", ["g", "g"], ["gg"]))
        tensors.append(numpy_helper.from_array(vector, "g"))
    if with_vector:
        nodes.append(helper.make_node("Add", ["xw", "gg"], ["logits"]))
    if with_vector == "product":
        tensors.append(numpy_helper.from_array(vector * vector, "gg"))
    graph = helper.make_graph(
        nodes, "model", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 5])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def write_case(family, error=0.0, trains_vector=None):
    folder = os.path.join(sys.argv[1], "newest", family)
    os.makedirs(folder)
    losses, w, g, logits = trained(trains_vector)
    write_safetensors(os.path.join(folder, "data.safetensors"), {"x": x, "labels": target})
    write_safetensors(os.path.join(folder, "expected.safetensors"),
                      {"logits": logits + error, "parameter:w": w, "parameter:g": g})
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump({"dims": {"batch": 4}, "objective": "mse", "lr": RATE, "losses": losses, "single": 1e-7,
                   "torch": "0.1", "transformers": "0.2"}, file)
    return lambda name: os.path.join(folder, name)


llama, bert = write_case("llama"), write_case("bert", error=0.01)
for path in (llama, bert):
    write_model(path("dynamo.onnx"))
with open(llama("torchscript.onnx"), "wb") as file:
    file.write(b"no model")
with open(bert("torchscript.error"), "w") as file:
    file.write("UnsupportedOperatorError: no such operator\n")

bart, opt, mbart = write_case("bart", trains_vector=True), write_case("opt", trains_vector=True), write_case("mbart", trains_vector=False)
write_model(bart("torchscript.onnx"), "factor")
with open(opt("torchscript.error"), "w") as file:
    file.write("no such operator\n")
for path in (bart, opt, mbart):
    write_model(path("torchscript_folded.onnx"), "product")

pegasus = write_case("pegasus", trains_vector=True)
write_model(pegasus("torchscript.onnx"), "factor")
write_model(pegasus("torchscript_folded.onnx"), "product", rounds=True)
