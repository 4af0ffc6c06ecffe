#!/usr/bin/env python3
"""Context parallelism of the families in test/Data: each plan verified against the program of one rank, in double precision.

    context_families.py [--only NAME]

Prints a table with a row for each export and a column for each plan: `equal`, or what `partita verify` says. Plans are rings and exchanges of
heads over two and four ranks, and both at once. Among the families are causal attention and attention both ways, a window
(Mistral), ALiBi (BLOOM), relative positions and cross-attention (T5), grouped heads, one key head (Falcon). A vision
transformer has no sequence among its inputs, so it is not there. Needs partita in the PATH; exit code 1 when anything is not equal.
"""
import argparse
import os
import subprocess
import sys

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Data")
FAMILIES = [f"families/{name}_{exporter}" for name in ("gpt2", "llama", "mistral", "qwen2", "opt", "gpt_neox", "bert", "roberta", "t5")
            for exporter in ("dynamo", "torchscript")] + ["further/bloom_dynamo", "further/falcon_dynamo"]
PLANS = [("cp=2", "ring"), ("cp=4", "ring"), ("cp=2", "all-to-all"), ("cp=4", "all-to-all"), ("cp=2,ulysses=2", "ring"), ("cp=4,ulysses=2", "ring"),
         ("cp=2,ulysses=4", "ring")]


def verify(family, mesh, way):
    """Returns "equal", or the first line of what is wrong."""
    options = ["--dim", "batch=4", "--dim", "sequence=16", "--mesh", mesh, "--context-parallel", way]
    if "bert" in family:
        options += ["--objective", "masked"]
    if "t5" in family:
        options += ["--dim", "decoder_sequence=8"]
    done = subprocess.run(["partita", "verify", os.path.join(DATA, family + ".onnx"), *options], capture_output=True, text=True)
    return "equal" if done.returncode == 0 else (done.stderr.splitlines() or [f"exit code {done.returncode}"])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="families whose name contains this")
    arguments = parser.parse_args()
    chosen = [family for family in FAMILIES if arguments.only in family]
    if not chosen:
        parser.error(f"--only: no family is called {arguments.only}")
    print("| export | " + " | ".join(f"{mesh} {way}" for mesh, way in PLANS) + " |")
    print("|---" * (len(PLANS) + 1) + "|")
    wrong = 0
    for family in chosen:
        cells = [verify(family, *plan) for plan in PLANS]
        wrong += sum(cell != "equal" for cell in cells)
        print("| " + " | ".join([os.path.basename(family), *cells]) + " |", flush=True)
    print(f"{len(chosen) * len(PLANS)} plans: {wrong} not equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
