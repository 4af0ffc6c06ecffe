"""Trains by optimizers that divide a gradient by its own size, so that what is rounding in the gradient is none in the update, on several
layouts. A softmax does not see what is added to all of a query's scores, so the gradient of a key's bias is nothing but rounding: there
alone, where the biases of keys are trained, may layouts differ by more than rounding. usage: trajectories.py MODEL FOLDER"""
import sys

import checkpoints
from commands import call
import numpy as np

model, folder = sys.argv[1:]
tokens = folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(tokens)
LAYOUTS = ["", "--mesh dp=2", "--mesh tp=2", "--mesh dp=2,tp=2 --zero-stage 3"]


def train(optimizer, layout):
    call("partita", "compile", model, "--dim", "batch=8", "--dim", "sequence=8", "--optimizer", optimizer, *layout.split(), "-o",
         folder + "/program")
    call("partita", "run", folder + "/program", "--data", tokens, "--init", "seed:1", "--seed", "3", "--steps", "6", "--lr", "0.01",
         "--dump-parameters", folder + "/parameters")
    parameters = checkpoints.read(folder + "/parameters")[0]
    keys = {}
    for name, value in parameters.items():
        if name.endswith("attn.c_attn.bias"):  # of queries, keys and values
            keys[name] = value.reshape(3, -1)[1]
            parameters[name] = np.delete(value.reshape(3, -1), 1, 0)
    return parameters, keys


for optimizer in ("lion", "adagrad"):
    full, keys = train(optimizer, "")
    others = [train(optimizer, layout) for layout in LAYOUTS[1:]]
    worst = max(np.abs(full[name] - other[name]).max() for other, _ in others for name in full)
    rounding = max(np.abs(keys[name] - other[name]).max() for _, other in others for name in keys)
    print(f"{optimizer}: {worst:.1e} apart, biases of keys {rounding:.1e}", file=sys.stderr)
    assert worst < 2e-6, (optimizer, worst)
    assert rounding > 1e-4, (optimizer, rounding)  # else the reason would be another one
    print(f"{optimizer}: {len(LAYOUTS)} layouts, one trajectory but for the biases of keys")
