"""Trains a model in 16 bits: its losses follow those of float32, a loss scale that is too large is found out and ends there too, a step
that is skipped changes no bit on any layout, and the host's updates are the device's. usage: mixed_precision.py MODEL FOLDER"""
import csv
import sys

import checkpoints
from commands import call
import noisy_tokens
import numpy as np

model, folder = sys.argv[1:]
tokens = folder + "/tokens.bin"
noisy_tokens.write(tokens)


def compile(name, *options):
    call("partita", "compile", model, "--dim", "batch=12", "--dim", "sequence=8", "--clip", "1", *options, "-o", f"{folder}/{name}")
    return name


def run(name, steps):
    log, values = f"{folder}/{name}.{steps}.csv", f"{folder}/{name}.{steps}"
    call("partita", "run", f"{folder}/{name}", "--data", tokens, "--init", "seed:1", "--steps", str(steps), "--lr", "3e-3", "--lr-schedule",
         "constant", "--warmup-steps", "20", "--check-replicas", "10", "--log", log, "--dump-parameters", values)
    return list(csv.DictReader(open(log))), {k: v.tobytes() for k, v in checkpoints.read(values)[0].items()}


def distance(rows, others):
    a, b = (np.array([float(row["loss"]) for row in each]) for each in (rows, others))
    return (np.abs(a - b) / a).max()


STEPS = 150
exact, _ = run(compile("float32"), STEPS)
first, last = float(exact[0]["loss"]), float(exact[-1]["loss"])
assert last < 0.75 * first, (first, last)
for precision in ("bfloat16", "float16"):
    scaling = ["--loss-scale", "0"] if precision == "float16" else []
    rows, _ = run(compile(precision, "--precision", precision, *scaling), STEPS)
    worst = distance(exact, rows)
    assert 0 < worst < 0.01, (precision, worst)
print("followed: the losses of float32 within 1 %")

# Gradients times 2^28 are infinite in float16 until the scale has come down: as many updates end where those of float32 do.
high = ["--precision", "float16", "--loss-scale", "0", "--initial-scale-power", "28", "--hysteresis", "1"]
compile("high", *high)
begun = run("high", 20)[0][-1]
skipped = int(begun["skipped_steps"])
assert 5 <= skipped < 20 and float(begun["loss_scale"]) == 2.0 ** (28 - skipped), begun
rows, _ = run("high", STEPS + skipped)
mean = lambda rows: np.mean([float(row["loss"]) for row in rows[-20:]])
assert abs(mean(rows) / mean(exact) - 1) < 0.01, (mean(rows), mean(exact))
print("recovered: from a scale that is too large, to where float32 ends")

base = None
for layout in ("--mesh dp=2", "--mesh dp=2 --zero-stage 1", "--mesh dp=2 --zero-stage 3", "--mesh dp=2 --zero-stage 2 --offload optimizer",
               "--mesh dp=2 --zero-stage 3 --offload optimizer,parameters,activations --offload-threshold 0"):
    name = compile("high" + layout.replace(" ", "_").replace("=", ""), *high, *layout.split())
    rows, before = run(name, 5)
    assert int(rows[-1]["skipped_steps"]) == 5, (layout, rows[-1])
    start = before if base is None else start
    assert before == start, f"{layout}: a step that is skipped changes a parameter"
    end = run(name, 20)[1]
    base = end if base is None else base
    assert end == base and end != start, f"{layout}: other bits"
print("skipped: no bit changes; the same bits by the device and by the host, at every stage")

# By chance: by the number of the update and of the element, so alike on every layout.
chance = ["--precision", "bfloat16", "--stochastic-rounding"]
base = None
for layout in ("--mesh dp=3", "--mesh dp=3 --zero-stage 1", "--mesh dp=3 --zero-stage 3", "--mesh dp=3 --zero-stage 2 --offload optimizer"):
    name = compile("chance" + layout.replace(" ", "_").replace("=", ""), *chance, *layout.split())
    end = run(name, 8)[1]
    base = end if base is None else base
    assert end == base, f"{layout}: other bits"
nearest = run(compile("nearest", *chance[:2], "--mesh", "dp=3"), 8)[1]
assert nearest != base
print("by chance: the same bits at every stage and by the host")

# What was trained are the masters: they are what another run begins with, and what is exported.
call("partita", "run", f"{folder}/bfloat16", "--data", tokens, "--init", "seed:1", "--steps", "4", "--checkpoint", f"{folder}/c1")
call("partita", "run", f"{folder}/bfloat16", "--data", tokens, "--init", f"{folder}/c1", "--lr", "0", "--steps", "1", "--checkpoint", f"{folder}/c2")
call("partita", "run", f"{folder}/float32", "--data", tokens, "--init", f"{folder}/c1", "--lr", "0", "--steps", "1", "--checkpoint", f"{folder}/c3")
call("partita", "export", f"{folder}/bfloat16", "--checkpoint", f"{folder}/c1", "-o", f"{folder}/trained.onnx")
call("partita", "compile", f"{folder}/trained.onnx", "--dim", "batch=12", "--dim", "sequence=8", "--clip", "1", "-o", f"{folder}/trained")
call("partita", "run", f"{folder}/trained", "--data", tokens, "--lr", "0", "--steps", "1", "--checkpoint", f"{folder}/c4")
trained, again, *others = (checkpoints.read(f"{folder}/c{i}")[0] for i in (1, 2, 3, 4))
masters = {name[: -len(".master")]: values.tobytes() for name, values in trained.items() if name.endswith(".master")}
assert masters == {name[: -len(".master")]: values.tobytes() for name, values in again.items() if name.endswith(".master")}
for other in others:
    assert masters == {name: other[name].tobytes() for name in masters}
print("handed on: masters, by checkpoints and by exported models")
