"""Compiles each export of a folder to the last phase, under each plan, for one target in turns; where that is refused, verify must refuse it with
the same words. usage: families_plans.py FOLDER"""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "python"))
from family_models import training_options  # noqa: E402

# Each exporter's graphs under every plan; one target each, in turns: targets differ after partitioning alone.
PLANS = ["tp=2", "tp=2 --sequence-parallel", "dp=2,tp=4 --zero-stage 3 --accumulate 2"]
TARGETS = ["cpu", "cuda"]


def partita(*words):
    return subprocess.run(["partita", *words], capture_output=True, text=True)


def errors(text):
    return [line.split("error: ")[1] for line in text.splitlines() if "error: " in line]


compiled, refused = 0, 0
for number, model in enumerate(sorted(glob.glob(os.path.join(sys.argv[1], "*.onnx")))):
    family = os.path.basename(model).rsplit("_", 1)[0]
    options = [model, *training_options(family, batch=4, sequence=8, decoder_sequence=8)]
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
