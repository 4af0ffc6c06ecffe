"""Checkpoints of one precision in programs of another, on another layout. usage: precision_resume.py MODEL FOLDER

Each program writes a checkpoint, and each goes on from each one: with a learning rate of 0 its next checkpoint has the same masters.
"""
import csv
import sys
from concurrent.futures import ThreadPoolExecutor

import checkpoints
from commands import call
import noisy_tokens
import numpy as np

model, folder = sys.argv[1:]
PROGRAMS = {
    "float32": [],
    "float32-tp": ["--mesh", "dp=2,tp=2", "--zero-stage", "3"],
    "bfloat16": ["--mesh", "dp=2", "--zero-stage", "2"],
    "bfloat16-tp": ["--mesh", "tp=2", "--offload", "optimizer"],
    "float16-pp": ["--mesh", "pp=2,dp=2", "--accumulate", "2", "--zero-stage", "1", "--loss-scale", "0"],
    "fp8": [],
}
# Each step takes the same four samples in the same order, so that losses depend on the parameters alone.
once, tokens = folder + "/once.bin", folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 33).astype("uint16").tofile(once)
noisy_tokens.write(tokens)


def precision(name):
    return name.split("-")[0]


def compile(name, *more):
    options = [*PROGRAMS.get(name, []), *more]
    call("partita", "compile", model, "--dim", f"batch={2 if '--accumulate' in options else 4}", "--dim", "sequence=8", "--precision", precision(name),
         *options, "-o", f"{folder}/{name}")


def run(name, steps, log, *more, data=once, rate="0"):
    """(what it says, its log)"""
    said = call("partita", "run", f"{folder}/{name}", "--data", data, "--steps", str(steps), "--lr", rate, "--log", f"{folder}/{log}.csv", *more)
    return said, list(csv.DictReader(open(f"{folder}/{log}.csv")))


def round_as(stored, floats):
    """The floats in another array's type; bfloat16 is read as its bits."""
    if stored.dtype == np.uint16:
        bits = floats.view("<u4").astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    return floats.astype(stored.dtype)


def exact(tensors):
    """Each parameter's master, or the parameter, by name."""
    names = [name[:-2] for name in tensors if name.endswith(".m")]
    assert len(names) == 28, names
    return {name: tensors.get(name + ".master", tensors[name]) for name in names}


def write(name):
    compile(name)
    run(name, 3, name, "--init", "seed:1", "--shuffle", "off", "--checkpoint", f"{folder}/c-{name}", rate="0.01")
    return checkpoints.read(f"{folder}/c-{name}")[0]


def go_on(pair):
    """Makes one step without a change of parameters."""
    writer, reader = pair
    log = f"{writer}-{reader}"
    copy = f"{folder}/{log}"
    call("cp", "-r", f"{folder}/c-{writer}", copy)
    said, rows = run(reader, 4, log, "--resume", "--checkpoint", copy)
    changes = precision(writer) != precision(reader)
    assert changes == (" has parameters in " in said or "fp8.maxima" in said), (pair, said)
    before, after = written[writer], checkpoints.read(copy)[0]
    masters = exact(after)
    for name, value in exact(before).items():
        assert value.dtype == np.float32 and masters[name].tobytes() == value.tobytes(), (pair, name)
        assert after[name].tobytes() == round_as(after[name], value).tobytes(), (pair, name)
    assert (name + ".master" in after) == (precision(reader) != "float32"), pair
    # A moment moves by a tenth of what differs from the gradient; all programs have about the same gradients.
    for name in masters:
        wanted, found = own[writer][name + ".m"], after[name + ".m"]
        assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max() + 1e-4, (pair, name)
    if changes:  # a new run from the same weights has the same loss
        _, fresh = run(reader, 1, log + "-new", "--init", f"{folder}/c-{writer}", "--shuffle", "off")
        assert len(rows) == 1 and fresh[0]["loss"] == rows[0]["loss"], (pair, fresh, rows)
    call("rm", "-r", copy)


def continued(name):
    """The writer's own next step."""
    copy = f"{folder}/own-{name}"
    call("cp", "-r", f"{folder}/c-{name}", copy)
    run(name, 4, "own-" + name, "--resume", "--checkpoint", copy)
    return checkpoints.read(copy)[0]


with ThreadPoolExecutor(2) as pool:
    written = dict(zip(PROGRAMS, pool.map(write, PROGRAMS)))
    own = dict(zip(PROGRAMS, pool.map(continued, PROGRAMS)))
    pairs = [(writer, reader) for writer in PROGRAMS for reader in PROGRAMS]
    list(pool.map(go_on, pairs))
print(f"{len(pairs)} pairs of {len(PROGRAMS)} programs: the same masters, and parameters rounded from them")

# Training goes on as if nothing had happened.
options = ["--init", "seed:1", "--warmup-steps", "10"]
_, whole = run("float32", 60, "whole", *options, data=tokens, rate="3e-3")
run("float32", 20, "parts", *options, "--checkpoint", f"{folder}/parts", data=tokens, rate="3e-3")
for name, steps in (("bfloat16", 40), ("float16-pp", 50), ("float32-tp", 60)):
    _, parts = run(name, steps, "parts", "--resume", *options[2:], "--checkpoint", f"{folder}/parts", data=tokens, rate="3e-3")
losses = [np.array([float(row["loss"]) for row in rows]) for rows in (whole, parts)]
assert len(parts) == 60 and losses[0][-1] < 0.9 * losses[0][0], losses
worst = np.abs(losses[1] / losses[0] - 1).max()
assert 0 < worst < 0.01, worst
print("trained on: losses within 1 % of float32's")

# Steps that a loss scale has skipped are no updates for programs that have none, either.
compile("float16", "--loss-scale", "0", "--initial-scale-power", "127", "--hysteresis", "1")
schedule = ["--warmup-steps", "100", "--checkpoint", f"{folder}/skipped"]
run("float16", 130, "skipped", "--init", "seed:1", *schedule, data=tokens, rate="1e-3")
said, _ = run("bfloat16", 132, "skipped", "--resume", *schedule, data=tokens, rate="1e-3")
assert "left out: " in said, said
said, rows = run("float16", 134, "skipped", "--resume", *schedule, data=tokens, rate="1e-3")
assert "anew: " in said and "skipped since step 1" in said, said
skipped, rates, scales = ([float(row[key] or 0) for row in rows[-6:]] for key in ("skipped_steps", "learning_rate", "loss_scale"))
assert 60 < skipped[0] < 130 and skipped[:4] == skipped[:1] * 4, skipped
assert skipped[4:] == [skipped[0] + 1, skipped[0] + 2], skipped  # the scale starts anew, too large
assert scales[2:4] == [0, 0] and scales[4] == 2.0**127, scales
assert all(0.5e-5 < after - before < 2e-5 for before, after in zip(rates[:4], rates[1:5])), rates
print("skipped steps stay skipped")
