"""Compiles and runs a model on several layouts with clipped gradients: the norm that the log tells is that of the whole
gradients, and the first step of SGD is what it says. usage: clipping.py MODEL FOLDER"""
import csv
import sys

import checkpoints
from commands import call
import numpy as np

model, folder = sys.argv[1:]
tokens = folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(tokens)
LAYOUTS = ["", "--mesh dp=3 --zero-stage 1", "--mesh dp=3 --zero-stage 3", "--mesh tp=2", "--mesh tp=2 --sequence-parallel",
           "--mesh dp=2,tp=2 --zero-stage 2 --accumulate 2", "--mesh dp=2 --offload optimizer"]


def read(path):
    return checkpoints.read(path)[0]


def run(program, steps, name, *options):
    files = {kind: f"{folder}/{name}.{kind}" for kind in ("grads", "log", "parameters")}
    call("partita", "run", program, "--data", tokens, "--init", "seed:1", "--seed", "3", "--steps", str(steps), "--lr", "0.5",
         "--grads", files["grads"], "--log", files["log"], "--dump-parameters", files["parameters"], *options)
    norm = float(list(csv.DictReader(open(files["log"])))[0]["gradient_norm"])
    return norm, read(files["grads"]), read(files["parameters"])


reference = None
for number, layout in enumerate(LAYOUTS):
    program = f"{folder}/{number}"
    momentum = ["--momentum", "0.9"] if "offload" in layout else []  # what has no states has nothing to keep on the host
    batch = "6" if "accumulate" in layout else "12"
    call("partita", "compile", model, "--dim", "batch=" + batch, "--dim", "sequence=8", "--optimizer", "sgd", "--clip", "0.25",
         *momentum, *layout.split(), "-o", program)
    norm, gradients, clipped = run(program, 1, f"{number}.clip")
    full = np.sqrt(sum(np.sum(np.square(g, dtype=float)) for g in gradients.values()))
    assert abs(norm - full) < 1e-5 * full, (layout, norm, full)
    assert norm > 0.5, norm  # else nothing is clipped
    _, _, free = run(program, 1, f"{number}.free", "--clip", "0")  # another limit, of the run
    worst = 0
    for name, gradient in gradients.items():
        # p0 - lr g = free, p0 - lr scale g = clipped
        expected = free[name] + 0.5 * (1 - 0.25 / (norm + 1e-6)) * gradient
        worst = max(worst, np.abs(clipped[name] - expected).max())
    assert worst < 1e-6, (layout, worst)
    reference = reference or norm
    assert abs(norm - reference) < 1e-5 * reference, (layout, norm, reference)
print(f"clipped: {len(LAYOUTS)} layouts, one norm")
