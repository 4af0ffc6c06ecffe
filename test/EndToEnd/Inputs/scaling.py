"""Trains a model with scaled losses: a fixed power of two changes no bit; a dynamic scale that is too large skips steps, which change
nothing, until it fits, on every layout alike, and goes on from a checkpoint. usage: scaling.py MODEL FOLDER"""
import csv
import subprocess
import sys

import checkpoints
import numpy as np

model, folder = sys.argv[1:]
tokens = folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(tokens)


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def compile(name, *options):
    call("partita", "compile", model, "--dim", "batch=12", "--dim", "sequence=8", *options, "-o", f"{folder}/{name}")
    return name


def run(name, steps, out, *options):
    files = {kind: f"{folder}/{out}.{kind}" for kind in ("log", "parameters", "grads")}
    call("partita", "run", f"{folder}/{name}", "--data", tokens, "--seed", "3", "--steps", str(steps), "--lr", "0.5", "--log",
         files["log"], "--dump-parameters", files["parameters"], "--grads", files["grads"], *options)
    read = lambda path: {k: v.tobytes() for k, v in checkpoints.read(path)[0].items()}
    return list(csv.DictReader(open(files["log"]))), read(files["parameters"]), read(files["grads"])


INIT = ["--init", "seed:1"]
clip = ["--clip", "0.5"]
plain = run(compile("plain", *clip), 4, "plain", *INIT)
fixed = run(compile("fixed", *clip, "--loss-scale", "1024"), 4, "fixed", *INIT)
assert fixed[1] == plain[1] and fixed[2] == plain[2], "a power of two changes bits"
assert [row["loss"] for row in fixed[0]] == [row["loss"] for row in plain[0]]
assert [row["gradient_norm"] for row in fixed[0]] == [row["gradient_norm"] for row in plain[0]]
assert {row["loss_scale"] for row in fixed[0]} == {"1024"} and {row["skipped_steps"] for row in fixed[0]} == {"0"}
print("fixed: the bits of no scale")

dynamic = ["--loss-scale", "0", "--initial-scale-power", "127", "--hysteresis", "2", "--loss-scale-window", "3"]
results = {}
for layout in ("", "--mesh dp=3 --zero-stage 1", "--mesh dp=3 --zero-stage 2", "--mesh dp=3 --zero-stage 3", "--mesh tp=2",
               "--mesh dp=2 --offload optimizer"):
    name = compile("dynamic" + layout.replace(" ", "_").replace("=", ""), *clip, *dynamic, *layout.split())
    log, parameters, _ = results[layout] = run(name, 14, name, *INIT)
    skipped = [0] + [int(row["skipped_steps"]) for row in log]
    scales = [float(row["loss_scale"]) for row in log]
    if not layout:
        expected = scales
        skips = [step for step in range(14) if skipped[step + 1] > skipped[step]]
        assert skips and max(skips) < 13 and min(skips) > 0, skipped
        assert min(scales) < scales[0], scales
        before, behind = (run(name, skips[0] + more, f"{name}{more}", *INIT)[1] for more in (0, 1))
        assert before == behind, "a step that is skipped changes a parameter"
        assert float(log[skips[0]]["learning_rate"]) > 0
    assert scales == expected, (layout, scales, expected)
for stage in (2, 3):
    assert results[f"--mesh dp=3 --zero-stage {stage}"][1] == results["--mesh dp=3 --zero-stage 1"][1], "stages differ"
print("dynamic: one trace of scales on", len(results), "layouts")

name = "dynamic--mesh_dp3_--zero-stage_2"
run(name, 6, "part", *INIT, "--checkpoint", f"{folder}/checkpoint")
log, parameters, _ = run(name, 14, "rest", "--resume", "--checkpoint", f"{folder}/checkpoint")
whole = results["--mesh dp=3 --zero-stage 2"]
assert parameters == whole[1] and [row["loss_scale"] for row in log] == [row["loss_scale"] for row in whole[0]][6:]
print("resumed: the scale and the steps that were skipped go on")
