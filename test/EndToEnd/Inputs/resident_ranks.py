"""resident_ranks.py MODEL FOLDER MPIRUN...: what docs/memory.md says of the memory of processes, for 2, 8 and 16 ranks as threads and as
processes on both transports: announced for the process's ranks, 5 %, 16 MiB (32 under mpirun), half a MiB per rank, 6 MiB per rank in
16 bits, what the run counts, and the mapped data."""
import os, re, sys
import numpy as np
from commands import call

model, folder, *mpirun = sys.argv[1:]
np.random.default_rng(0).integers(0, 256, 60000).astype("uint16").tofile(folder + "/tokens.bin")
MiB = 2**20


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1].replace(",", "")) if found else 0


for ranks, precision in ((2, "float32"), (8, "float32"), (16, "float32"), (8, "bfloat16")):
    program = f"{folder}/dp{ranks}_{precision}"
    call("partita", "compile", model, "--dim", "batch=16", "--dim", "sequence=16", "--mesh", f"dp={ranks}", "--precision", precision, "-o", program)
    for transport in ("threads", "window", "messages") if precision == "float32" else ("threads",):
        os.environ.pop("PARTITA_RT_TRANSPORT", None)
        if transport == "messages":
            os.environ["PARTITA_RT_TRANSPORT"] = transport
        processes = transport != "threads"
        launcher = [*mpirun, "-np", str(ranks)] if processes else []
        text = call(*launcher, "partita", "run", program, "--data", folder + "/tokens.bin", "--init", "seed:1", "--steps", "2")
        announced = (1 if processes else ranks) * number(r"memory +([\d,]+) bytes per rank", text)
        staging = number(r"([\d,]+) bytes of the collectives' staging", text)
        packing = number(r"([\d,]+) bytes of OpenBLAS's packing buffers", text)
        resident = number(r"([\d,]+) bytes of resident memory at the peak", text)
        bound = 1.05 * announced + (32 if processes else 16) * MiB + ranks * MiB / 2 + staging + packing
        bound += 6 * MiB * ranks if precision == "bfloat16" else 0
        assert 0 < announced < resident <= bound and packing > 0 and (staging > 0) == processes, (ranks, transport, text, bound)
        print(f"{ranks} ranks, {transport}: announced {announced}, staging {staging}, packing {packing}, resident {resident}")
# A mapped data file counts by its size, and the run says how much of it there is. (Its pages may be reclaimed: no lower bound.)
size = 48 * MiB
with open(folder + "/text", "wb") as file:
    file.write(np.random.default_rng(0).integers(32, 127, size).astype("uint8"))
text = call("partita", "run", f"{folder}/dp2_float32", "--data", f"text:{folder}/text", "--init", "seed:1", "--steps", "2")
resident, files = number(r"([\d,]+) bytes of resident memory at the peak", text), number(r"([\d,]+) bytes of mapped files", text)
bound = 1.05 * 2 * number(r"memory +([\d,]+) bytes per rank", text) + 17 * MiB + number(r"([\d,]+) bytes of OpenBLAS's packing buffers", text)
assert 0 < files < resident <= bound + size, (text, bound)
print(f"data of {size}: resident {resident}, of files {files}")
print("resident within the bound")
