"""Trains a model whose attention has a learned bias in 16 bits: the losses, and the bias's first gradients, follow those of float32, on one
rank and on several. usage: learned_bias.py MODEL FOLDER"""
import csv
import sys

import checkpoints
from commands import call
import numpy as np

model, folder = sys.argv[1:]
tokens = folder + "/tokens.txt"
with open(tokens, "wb") as file:
    file.write(bytes(i * 7 % 64 for i in range(2000)))


def run(name, *options):
    """Losses of 60 steps, and the gradients of the biases' tables in the first."""
    program, log, values = (f"{folder}/{name}{suffix}" for suffix in ("", ".csv", ".grads"))
    call("partita", "compile", model, "--dim", "batch=4", "--dim", "sequence=12", "--dim", "decoder_sequence=12", "--objective", "causal",
         "--input", "decoder_input_ids=shifted:0", *options, "-o", program)
    start = ["partita", "run", program, "--data", "text:" + tokens, "--init", "seed:1"]
    call(*start, "--steps", "1", "--grads", values)
    call(*start, "--steps", "60", "--lr", "3e-3", "--log", log)
    tables = {name: numbers(value) for name, value in checkpoints.read(values)[0].items() if "relative_attention_bias" in name}
    assert len(tables) == 2, tables
    return np.array([float(row["loss"]) for row in csv.DictReader(open(log))]), tables


def numbers(value):
    """Of any type as float32; a bfloat16 is read as its bits."""
    return (value.astype("u4") << 16).view("f4") if value.dtype == np.uint16 else value.astype("f4")


losses, gradients = run("float32")
assert losses[-1] < 0.9 * losses[0], losses
for name, *options in (["bfloat16"], ["float16"], ["bfloat16", "--mesh", "dp=2,tp=2", "--zero-stage", "1"]):
    found, tables = run("_".join([name, *options]).replace("=", "").replace(",", ""), "--precision", name, *options)
    worst = (np.abs(found - losses) / losses).max()
    assert 0 < worst < 0.01, (name, options, worst)
    for table, expected in gradients.items():
        error = np.linalg.norm(tables[table] - expected) / np.linalg.norm(expected)
        assert 0 < error < 0.1, (name, options, table, error)
print("followed: losses and gradients of float32")
