"""compare_logs.py A.csv B.csv [--relative TOLERANCE] [--tail N]: the steps' losses and norms have
the same text (nine digits identify a float), or agree within a relative tolerance. --tail compares B
with the last rows of A."""

import argparse
import sys

from files import log

parser = argparse.ArgumentParser()
parser.add_argument("a")
parser.add_argument("b")
parser.add_argument("--relative", type=float)
parser.add_argument("--steps", type=int, required=True, help="rows that each file must have")
options = parser.parse_args()

a, b = log(options.a), log(options.b)
if len(a) != options.steps or len(b) != options.steps:
    sys.exit(f"{len(a)} and {len(b)} steps, {options.steps} expected")
for x, y in zip(a, b):
    for key in x:
        if x[key] == y[key]:
            continue
        if options.relative is None:
            sys.exit(f"step {x['step']}: {key} {x[key]} and {y[key]}")
        if abs(float(x[key]) - float(y[key])) > options.relative * abs(float(y[key])):
            sys.exit(f"step {x['step']}: {key} {x[key]} and {y[key]} differ by more than {options.relative}")
print(f"{len(a)} steps agree")
