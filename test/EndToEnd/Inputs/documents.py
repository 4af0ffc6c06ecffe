"""documents.py FOLDER: a causal language model of packed sequences, whose logits after training are what numpy computes document by document; ids that come back end the
run. On CPUs and on the simulated GPU, whose ranks share one."""
import os
import subprocess
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
import onnx_writer as ow  # noqa: E402
import checkpoints  # noqa: E402
from commands import build_for_simulated_gpu, call  # noqa: E402
from tensor_files import write_tensors  # noqa: E402

folder = sys.argv[1]
random = numpy.random.default_rng(0)
BATCH, LENGTH, WIDTH, VOCABULARY, HEADS, LAYERS = 4, 8, 16, 32, 2, 2
TOKENS = random.integers(0, VOCABULARY, (BATCH, LENGTH))
DOCUMENTS = numpy.array([[0, 0, 0, 1, 1, 2, 2, 2], [5, 3, 3, 3, 3, 9, 9, 9], [1] * 8, [0, 1, 2, 3, 4, 5, 6, 7]])


def write(path, values):
    nodes = [ow.node("Gather", ["table", "input_ids"], ["x0"]), ow.node("Unsqueeze", ["document_ids", "query"], ["of_query"]),
             ow.node("Unsqueeze", ["document_ids", "key"], ["of_key"]), ow.node("Equal", ["of_query", "of_key"], ["same"]),
             ow.node("And", ["same", "causal"], ["seen"]), ow.node("Where", ["seen", "zero", "low"], ["mask"])]
    for i in range(LAYERS):
        for name in "qkv":
            nodes += [ow.node("MatMul", [f"x{i}", f"{name}{i}"], [f"{name}{i}.flat"]), ow.node("Reshape", [f"{name}{i}.flat", "heads"], [f"{name}{i}.heads"]),
                      ow.node("Transpose", [f"{name}{i}.heads"], [f"{name}{i}.turned"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
        nodes += [ow.node("MatMul", [f"q{i}.turned", f"k{i}.turned"], [f"s{i}"]), ow.node("Mul", [f"s{i}", "scale"], [f"scaled{i}"]),
                  ow.node("Add", [f"scaled{i}", "mask"], [f"masked{i}"]), ow.node("Softmax", [f"masked{i}"], [f"p{i}"], axis=-1),
                  ow.node("MatMul", [f"p{i}", f"v{i}.turned"], [f"o{i}"]), ow.node("Transpose", [f"o{i}"], [f"o{i}.turned"], perm=[0, 2, 1, 3]),
                  ow.node("Reshape", [f"o{i}.turned", "flat"], [f"o{i}.flat"]), ow.node("MatMul", [f"o{i}.flat", f"o{i}.weight"], [f"y{i}"]),
                  ow.node("Add", [f"x{i}", f"y{i}"], [f"x{i + 1}"])]
    nodes.append(ow.node("MatMul", [f"x{LAYERS}", "head"], ["logits"]))
    tensors = [ow.tensor(name, ow.FLOAT, value.shape, value.tobytes()) for name, value in values.items()]
    tensors += [ow.ints("query", [1, 3]), ow.ints("key", [1, 2]), ow.ints("heads", [0, 0, HEADS, WIDTH // HEADS]), ow.ints("flat", [0, 0, WIDTH]),
                ow.tensor("causal", ow.BOOL, [LENGTH, LENGTH], numpy.tri(LENGTH, dtype=bool).tobytes()), ow.tensor("zero", ow.FLOAT, [], ow.floats([0])),
                ow.tensor("low", ow.FLOAT, [], ow.floats([-3.4028235e38])), ow.tensor("scale", ow.FLOAT, [], ow.floats([(WIDTH // HEADS) ** -0.5]))]
    inputs = [ow.value(name, ow.INT64, ["batch", "sequence"]) for name in ("input_ids", "document_ids")]
    ow.save(path, ow.model(ow.graph(nodes, inputs, [ow.value("logits", ow.FLOAT, ["batch", "sequence", VOCABULARY])], tensors), opset=17))


def logits(values, tokens):
    """Of one document."""
    x = values["table"].astype(float)[tokens]
    for i in range(LAYERS):
        q, k, v = (numpy.swapaxes((x @ values[f"{name}{i}"]).reshape(len(tokens), HEADS, -1), 0, 1) for name in "qkv")
        scores = numpy.where(numpy.tri(len(tokens), dtype=bool), q @ numpy.swapaxes(k, 1, 2) * (WIDTH // HEADS) ** -0.5, -numpy.inf)
        shares = numpy.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        x = x + numpy.swapaxes(shares @ v, 0, 1).reshape(len(tokens), WIDTH) @ values[f"o{i}.weight"]
    return x @ values["head"]


def read(path):
    """Of any type as float32; a bfloat16 is read as its bits."""
    return {name: (value.astype("u4") << 16).view("f4") if value.dtype == numpy.uint16 else value for name, value in checkpoints.read(path)[0].items()}


def expected(values):
    result = numpy.zeros((BATCH, LENGTH, VOCABULARY))
    for sample, ids in enumerate(DOCUMENTS):
        for each in set(ids):
            result[sample, ids == each] = logits(values, TOKENS[sample, ids == each])
    return result


sizes = {"table": (VOCABULARY, WIDTH), "head": (WIDTH, VOCABULARY)}
sizes.update({f"{name}{i}": (WIDTH, WIDTH) for i in range(LAYERS) for name in ("q", "k", "v")})
sizes.update({f"o{i}.weight": (WIDTH, WIDTH) for i in range(LAYERS)})
weights = {name: (random.standard_normal(size) * 0.3).astype(numpy.float32) for name, size in sizes.items()}
model, data, forward, parameters = (f"{folder}/{name}" for name in ("model.onnx", "data.safetensors", "forward.safetensors", "parameters.safetensors"))
write(model, weights)
write_tensors(data, {"input_ids": TOKENS, "document_ids": DOCUMENTS, "labels": TOKENS})
cases = {"alone": [], "dp=2,tp=2": ["--mesh", "dp=2,tp=2", "--zero-stage", "1"], "pp=2": ["--mesh", "pp=2", "--accumulate", "2", "--dim", "batch=2"],
         "bfloat16": ["--precision", "bfloat16"], "cuda": ["--target", "cuda", "--no-build"],
         "cuda, bfloat16": ["--target", "cuda", "--no-build", "--precision", "bfloat16", "--mesh", "tp=2"]}


def compare(name, options):
    program = f"{folder}/{name}"
    call("partita", "compile", model, "--dim", f"sequence={LENGTH}", "--objective", "causal", "--optimizer", "sgd", "--lr", "0.1",
         *(options if "--dim" in options else [*options, "--dim", f"batch={BATCH}"]), "-o", program)
    if name.startswith("cuda"):
        build_for_simulated_gpu(program)
    call("partita", "run", program, "--data", data, "--steps", "3", "--forward", forward, "--dump-parameters", parameters)
    after = read(parameters)
    found = read(forward)["logits"]  # of the first batch
    assert any((after[each] != value).any() for each, value in weights.items()), name
    numpy.testing.assert_allclose(found, expected(after)[:len(found)], rtol=0, atol=0.05 if "bfloat16" in name else 1e-4, err_msg=name)
    print(name, "agrees")


for name, options in cases.items():
    compare(name, options)

DOCUMENTS[1, 6] = 3
write_tensors(data, {"input_ids": TOKENS, "document_ids": DOCUMENTS, "labels": TOKENS})
for name in ("alone", "cuda"):
    done = subprocess.run(["partita", "run", f"{folder}/{name}", "--data", data, "--steps", "1"], capture_output=True, text=True)
    assert done.returncode != 0, done
    print(done.stderr)
compare("recurring", ["--recurring-documents"])
