"""Arguments of @train_step for the steps of a golden: for each step all tokens, then all labels.

    golden_inputs.py GOLDEN.json [unmasked|masked] > numbers
"""

import json
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "python"))
import partita_data  # noqa: E402


def main():
    with open(sys.argv[1]) as file:
        golden = json.load(file)
    if "tokens" in golden:
        tokens = numpy.array(golden["tokens"])
    else:
        tokens = numpy.fromfile("/usr/share/common-licenses/GPL-3", numpy.uint8)
    run = golden[sys.argv[2]] if len(sys.argv) > 2 else golden
    windows = partita_data.Windows(tokens, golden["sequence"], seed=1)
    accumulate = golden.get("accumulate", 1)
    for step in range(len(run["adamw"]["loss_float64"])):
        batches = [windows.batch(step, micro, golden["batch"], accumulate) for micro in range(accumulate)]
        for kind in (0, 1):
            values = numpy.concatenate([batch[kind].ravel() for batch in batches])
            if kind == 1 and sys.argv[2:] == ["masked"]:
                values[values == 0] = -100
            print(*values)


main()
