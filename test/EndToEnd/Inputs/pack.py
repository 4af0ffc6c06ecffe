"""pack.py FOLDER: rows of documents that --pack keeps apart have the losses and gradients of each document alone, in the interpreter (double precision) and in
compiled programs: learned positions, rotary embeddings, ALiBi, learned biases of distances; from a token file, whose documents the program packs itself."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
import onnx_writer as ow  # noqa: E402
import checkpoints  # noqa: E402
from commands import build_for_simulated_gpu, call  # noqa: E402

folder = sys.argv[1]
DATA = os.path.join(os.environ["PARTITA_SOURCE"], "test", "Data")
END, LENGTH, VOCABULARY, WIDTH, HEADS = 5, 12, 64, 16, 4
LENGTHS = [5, 4, 3, 7, 1, 4]  # of documents, with their ends: two rows
random = numpy.random.default_rng(0)
DOCUMENTS = [[*(int(token) + (token >= END) for token in random.integers(0, VOCABULARY - 1, length - 1)), END] for length in LENGTHS]
TOKENS = sum(DOCUMENTS, [])
numpy.array(TOKENS, "<u2").tofile(f"{folder}/tokens.u16")


def write_bias_model(path, length, kind):
    """One layer of attention whose bias is ALiBi's, or a learned one of each distance; without other positions."""
    values = numpy.random.default_rng(1)
    distance = numpy.arange(length)[:, None] - numpy.arange(length)
    low = numpy.where(numpy.tri(length, dtype=bool), 0, -3.4028235e38)
    sizes = {"table": (VOCABULARY, WIDTH), "head": (WIDTH, VOCABULARY), **{name: (WIDTH, WIDTH) for name in ("q", "k", "v", "o")}, "relative": (LENGTH, HEADS)}
    weights = {name: (values.standard_normal(size) * 0.5).astype("f4") for name, size in sizes.items()}
    nodes = [ow.node("Gather", ["table", "input_ids"], ["x"])]
    for name in "qkv":
        nodes += [ow.node("MatMul", ["x", name], [f"{name}.flat"]), ow.node("Reshape", [f"{name}.flat", "heads"], [f"{name}.heads"]),
                  ow.node("Transpose", [f"{name}.heads"], [f"{name}.turned"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
    nodes += [ow.node("MatMul", ["q.turned", "k.turned"], ["s"]), ow.node("Mul", ["s", "scale"], ["scaled"])]
    if kind == "alibi":  # of keys alone, as BLOOM has it
        del weights["relative"]
        slopes = 2.0 ** -numpy.arange(1, HEADS + 1)
        low = low + slopes[:, None, None] * numpy.arange(length)
        tensors = []
    else:
        nodes += [ow.node("Gather", ["relative", "distance"], ["of_distance"]), ow.node("Transpose", ["of_distance"], ["by_head"], perm=[2, 0, 1]),
                  ow.node("Unsqueeze", ["by_head", "front"], ["bias"]), ow.node("Add", ["scaled", "bias"], ["biased"])]
        tensors = [ow.tensor("distance", ow.INT64, distance.shape, numpy.maximum(distance, 0).astype("i8").tobytes()), ow.ints("front", [0])]
    nodes += [ow.node("Add", ["biased" if kind == "relative" else "scaled", "mask"], ["masked"]), ow.node("Softmax", ["masked"], ["p"], axis=-1),
              ow.node("MatMul", ["p", "v.turned"], ["a"]), ow.node("Transpose", ["a"], ["a.turned"], perm=[0, 2, 1, 3]),
              ow.node("Reshape", ["a.turned", "flat"], ["a.flat"]), ow.node("MatMul", ["a.flat", "o"], ["y"]), ow.node("Add", ["x", "y"], ["z"]),
              ow.node("MatMul", ["z", "head"], ["logits"])]
    tensors += [ow.tensor(name, ow.FLOAT, value.shape, value.tobytes()) for name, value in weights.items()]
    nodes.insert(0, ow.constant("mask", ow.FLOAT, low.shape, low.astype("f4").tobytes()))  # of the code, no tensor that may be trained
    tensors += [ow.ints("heads", [0, 0, HEADS, WIDTH // HEADS]), ow.ints("flat", [0, 0, WIDTH]), ow.tensor("scale", ow.FLOAT, [], ow.floats([0.5]))]
    ow.save(path, ow.model(ow.graph(nodes, [ow.value("input_ids", ow.INT64, ["batch", "sequence"])],
                                    [ow.value("logits", ow.FLOAT, ["batch", "sequence", VOCABULARY])], tensors), opset=17))


def interpret(model, batch, ids, labels, options, has_mask=False, init="perturbed"):
    """The loss, and the gradients by parameter, in double precision. A mask is of ones."""
    program, numbers, log, gradients = (f"{folder}/step.{end}" for end in ("mlir", "txt", "csv", "safetensors"))
    with open(numbers, "w", encoding="utf-8") as file:
        print(*ids, *([1] * len(ids) if has_mask else []), *labels, file=file)
    call("partita", "compile", model, "--dim", f"batch={batch}", "--dim", f"sequence={len(ids) // batch}", "--objective", "causal", "--optimizer", "sgd", *options,
         "--compile-to", "optimize", "-o", program)
    call("partita-interp", program, "--entry", "train_step", "--inputs", numbers, "--log", log, "--gradients", gradients, "--init", init)
    with open(log, encoding="utf-8") as file:
        loss = float(file.read().split(",")[-1])
    return loss, checkpoints.read(gradients)[0]


def labels_of(document):
    return [*document[1:], -100]


def check(name, model_of, options, has_mask=False):
    """`model_of`: a path by the sequence's length."""
    count = sum(length - 1 for length in LENGTHS)
    loss, gradients = interpret(model_of(LENGTH), 2, TOKENS, sum(map(labels_of, DOCUMENTS), []), [*options, "--pack", str(END)], has_mask)
    alone, sums = 0, {}
    for document in DOCUMENTS:
        if len(document) > 1:
            part, slopes = interpret(model_of(len(document)), 1, document, labels_of(document), options, has_mask)
            alone += part * (len(document) - 1)
            for each, value in slopes.items():
                sums[each] = sums.get(each, 0) + value * (len(document) - 1)
    largest = max(numpy.abs(value).max() for value in sums.values())
    assert abs(loss * count - alone) < 1e-10 * alone, (name, loss * count, alone)
    assert gradients.keys() == sums.keys(), name
    for each, value in gradients.items():
        error = numpy.abs(value * count - sums[each]).max() / max(numpy.abs(sums[each]).max(), 1e-3 * largest)
        assert error < 1e-10, (name, each, error)
    print(name, "agrees")


def run(name, model, options):
    """The loss of the first step of a compiled program that packs the token file itself."""
    program, log = f"{folder}/{name}", f"{folder}/{name}.csv"
    call("partita", "compile", model, "--dim", "batch=2", "--dim", f"sequence={LENGTH}", "--objective", "causal", "--optimizer", "sgd", "--lr", "0.1", *options, "-o", program)
    if "cuda" in options:
        build_for_simulated_gpu(program)
    call("partita", "run", program, "--data", f"uint16:{folder}/tokens.u16", "--steps", "2", "--log", log, "--init", "seed:1")
    with open(log, encoding="utf-8") as file:
        header, *rows = [line.split(",") for line in file.read().split()]
    return [float(row[header.index("loss")]) for row in rows]


def bias_model(kind):
    def path(length):
        name = f"{folder}/{kind}{length}.onnx"
        if not os.path.exists(name):
            write_bias_model(name, length, kind)
        return name
    return path


families = {"gpt2": [], "gpt_neox": [], "llama": [], "mistral": ["--input", "attention_mask=ones"], "opt": []}
for name, options in families.items():
    check(name, lambda length, name=name: f"{DATA}/families/{name}_dynamo.onnx", options, has_mask=name in ("mistral", "opt"))
check("gpt2 of TorchScript", lambda length: f"{DATA}/gpt2_tiny_torchscript_eager.onnx", [])
check("a mask as input", lambda length: f"{DATA}/families/mistral_torchscript.onnx", [], has_mask=True)
for kind in ("alibi", "relative"):
    check(kind, bias_model(kind), [])

for name, options in {"gpt2": [], "llama": []}.items():
    model = f"{DATA}/families/{name}_dynamo.onnx"
    alone = run(f"{name}_alone", model, [*options, "--pack", str(END)])
    parts = [interpret(model, 1, document, labels_of(document), options, init="seed")[0] * (len(document) - 1) for document in DOCUMENTS if len(document) > 1]
    assert abs(alone[0] - sum(parts) / sum(length - 1 for length in LENGTHS)) < 1e-5 * alone[0], (name, alone, parts)
    assert alone[1] < alone[0], alone
    for mesh, more in {"dp=2,tp=2": ["--sequence-parallel", "--zero-stage", "2"], "pp=2": [], "dp=2": ["--zero-stage", "3"]}.items():
        split = run(f"{name}_split", model, [*options, "--pack", str(END), "--mesh", mesh, *more])
        assert numpy.allclose(split, alone, rtol=1e-5), (name, mesh, split, alone)
    rounded = run(f"{name}_bfloat16", model, [*options, "--pack", str(END), "--precision", "bfloat16"])
    assert numpy.allclose(rounded, alone, rtol=0.02), (name, rounded, alone)
    simulated = run(f"{name}_cuda", model, [*options, "--pack", str(END), "--target", "cuda", "--no-build"])
    assert numpy.allclose(simulated, alone, rtol=1e-5), (name, simulated, alone)
    print(name, "runs with", *(f"{loss:.5f}" for loss in alone))
