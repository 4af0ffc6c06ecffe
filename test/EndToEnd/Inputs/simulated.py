"""A program compiled for CUDA, run without a GPU by the simulated one of test/Support: its losses are the CPU program's,
its bits the same whatever order streams, warps and ranks run in, and its checkpoints the CPU program's to go on from.

usage: simulated.py MODEL FOLDER STEPS TOLERANCE [OPTION OF compile...]    (PARTITA_BUILD, PARTITA_SOURCE: the folders)
"""
import csv
import os
import re
import subprocess
import sys

import numpy as np
from commands import build_for_simulated_gpu, call

model, folder, steps, tolerance, *options = sys.argv[1:]
announced = {}
SEEDS = {"1": "forward", "2": "random", "3": "reverse"}


def compiled(target, *more):
    program = os.path.join(folder, target)
    announced[program] = memory(call("partita", "compile", model, *options, "--target", target, *more, "-o", program))
    return program


def memory(text):
    """A rank's bytes part by part, by stage (none: ""), as the compiler (of the fullest) and the run (of each) say them, but for what
    cuDNN has, of which only the run knows."""
    stages = {}
    for total, stage, told in re.findall(r"([\d,]+) bytes per rank(?: of (stage \d+)(?:, the fullest)?)?: (.*?)(?:;|\n|$)", text):
        parts = {name: int(number.replace(",", "")) for number, name in re.findall(r"(\d[\d,]*) ([^,]+)", told)}
        assert int(total.replace(",", "")) == sum(parts.values()), text
        parts.pop("workspace of cuDNN's attention", None)
        stages[stage] = parts
    assert stages, text
    return stages


def run(program, log, seed, *more, steps=steps, init=("--init", "seed:1")):
    """Losses of the steps, parameters at the end as bytes."""
    parameters = os.path.join(folder, log + ".safetensors")
    environment = dict(os.environ, PARTITA_SIMULATED_SEED=seed, PARTITA_SIMULATED_ORDER=SEEDS[seed],
                       PARTITA_RT_SHARE_GPU="1", PARTITA_RT_TIMEOUT="120")
    done = subprocess.run(["partita", "run", program, "--data", folder + "/tokens.bin", "--steps", steps, *init, "--check-replicas", "2",
                           "--log", os.path.join(folder, log + ".csv"), "--dump-parameters", parameters, *more],
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (program, done.stdout, done.stderr)
    assert announced[program].items() <= memory(done.stdout).items(), (done.stdout, announced[program])
    with open(os.path.join(folder, log + ".csv")) as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    with open(parameters, "rb") as file:
        return np.array(losses), file.read()


os.makedirs(folder, exist_ok=True)
np.random.default_rng(5).integers(0, 60, 4000).astype(np.uint16).tofile(folder + "/tokens.bin")
on_cpu = compiled("cpu")
expected, _ = run(on_cpu, "cpu", "1", steps=str(int(steps) + 1))
expected, following = expected[:-1], expected[-1]
program = build_for_simulated_gpu(compiled("cuda", "--no-build"))
losses, bits = run(program, "cuda", "1", "--checkpoint", folder + "/checkpoint")
worst = float(np.max(np.abs(losses - expected) / np.abs(expected)))
assert worst <= float(tolerance), (losses, expected)
print(f"losses of {len(losses)} steps within {tolerance} of the CPU's")
for seed in ("2", "3"):
    again, others = run(program, "cuda" + seed, seed)
    assert np.array_equal(again, losses), (seed, again, losses)
    assert others == bits, f"other parameters under seed {seed}"
print("the same bits in every order of streams and warps")
for target, resumed in ("cpu", on_cpu), ("cuda", program):
    after, _ = run(resumed, target + "_resumed", "1", "--resume", "--checkpoint", folder + "/checkpoint",
                   steps=str(int(steps) + 1), init=())
    assert abs(after[-1] - following) <= float(tolerance) * following, (target, after, following)
    if target == "cpu":  # which has gone on, and saved that
        run(program, "cuda", "1", "--checkpoint", folder + "/checkpoint", "--overwrite")
print("either program goes on from the checkpoint")
