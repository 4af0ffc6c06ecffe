"""not_finite.py MODEL KIND: a model with weights that are finite, or three of which are NaN (and one of another tensor), or two infinite, or one
large, or one of a matrix high or low; or finite ones with which it computes NaN. Beside it MODEL.txt, tokens for it, and MODEL.safetensors, the same weights."""
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import numpy  # noqa: E402
from onnx_writer import *  # noqa: E402,F403

path, kind = sys.argv[1:]
source = random.Random(1)
values = {name: [source.gauss(0, 0.5) for _ in range(count)]
          for name, count in (("table", 16 * 8), ("wide", 8 * 12), ("shift", 12), ("head", 12 * 16))}
shapes = {"table": [16, 8], "wide": [8, 12], "shift": [12], "head": [12, 16]}
if kind == "nan":  # of two ranks' columns
    for i in (3, 14, 95):
        values["wide"][i] = float("nan")
    values["head"][0] = float("nan")
elif kind == "infinite":
    values["shift"][2], values["shift"][11] = float("inf"), -float("inf")
elif kind == "large":  # for 16 bits
    values["shift"][5] = 1e6
elif kind in ("high", "low"):
    values["wide"][5] = 1e6 if kind == "high" else -1e6
last = "Log" if kind == "log" else "Tanh"
save(path, model(graph(
    [node("Gather", ["table", "ids"], ["rows"]), node("MatMul", ["rows", "wide"], ["moved"]), node("Add", ["moved", "shift"], ["sum"]),
     node(last, ["sum"], ["bent"]), node("MatMul", ["bent", "head"], ["logits"])],
    [value("ids", INT64, ["batch", 6])], [value("logits", FLOAT, ["batch", 6, 16])],
    [tensor(name, FLOAT, shapes[name], floats(values[name])) for name in values])))
with open(path + ".txt", "wb") as file:
    file.write(bytes(i * i % 16 for i in range(100)))
family_files.write_safetensors(path + ".safetensors", {
    name: numpy.array(values[name], numpy.float32).reshape(shapes[name]) for name in values})
