"""Compiles each export of a folder to the last phase, under each plan, for one target in turns; where that is refused, verify must refuse it with
the same words. usage: families_plans.py FOLDER"""
import glob
import os
import subprocess
import sys

# Each exporter's graphs under every plan; one target each, in turns: targets differ behind partitioning alone.
PLANS = ["tp=2", "tp=2 --sequence-parallel", "dp=2,tp=4 --zero-stage 3 --accumulate 2"]
TARGETS = ["cpu", "cuda"]


def partita(*words):
    return subprocess.run(["partita", *words], capture_output=True, text=True)


def errors(text):
    return [line.split("error: ")[1] for line in text.splitlines() if "error: " in line]


compiled, refused = 0, 0
for number, model in enumerate(sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx")))):
    family = os.path.basename(model)
    options = [model, "--dim", "batch=4"]
    if not family.startswith("vit"):
        options += ["--dim", "sequence=8"]
    if family.startswith("t5"):
        options += ["--dim", "decoder_sequence=8"]
    if "bert" in family:
        options += ["--objective", "masked"]
    for i, plan in enumerate(PLANS):
        words = [*options, "--mesh", *plan.split()]
        done = partita("compile", *words, "--target", TARGETS[(number + number // 2 + i) % 2], "--compile-to", "lower", "-o", "-")
        if done.returncode == 0:
            compiled += 1
            continue
        verified = partita("verify", *words)
        assert verified.returncode == 1 and errors(verified.stderr) == errors(done.stderr), (family, plan, done.stderr, verified.stderr)
        refused += 1
print(f"{compiled} plans compiled, {refused} refused by verify too")
