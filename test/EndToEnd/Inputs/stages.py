"""Compiles and runs a model at all stages of ZeRO; compares parameters and states bit by bit, and what was sent and kept
with the formulas. usage: stages.py MODEL FOLDER MESH RANKS ACCUMULATE [PRECISION]"""
import re, sys
import checkpoints
from commands import call
import numpy as np

model, folder, mesh, ranks, accumulate = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
precision = sys.argv[6] if len(sys.argv) > 6 else "float32"
width, states = (4, ("m", "v")) if precision == "float32" else (2, ("master", "m", "v"))
dp = int(re.search(r"dp=(\d+)", mesh)[1])
run = ["--init", "seed:1", "--seed", "3", "--steps", "3", "--lr", "0.01"]
tokens = folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(tokens)


def tensors(path):
    return {name: values.tobytes() for name, values in checkpoints.read(path)[0].items()}


def numbers(values):
    """Floats; bfloat16 comes as bits, which are the upper halves of theirs."""
    return (values.astype("u4") << 16).view("f4") if values.dtype == np.uint16 else values.astype("f4")


def worst(a, b):
    def difference(x, y):
        x, y = numbers(x), numbers(y)
        return np.abs(x - y).max() / max(np.abs(y).max(), 1e-3)

    return max(difference(a[name], b[name]) for name in b)


programs, results, gradients, sent, kept = {}, {}, {}, {}, {}
for stage in range(4):
    program = programs[stage] = f"{folder}/stage{stage}"
    call("partita", "compile", model, "--dim", "batch=12", "--dim", "sequence=8", "--mesh", mesh, "--zero-stage",
         str(stage), "--accumulate", str(accumulate), "--optimizer", "adamw", "--precision", precision, "-o", program)
    text = call("partita", "run", program, "-n", str(ranks), "--data", tokens, *run, "--checkpoint", f"{folder}/c{stage}",
                "--grads", f"{folder}/g{stage}")
    results[stage] = tensors(f"{folder}/c{stage}")
    gradients[stage] = tensors(f"{folder}/g{stage}")
    sent[stage] = {
        kind: int(size.replace(",", ""))
        for kind, size in re.findall(r"(\w+) over dp \(\d+ ranks\), ([\d,]+) bytes per step", text)
    }
    kept[stage] = int(re.search(r"([\d,]+) persistent", text)[1].replace(",", ""))

endings = tuple("." + state for state in states)
elements = sum(len(data) // width for name, data in results[0].items() if not name.endswith(endings))
count = sum(not name.endswith(endings) for name in results[0])
tp = ranks // dp
if accumulate == 1:
    for stage in (1, 2, 3):
        assert results[stage] == results[0], f"stage {stage} is not stage 0 bit by bit"
        assert gradients[stage] == gradients[0], f"the gradients of stage {stage} are not those of stage 0"
    print("same bits: stages 0, 1, 2, 3")
else:
    assert results[1] == results[0] and results[3] == results[2]
    assert gradients[1] == gradients[0] and gradients[3] == gradients[2]
    limit = 1e-6 if width == 4 else 2 ** -7
    stage2, stage0 = (checkpoints.read(f"{folder}/g{stage}")[0] for stage in (2, 0))
    assert worst(stage2, stage0) < limit, worst(stage2, stage0)
    print("same bits: stages 0 and 1, stages 2 and 3")

# Bytes: of a rank's parameters, padding of each over dp's shards aside.
if tp == 1:
    parameters, padding = width * elements, width * count * (dp - 1)
    small = 64  # the loss and the count of tokens

    def about(bytes, expected):
        return expected <= bytes <= expected + accumulate * padding + small

    assert about(sent[0]["all_reduce"], parameters), sent
    for stage, scatters in ((1, 1), (2, accumulate), (3, accumulate)):
        assert sent[stage]["all_reduce"] <= small, sent
        assert about(sent[stage]["reduce_scatter"], scatters * parameters), sent
    for stage in (1, 2):
        assert about(sent[stage]["all_gather"], parameters), sent
    # What the backward pass does not use (biases, a table of rows) is not gathered again.
    assert accumulate * parameters < sent[3]["all_gather"] <= 2 * accumulate * (parameters + padding), sent
    print("sent: P, 2 P, (g + 1) P, at most 3 g P elements")
    aligned = 4 * count * 16 + len(states) * count * 4 * (dp - 1)
    for stage in range(4):
        parameter = width if stage < 3 else width / dp
        state = 4 * len(states) / (dp if stage else 1)
        expected = (parameter + state) * elements
        assert expected <= kept[stage] <= expected + aligned, (stage, kept[stage], expected)
    print(f"kept: parameters of {width} bytes and {len(states)} states of 4, what is split divided by dp")

# A checkpoint knows tensors, not shards: any stage goes on from any other's.
if accumulate == 1:
    outcomes = set()
    for before in range(4):
        for after in range(4):
            call("cp", "-r", f"{folder}/c{before}", f"{folder}/x")
            call("partita", "run", programs[after], "-n", str(ranks), "--data", tokens, "--lr", "0.01", "--seed", "3",
                 "--steps", "5", "--resume", "--checkpoint", f"{folder}/x")
            outcomes.add(tuple(tensors(f"{folder}/x").values()))
            call("rm", "-r", f"{folder}/x")
    assert len(outcomes) == 1, "stages go on differently"
    print("resumed: every stage from every stage, the same bits")
