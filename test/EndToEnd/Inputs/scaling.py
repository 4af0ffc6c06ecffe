"""Trains a model with scaled losses: a fixed power of two changes no bit; a dynamic scale that is too large skips steps, which change
nothing, until it fits, on every layout alike, and goes on from a checkpoint. usage: scaling.py MODEL FOLDER"""
import csv
import json
import pathlib
import subprocess
import sys

import checkpoints
from commands import call
import numpy as np

model, folder = sys.argv[1:]
tokens = folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(tokens)


def compile(name, *options):
    call("partita", "compile", model, "--dim", "batch=12", "--dim", "sequence=8", *options, "-o", f"{folder}/{name}")
    return name


def run(name, steps, out, *options):
    files = {kind: f"{folder}/{out}.{kind}" for kind in ("log", "parameters", "grads")}
    call("partita", "run", f"{folder}/{name}", "--data", tokens, "--seed", "3", "--steps", str(steps), "--lr", "0.5", "--log",
         files["log"], "--dump-parameters", files["parameters"], "--grads", files["grads"],
         "--check-replicas", "1", *options)
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


def write(path, tensors):
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + b"".join(t.tobytes() for t in tensors.values()))


def first_nonfinite(grads):
    """Of the gradients of a run's first step, in the order of the program's parameters."""
    manifest = json.load(open(f"{folder}/plain/manifest.json"))
    return next((p["name"] for p in manifest["parameters"] if not np.isfinite(checkpoints.read(grads)[0][p["name"]]).all()), "")


# One unit of an MLP is so active, to no effect, that of all gradients one row of one overflows: with tp one rank has it, with shards another.
call("partita", "run", f"{folder}/plain", *INIT, "--dump-parameters", f"{folder}/initial")
values = {k: v.copy() for k, v in checkpoints.read(f"{folder}/initial")[0].items()}
values["transformer.h.1.mlp.c_fc.bias"][5] = 1e5
values["transformer.h.1.mlp.c_proj.weight"][5] = 0
write(f"{folder}/active.safetensors", values)
named = set()
for layout in results:
    name = "dynamic" + layout.replace(" ", "_").replace("=", "")
    # A validation after the step has a report of its own, which must not hide the step's.
    board = ["--tensorboard", f"{folder}/board", "--eval-data", tokens, "--eval-every", "1"] if not layout else []
    log, _, _ = run(name, 2, name + ".active", "--init", f"{folder}/active.safetensors", *board)
    expected = first_nonfinite(f"{folder}/{name}.active.grads")
    assert log[0]["first_nonfinite"] == expected == "transformer.h.1.mlp.c_proj.weight", (layout, log[0], expected)
    named.add(log[1]["first_nonfinite"])
assert len(named) == 1, named
text = next(pathlib.Path(folder, "board").rglob("events.*")).read_bytes()
assert b"Train/Samples/first_nonfinite" in text and b"transformer.h.1.mlp.c_proj.weight" in text
values["transformer.ln_f.weight"][:] = 3e37
values["transformer.h.1.mlp.c_fc.bias"][5] = 0
write(f"{folder}/huge.safetensors", values)
for layout in results:
    name = "dynamic" + layout.replace(" ", "_").replace("=", "")
    log, _, _ = run(name, 1, name + ".huge", "--init", f"{folder}/huge.safetensors")
    assert log[0]["first_nonfinite"] == "lm_head.weight", (layout, log[0])
print("skipped: every layout names the tensor")

# Without a scale such a norm ends the run, whose loss is finite.
values["transformer.h.1.mlp.c_fc.bias"][5] = 1e12
values["transformer.ln_f.weight"][:] = 1e28
write(f"{folder}/ending.safetensors", values)
for options in ([], ["--mesh", "dp=3", "--zero-stage", "3"], ["--mesh", "tp=2"]):
    name = compile("plain" + "".join(options), *clip, *options)
    done = subprocess.run(["partita", "run", f"{folder}/{name}", "--data", tokens, "--seed", "3", "--steps", "2", "--lr", "0.5", "--init",
                           f"{folder}/ending.safetensors", "--grads", f"{folder}/ending.grads"], capture_output=True, text=True)
    assert done.returncode != 0
    print("ended:", done.stderr.replace(first_nonfinite(f"{folder}/ending.grads") or "none", "FIRST"))

name = "dynamic--mesh_dp3_--zero-stage_2"
run(name, 6, "part", *INIT, "--checkpoint", f"{folder}/checkpoint")
log, parameters, _ = run(name, 14, "rest", "--resume", "--checkpoint", f"{folder}/checkpoint")
uninterrupted = results["--mesh dp=3 --zero-stage 2"]
assert parameters == uninterrupted[1] and [row["loss_scale"] for row in log] == [row["loss_scale"] for row in uninterrupted[0]][6:]
print("resumed: the scale and the steps that were skipped go on")
