"""A program whose layers are functions over tables, and the same one with every layer written out: the same bits.

usage: outlined.py MODEL FOLDER [OPTION OF compile...]
"""
import os
import random
import struct
import sys

from commands import call

model, folder, *options = sys.argv[1:]


def lines(program):
    with open(program + "/model.cpp") as file:
        return len(file.readlines())


def parameters(program):
    """After two steps."""
    dump = program + ".safetensors"
    call("partita", "run", program, "--data", folder + "/tokens.bin", "--steps", "2", "--init", "seed:1", "--lr", "0.01",
         "--log", program + ".csv", "--dump-parameters", dump)
    with open(dump, "rb") as file, open(program + ".csv") as log:
        return file.read(), [row.split(",")[:2] for row in log]


os.makedirs(folder, exist_ok=True)
random.seed(5)
with open(folder + "/tokens.bin", "wb") as file:
    file.write(b"".join(struct.pack("<H", random.randrange(60)) for _ in range(4000)))
planned, lowered = folder + "/planned.mlir", folder + "/lowered.mlir"
call("partita", "compile", model, *options, "--compile-to", "sync", "-o", planned)
call("partita-opt", planned, "--lower-to-rt", "--rt-to-emitc", "--mlir-print-debuginfo", "-o", lowered)
with open(lowered) as file:  # the driver goes on after the phase that a module says it comes from
    text = file.read().replace('train.phase = "sync"', 'train.phase = "lower"')
with open(lowered, "w") as file:
    file.write(text)
programs = [os.path.join(folder, name, "program") for name in ("outlined", "written_out")]
for module, program in zip((planned, lowered), programs):
    os.makedirs(os.path.dirname(program), exist_ok=True)
    call("partita", "compile", module, "-o", program)
outlined, written_out = programs
assert lines(outlined) < lines(written_out), (lines(outlined), lines(written_out))
assert parameters(outlined) == parameters(written_out), "other parameters or losses"
print("the same bits in fewer lines")
