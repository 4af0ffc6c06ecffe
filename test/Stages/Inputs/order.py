"""Runs a program's micro-batches in other orders: order.py FAMILIES_DIR DIR

Without a pipeline, a loop over micro-batches may run its passes in any stage's order. Each program
is compiled up to the phase before `schedule`, gets an order, and is compiled up to planned memory,
which the interpreter checks value by value; two steps in double precision must equal those of the
program without an order. Exit code 1 if one does not.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402

TOLERANCE = 1e-6  # parameters are written in float32
GPIPE = "4 x (forward 0), 4 x (backward 0)"
FIRST_OF_THREE = "2 x (forward 0), 2 x (forward 2, backward 0), 2 x (backward 2)"
LAST = "4 x (forward 0, backward 0)"
TURNED = "1 x (forward 1, forward 0, backward 1), 1 x (forward 3, forward 2, backward 3, backward 0, backward 2)"

# family, plan, orders
PROGRAMS = [
    ("gpt2", [], [GPIPE, FIRST_OF_THREE, LAST, TURNED]),
    ("llama", ["--mesh", "dp=2", "--zero-stage", "3", "--recompute", "block"], [FIRST_OF_THREE]),
    ("t5", ["--mesh", "tp=2", "--clip", "1"], [FIRST_OF_THREE]),
    ("qwen2", ["--mesh", "dp=2", "--zero-stage", "2", "--precision", "bfloat16"], [TURNED]),
]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[:2000]}")
    return done.stdout


def with_order(text, order):
    """Returns the text of a module with an order on its only loop."""
    loop = re.search(r"^( *)%\S+ = train\.accumulate [\s\S]*?^\1} backward [\s\S]*?^\1}( \{)?", text, re.M)
    end = f"order = #train.order<{order}>"
    return text[: loop.end()] + (f"{end}, " if loop[2] else f" {{{end}}}") + text[loop.end() :]


def trained(program, folder):
    """Returns the parameters after two steps in double precision, as numbers by name."""
    path = folder / "parameters.safetensors"
    run("partita-interp", program, "--entry", "train_step", "--times", "2", "--lr", "0.1", "--parameters", path)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    return {name: np.frombuffer(content[8 + size :][slice(*row["data_offsets"])], {"F64": "<f8", "F32": "<f4"}[row["dtype"]])
            for name, row in header.items() if name != "__metadata__"}


def difference(ours, reference):
    """Returns the max difference, relative to the max number of the tensor."""
    assert ours.keys() == reference.keys(), (ours.keys(), reference.keys())
    return max(np.max(np.abs(ours[name] - reference[name])) / max(np.max(np.abs(reference[name])), 1e-3) for name in reference)


def main():
    families, folder = map(pathlib.Path, sys.argv[1:3])
    failed = count = 0
    for family, plan, orders in PROGRAMS:
        made = folder / family
        made.mkdir()
        run(sys.executable, family_files.__file__, "make", family, made)
        options = ((made / "dims").read_text() + " " + (made / "options").read_text()).split()
        before, done, planned = (folder / f"{family}{suffix}.mlir" for suffix in ("", "_done", "_planned"))
        run("partita", "compile", families / f"{family}_torchscript.onnx", *options, "--accumulate", "4", *plan,
            "--compile-to", "offload", "-o", before)
        reference = trained(before, folder)
        for order in orders:
            count += 1
            try:
                done.write_text(with_order(before.read_text(), order))
                run("partita", "compile", done, "--compile-to", "sync", "-o", planned)
                apart = difference(trained(planned, folder), reference)
                if not apart <= TOLERANCE:
                    raise RuntimeError(f"parameters differ by {apart}")
                print(f"{family}, {order}: equal", flush=True)
            except RuntimeError as error:
                failed += 1
                print(f"{family}, {order}: {error}", flush=True)
    print(f"{count - failed} programs equal, {failed} not")
    sys.exit(failed > 0)


main()
