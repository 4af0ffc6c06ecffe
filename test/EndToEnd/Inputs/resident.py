"""resident.py MODEL FOLDER: the most that a run's process ever had resident is what was announced for its ranks, within 5 % and 16 MiB (code,
libraries' tables, packing buffers of matmuls)."""
import re, sys
import numpy as np
from commands import call

model, folder = sys.argv[1:]
np.random.default_rng(0).integers(0, 256, 60000).astype("uint16").tofile(folder + "/tokens.bin")


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1].replace(",", "")) if found else 0


for ranks, options in ((1, []), (2, ["--mesh", "dp=2", "--zero-stage", "3"]), (2, ["--mesh", "dp=2", "--offload", "optimizer,parameters"])):
    program = f"{folder}/program"
    call("partita", "compile", model, "--dim", "batch=8", "--dim", "sequence=256", *options, "-o", program)
    text = call("partita", "run", program, "-n", str(ranks), "--data", folder + "/tokens.bin", "--init", "seed:1", "--steps", "1")
    announced = ranks * (number(r"memory +([\d,]+) bytes per rank", text) + number(r"([\d,]+) bytes of host memory", text))
    resident = number(r"([\d,]+) bytes of resident memory at the peak", text)
    assert announced > 2e8 and abs(resident - announced) <= 0.05 * announced + 2**24, (options, announced, resident)
    print(f"announced {announced}, resident {resident}")
print("resident as announced")
