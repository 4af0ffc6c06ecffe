#!/usr/bin/env python3
"""Random plans with context parallelism: each verified against the program of one rank, in double precision.

    try_context.py [--plans 100] [--seed 0]

A plan is a model of test/Data, a mesh with cp, ulysses or both and perhaps pp, dp and tp, a ring or heads exchanged, a length that mirrored chunks divide or not, and other
options. A plan that the compiler refuses with a reason that cp has is not one of the --plans: another is drawn. Needs partita in the PATH; prints what differs, and how many rings had
sequences in mirrored order; exit code 1 when anything differs.
"""
import argparse
import os
import random
import subprocess

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Data")
MODELS = ["families/gpt2_dynamo", "families/llama_torchscript", "families/mistral_dynamo", "families/qwen2_torchscript",
          "families/bert_dynamo", "families/opt_torchscript", "families/gpt_neox_dynamo", "families/t5_dynamo",
          "families/roberta_dynamo", "gpt2_training_dynamo", "further/bloom_dynamo", "further/falcon_dynamo",
          "further/phi3_dynamo", "further/cohere_dynamo", "further/gptj_dynamo"]
# What all-to-all and sequence parallelism say where sizes do not divide.
REASONS = ("deals out", "numbers the elements", "does not divide over", "passes keys on over mesh axis 'cp', of which there is one rank",
           "exchanges heads over all ranks that share a sequence")
# Who shares a sequence: a ring or an exchange of heads, an exchange within a ring, an exchange alone.
SHARING = ["cp=2", "cp=2", "cp=4", "cp=2,ulysses=2", "cp=2,ulysses=2", "cp=4,ulysses=2", "ulysses=2"]


def perhaps(random_numbers, share, *options):
    return list(options) if random_numbers.random() < share else []


def plan(numbers):
    """Returns a model and the options of a plan for it."""
    model = numbers.choice(MODELS)
    mesh = perhaps(numbers, 0.25, "pp=2") + perhaps(numbers, 0.4, numbers.choice(["dp=2", "dp=2", "fsdp=2"])) + [numbers.choice(SHARING)] + perhaps(numbers, 0.4, "tp=2")
    options = ["--dim", "batch=4", "--dim", "sequence=" + numbers.choice(["8", "8", "12", "16"]), "--mesh", ",".join(mesh),
               "--context-parallel", numbers.choice(["ring", "ring", "all-to-all", "auto", "auto"])]
    if "t5" in model:
        options += ["--dim", "decoder_sequence=" + numbers.choice("48")]
    if "bert" in model:
        options += ["--objective", "masked"]
    options += ["--zero-stage", numbers.choice("0123")]
    if "tp=2" in mesh:
        options += perhaps(numbers, 0.4, "--sequence-parallel")
    options += perhaps(numbers, 0.4, "--recompute", numbers.choice(["selective", "block"]))
    options += perhaps(numbers, 0.3, "--accumulate", "2") + perhaps(numbers, 0.2, "--precision", "bfloat16")
    return model, options + perhaps(numbers, 0.2, "--clip", "0.3")


def explained(model, options):
    """Returns what the compiler says of the program's collectives."""
    return subprocess.run(["partita", "explain", os.path.join(DATA, model + ".onnx"), *options], capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    numbers = random.Random(arguments.seed)
    refused, wrong, mirrored, ordered = 0, 0, 0, 0
    equal = 0
    while equal + wrong < arguments.plans:
        model, options = plan(numbers)
        done = subprocess.run(["partita", "verify", os.path.join(DATA, model + ".onnx"), *options], capture_output=True, text=True)
        if done.returncode == 0 and "equal:" in done.stdout:
            order = explained(model, options)
            mirrored += "dealt in mirrored order" in order
            ordered += "in order, so ranks have unequal work" in order
            equal += 1
            continue
        said = next((line for line in (done.stderr + done.stdout).splitlines() if "error:" in line), "it ended without an error")
        was_asked = "--sequence-parallel" in options or "sequence parallelism" not in said
        if was_asked and any(reason in said for reason in REASONS):
            refused += 1
            continue
        wrong += 1
        print(f"{model} {' '.join(options)}\n  {said}", flush=True)
    print(f"{arguments.plans} plans: {equal} equal, {wrong} wrong; {refused} others refused with a reason; "
          f"rings of causal attention: {mirrored} in mirrored order, {ordered} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
