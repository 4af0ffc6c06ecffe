"""hidden_queries.py FOLDER: ONNX's Attention where a mask hides all keys of a query (a sample that is all padding, padding on the left of causal attention): finite parameters
after training, with which the logits are zeros there and what numpy computes elsewhere."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
import onnx_writer as ow  # noqa: E402
from commands import call  # noqa: E402
from tensor_files import read_tensors, write_tensors  # noqa: E402

folder = sys.argv[1]
random = numpy.random.default_rng(0)
BATCH, LENGTH, WIDTH, VOCABULARY, HEADS = 3, 4, 8, 16, 2
INSIDE = numpy.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1]])
IDS = random.integers(0, VOCABULARY, INSIDE.shape)
DATA = {"input_ids": IDS, "attention_mask": INSIDE, "labels": numpy.where(INSIDE > 0, IDS, -100)}


def weights(groups):
    sizes = {"table": (VOCABULARY, WIDTH), "wq": (WIDTH, WIDTH), "wk": (WIDTH, WIDTH * groups // HEADS), "wv": (WIDTH, WIDTH * groups // HEADS),
             "head": (WIDTH, VOCABULARY)}
    return {name: random.standard_normal(size).astype(numpy.float32) for name, size in sizes.items()}


def write(path, values, groups, floats, shows, lengths=False, **attributes):
    """`shows`: the weights of attention are a result too, so that it is not raised. `lengths`: the mask's sums, as keys of a cache that are there, instead."""
    kept = ["", "", "", "lengths"] if lengths else ["bias" if floats else "keep"]
    nodes = [ow.node("Gather", ["table", "input_ids"], ["x"]), ow.node("MatMul", ["x", "wq"], ["q"]), ow.node("MatMul", ["x", "wk"], ["k"]),
             ow.node("MatMul", ["x", "wv"], ["v"]), ow.node("Cast", ["attention_mask"], ["inside"], to=ow.BOOL), ow.node("Unsqueeze", ["inside", "axes"], ["keep"]),
             ow.node("Where", ["keep", "zero", "hides"], ["bias"]), ow.node("ReduceSum", ["attention_mask", "last"], ["lengths"], keepdims=0),
             ow.node("Attention", ["q", "k", "v", *kept], ["y", "", "", "scores"] if shows else ["y"], q_num_heads=HEADS,
                     kv_num_heads=groups, qk_matmul_output_mode=3, **attributes),
             ow.node("MatMul", ["y", "head"], ["logits"])]
    tensors = [ow.tensor(name, ow.FLOAT, value.shape, value.tobytes()) for name, value in values.items()]
    tensors += [ow.ints("axes", [1, 2]), ow.ints("last", [1]), ow.tensor("zero", ow.FLOAT, [], ow.floats([0])), ow.tensor("hides", ow.FLOAT, [], ow.floats([float("-inf")]))]
    results = [ow.value("logits", ow.FLOAT, ["batch", "sequence", VOCABULARY])]
    results += [ow.value("scores", ow.FLOAT, ["batch", HEADS, "sequence", "sequence"])] if shows else []
    inputs = [ow.value(name, ow.INT64, ["batch", "sequence"]) for name in ("input_ids", "attention_mask")]
    ow.save(path, ow.model(ow.graph(nodes, inputs, results, tensors), opset=24 if lengths else 23))


def expected(values, groups, lengths=False, is_causal=0, softcap=0):
    x = values["table"].astype(float)[IDS]
    q, k, v = (numpy.swapaxes((x @ values[name]).reshape(BATCH, LENGTH, heads, -1), 1, 2) for name, heads in (("wq", HEADS), ("wk", groups), ("wv", groups)))
    k, v = (numpy.repeat(each, HEADS // groups, axis=1) for each in (k, v))
    scores = q @ numpy.swapaxes(k, 2, 3) / numpy.sqrt(q.shape[-1])
    scores = softcap * numpy.tanh(scores / softcap) if softcap else scores
    keep = numpy.broadcast_to(INSIDE[:, None, None, :] > 0, scores.shape)
    keep = keep & numpy.tri(LENGTH, dtype=bool) if is_causal else keep
    if lengths:  # queries are the last ones of so many keys
        query, key = numpy.ogrid[:LENGTH, :LENGTH]
        keep = (key <= query + INSIDE.sum(1)[:, None, None, None] - LENGTH) & numpy.ones_like(keep)
    shares = numpy.where(keep, numpy.exp(scores), 0)
    shares = shares / numpy.maximum(shares.sum(-1, keepdims=True), 1e-300)
    return numpy.swapaxes(shares @ v, 1, 2).reshape(BATCH, LENGTH, WIDTH) @ values["head"]


write_tensors(folder + "/data.safetensors", DATA)
cases = {"floats": (HEADS, True, False, {}), "causal": (HEADS, False, False, {"is_causal": 1}), "capped": (1, False, False, {"softcap": 2.0}),
         "plain": (HEADS, True, True, {"is_causal": 1}), "cache": (HEADS, False, False, {"is_causal": 1, "lengths": True})}
for name, (groups, floats, shows, attributes) in cases.items():
    values = weights(groups)
    model, program = f"{folder}/{name}.onnx", f"{folder}/{name}"
    write(model, values, groups, floats, shows, **attributes)
    call("partita", "compile", model, "--dim", f"batch={BATCH}", "--dim", f"sequence={LENGTH}", "--objective", "masked", "--optimizer", "sgd", "--lr", "0.1",
         "-o", program)
    call("partita", "run", program, "--data", folder + "/data.safetensors", "--steps", "2", "--forward", folder + "/forward.safetensors",
         "--dump-parameters", folder + "/parameters.safetensors")
    after = read_tensors(folder + "/parameters.safetensors")[0]
    for each, value in values.items():
        assert numpy.isfinite(after[each]).all() and (after[each] != value).any(), (name, each)
    logits = read_tensors(folder + "/forward.safetensors")[0]["logits"]
    assert not logits[1].any() and logits[0].any(), name
    numpy.testing.assert_allclose(logits, expected(after, groups, **attributes), rtol=2e-4, atol=2e-5, err_msg=name)
    print(name, "agrees")
print("hidden queries get zeros")
