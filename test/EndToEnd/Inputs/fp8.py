"""Trains a model in FP8: its losses follow those of bfloat16, scales are alike on every mesh, a resumed run goes on with the same bits, and
memory and collectives are what the compiler announced. usage: fp8.py MODEL FOLDER"""
import csv
import json
import sys

import checkpoints
from commands import call
import noisy_tokens
import numpy as np

model, folder = sys.argv[1:]
tokens = folder + "/tokens.bin"
noisy_tokens.write(tokens)


def compile(name, *options, precision="fp8", batch=16):
    call("partita", "compile", model, "--dim", f"batch={batch}", "--dim", "sequence=8", "--clip", "1", "--precision", precision, *options, "-o", f"{folder}/{name}")
    return name


def run(name, steps, *more, to=None):
    log, to = f"{folder}/{name}.{steps}.csv", to or f"{folder}/{name}.{steps}"
    call("partita", "run", f"{folder}/{name}", "--data", tokens, "--steps", str(steps), "--lr", "3e-3", "--lr-schedule", "constant", "--warmup-steps", "20",
         "--check-replicas", "10", "--log", log, "--checkpoint", to, *(more or ["--init", "seed:1"]))
    return [float(row["loss"]) for row in csv.DictReader(open(log))], checkpoints.read(to)[0]


def bits(tensors):
    return {name: value.tobytes() for name, value in tensors.items()}


plain, _ = run(compile("bfloat16", precision="bfloat16"), 150)
eight, state = run(compile("fp8"), 150)
assert plain[-1] < 0.75 * plain[0], plain
means = lambda losses: np.convolve(losses, np.ones(10) / 10, "valid")
worst = np.abs(means(eight) / means(plain) - 1).max()
assert 0 < worst < 0.01 and eight != plain, worst
print("followed: the losses of bfloat16 within 1 %")

# The first step is quantized with the same scales everywhere. Its maxima, of activations, weights and cotangents, differ by what sums in
# another order round differently, so that their scales are the same powers of two but where a max is near one.
base = run("fp8", 1)[1]["fp8.maxima"]
assert base.shape[0] == 16 and (base[-1] > 0).all() and (base[:-1] == 0).all(), base
for mesh in (["dp=2"], ["tp=2"], ["dp=2,tp=2"], ["dp=2", "--zero-stage", "1"], ["dp=2", "--zero-stage", "3"], ["tp=2", "--sequence-parallel"]):
    name = compile("fp8-" + "-".join(mesh), "--mesh", *mesh)
    maxima = run(name, 1)[1]["fp8.maxima"][-1]
    assert np.abs(maxima / base[-1] - 1).max() < 0.02, (mesh, maxima / base[-1])
    assert (np.frexp(maxima)[1] == np.frexp(base[-1])[1]).mean() > 0.8, mesh
print(f"scaled alike: maxima of {base.shape[1]} tensors on one rank and on each mesh")

# A break changes no bit; the checkpoint continues on another mesh.
run("fp8", 6, to=f"{folder}/at6")
_, whole = run("fp8", 12)
call("cp", "-r", f"{folder}/at6", f"{folder}/other")
_, resumed = run("fp8", 12, "--resume", to=f"{folder}/at6")
assert bits(resumed) == bits(whole)
_, other = run("fp8-dp=2-zero-stage-3".replace("zero", "--zero"), 7, "--resume", to=f"{folder}/other")
_, seven = run("fp8", 7)
assert (other["fp8.maxima"][:-1] == seven["fp8.maxima"][:-1]).all()
assert np.abs(other["fp8.maxima"][-1] / seven["fp8.maxima"][-1] - 1).max() < 0.02
print("resumed: the same bits as without a break; on another mesh the same maxima")


def manifest(name):
    return json.load(open(f"{folder}/{name}/manifest.json"))


# One more collective per step and axis, of four bytes per tensor; the run checks the census.
compile("bfloat16-dp", "--mesh", "dp=2,tp=2", precision="bfloat16")
count = lambda name: [row for row in manifest(name)["collectives"] if row["function"] == "train_step"]
more = [row for row in count("fp8-dp=2,tp=2") if row["name"] == "maxima of FP8 tensors"]
assert len(more) == 2 and {row["axis"] for row in more} == {"dp", "tp"}, count("fp8-dp=2,tp=2")
assert len(count("fp8-dp=2,tp=2")) == len(count("bfloat16-dp")) + 2
print(f"communicated: one all_reduce of {4 * base.shape[1]} bytes more per step and axis")

source = open(f"{folder}/fp8/model.cpp").read()
assert source.count("scaledGemm(") > 0 and "Float8E4M3" in source and "Float8E5M2" in source
arena = lambda name: manifest(name)["memory"]["arena"]
assert arena("fp8") < arena("bfloat16"), (arena("fp8"), arena("bfloat16"))
print("saved: activations of 8 bits")
