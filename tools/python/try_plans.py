#!/usr/bin/env python3
"""Every combination of a stage of ZeRO, tensor parallelism, recomputation and accumulation, against one rank.

Runs `partita verify` (all phases, planned memory, three steps in double precision) for each and prints a table; --table FILE puts it
between the marks <!-- plans --> and <!-- /plans --> of a Markdown file. Needs nothing but the built compiler. Several minutes.

usage: try_plans.py [--model MODEL.onnx] [--table FILE]
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
    ("stage 1, hybrid", "dp=2,fsdp=2", ["--zero-stage", "1"]),
    ("stage 3, hybrid", "dp=2,fsdp=2", ["--zero-stage", "3"]),
]
TENSOR = [("", []), ("tp", []), ("tp, sequence", ["--sequence-parallel"])]
RECOMPUTE = ["none", "selective", "block"]
ACCUMULATE = [1, 2]


def verify(model, mesh, options):
    done = subprocess.run(
        [ROOT / "build/bin/partita", "verify", model, "--dim", "batch=8", "--dim", "sequence=8", "--mesh", mesh, "--steps", "3", *options],
        capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    if done.returncode == 0 and last.startswith("equal:"):
        return "yes"
    error = re.search(r"error: (.*)", done.stderr)
    return "no: " + (error[1] if error else last)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=ROOT / "test/Data/gpt2_tiny_dynamo_sdpa.onnx")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    header = ["state"] + [f"{tensor or 'no tp'}; {policy}" for policy in RECOMPUTE for tensor, _ in TENSOR]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    failed = 0
    for name, mesh, stage in STATES:
        row = [name]
        for policy in RECOMPUTE:
            for tensor, split in TENSOR:
                found = []
                for accumulate in ACCUMULATE:
                    whole = mesh + (",tp=2" if tensor else "")
                    found.append(verify(arguments.model, whole, stage + split + ["--recompute", policy, "--accumulate", str(accumulate)]))
                    failed += found[-1] != "yes"
                row.append("yes" if set(found) == {"yes"} else "; ".join(found))
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
