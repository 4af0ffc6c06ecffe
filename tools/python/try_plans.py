#!/usr/bin/env python3
"""Every combination of a stage of ZeRO, tensor parallelism, recomputation, offload and accumulation, against one rank.

Runs `partita verify` (all phases, planned memory, three steps in double precision) for each and prints a table; --table FILE puts it
between the marks <!-- plans --> and <!-- /plans --> of a Markdown file. Needs nothing but the built compiler. Several minutes.

usage: try_plans.py [--model MODEL.onnx] [--states PATTERN] [--table FILE]
"""
import argparse
import itertools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATES = [
    ("stage 0", "dp=2", ["--zero-stage", "0"]),
    ("stage 1", "dp=2", ["--zero-stage", "1"]),
    ("stage 2", "dp=2", ["--zero-stage", "2"]),
    ("stage 3", "dp=2", ["--zero-stage", "3"]),
    ("stage 3, kept from forward to backward", "dp=2", ["--fsdp-strategy", "shard-grad-op"]),
    ("stage 1, hybrid", "dp=2,fsdp=2", ["--zero-stage", "1"]),
    ("stage 2, hybrid", "dp=2,fsdp=2", ["--zero-stage", "2"]),
    ("stage 3, hybrid", "dp=2,fsdp=2", ["--zero-stage", "3"]),
    ("stage 3, secondary copy", "dp=4", ["--zero-stage", "3", "--zero-hpz-partition-size", "2"]),
    ("stage 3, secondary copy, gradients in 4 bits", "dp=4",
     ["--zero-stage", "3", "--zero-hpz-partition-size", "2", "--zero-quantized-gradients", "--gradient-quantization-block", "16"]),
    ("stage 2, gradients in 4 bits", "dp=2", ["--zero-stage", "2", "--zero-quantized-gradients", "--gradient-quantization-block", "16"]),
    ("stage 0, 1-bit Adam", "dp=2", ["--zero-stage", "0", "--optimizer", "onebit-adam", "--freeze-step", "2"]),
    ("stage 1, 1-bit LAMB", "dp=2", ["--zero-stage", "1", "--optimizer", "onebit-lamb", "--freeze-step", "2", "--coeff-beta", "0"]),
    ("stage 1, 0/1 Adam", "dp=2", ["--zero-stage", "1", "--optimizer", "zero-one-adam", "--var-freeze-step", "2", "--var-update-scaler", "1"]),
    ("stage 0, context", "dp=2,cp=2", ["--zero-stage", "0"]),
    ("stage 1, context", "dp=2,cp=2", ["--zero-stage", "1"]),
    ("stage 2, context", "dp=2,cp=2", ["--zero-stage", "2"]),
    ("stage 3, context", "dp=2,cp=2", ["--zero-stage", "3"]),
]
TENSOR = [("", []), (", tp", []), (", tp, sequence", ["--sequence-parallel"])]
ALL = "optimizer,parameters,activations"
# What is recomputed, and what is offloaded.
COLUMNS = [(policy, kept) for policy in ("none", "selective", "block") for kept in ("", ALL)]
COLUMNS += [("none", kept) for kept in ALL.split(",")]
ACCUMULATE = [1, 2]


def verify(model, mesh, options):
    done = subprocess.run(
        [ROOT / "build/bin/partita", "verify", model, "--dim", "batch=8", "--dim", "sequence=8", "--mesh", mesh, "--steps", "3", *options],
        capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    if done.returncode == 0 and last.startswith("equal:"):
        return "yes"
    error = re.search(r"error: (.*)", done.stderr)
    if error and done.returncode == 1 and {"onebit-adam", "onebit-lamb", "zero-one-adam"} & set(options) and "--offload optimizer" in error[1]:
        return "refused"  # docs/optimizers.md says why
    return "no: " + (error[1] if error else last)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=ROOT / "test/Data/gpt2_tiny_dynamo_sdpa.onnx")
    parser.add_argument("--states", default="", help="a regular expression: prints these rows alone")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.states and arguments.table:
        parser.error("--table: has all states")
    header = ["state"] + [f"recompute {policy}" + (f"; host: {'all' if kept == ALL else kept}" if kept else "")
                          for policy, kept in COLUMNS]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    failed = 0
    for (name, mesh, stage), (tensor, split) in itertools.product([state for state in STATES if re.search(arguments.states, state[0])], TENSOR):
        row = [name + tensor]
        for policy, kept in COLUMNS:
            options = stage + split + ["--recompute", policy]
            if kept:
                options += ["--offload", kept] + (["--offload-threshold", "1"] if "activations" in kept else [])
            found = [verify(arguments.model, mesh + (",tp=2" if tensor else ""), options + ["--accumulate", str(accumulate)])
                     for accumulate in ACCUMULATE]
            failed += sum(each not in ("yes", "refused") for each in found)
            row.append(found[0] if len(set(found)) == 1 else "; ".join(found))
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], file=sys.stderr)
    table = "\n".join(lines)
    print(table)
    if arguments.table:
        text = arguments.table.read_text()
        begin, end = "<!-- plans -->", "<!-- /plans -->"
        before, rest = text.split(begin)
        arguments.table.write_text(before + begin + "\n" + table + "\n" + end + rest.split(end)[1])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
