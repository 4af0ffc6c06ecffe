"""1-bit Adam from end to end: compiled programs against the interpreter of the program that the passes made, in double precision;
threads against MPI; a resumed run against one that was not interrupted; errors of one number of ranks taken over by another.

    one_bit_adam.py MODEL.onnx FOLDER RANKS [OPTION...]
"""
import os
import shutil
import sys

import checkpoints
import commands
import numpy as np

sys.path.insert(0, os.path.join(os.environ["PARTITA_SOURCE"], "tools", "python"))
import partita_data  # noqa: E402

model, folder, ranks, *more = sys.argv[1:]
ranks, STEPS, FREEZE, BATCH, LENGTH, RATE = int(ranks), 8, 3, 4, 8, "0.01"
tokens = np.random.default_rng(0).integers(0, 64, 4000).astype("uint16")
os.makedirs(folder, exist_ok=True)
tokens.tofile(folder + "/tokens.bin")
accumulate = int(more[more.index("--accumulate") + 1]) if "--accumulate" in more else 1
OPTIONS = ["--dim", f"batch={BATCH}", "--dim", f"sequence={LENGTH}", "--optimizer", "onebit-adam", "--freeze-step", FREEZE, "--lr", RATE]


def call(*command):
    return commands.call(*map(str, command))


def compiled(name, count, *options):
    call("partita", "compile", model, *OPTIONS, "--mesh", f"dp={count}", *more, *options, "-o", f"{folder}/{name}")
    return f"{folder}/{name}"


def run(program, count, name, *options, steps=STEPS, mpi=False):
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", count, "partita", "run", program] if mpi else ["partita", "run", program, "-n", count]
    return call(*start, "--data", folder + "/tokens.bin", "--init", "seed:1", "--seed", "3", "--steps", steps, "--log", f"{folder}/{name}.csv", *options)


def losses(name):
    with open(f"{folder}/{name}.csv", encoding="utf-8") as file:
        header, *rows = [line.split(",") for line in file.read().split()]
    return [float(row[header.index("loss")] if "loss" in header else row[-1]) for row in rows]


def read(path):
    return checkpoints.read(path)[0]


def distance(a, b):
    """The largest difference, by the largest element of the tensor, or 1e-3 of that of all."""
    assert a.keys() == b.keys(), a.keys() ^ b.keys()
    scale = 1e-3 * max(np.abs(value).max() for value in b.values())
    return max(np.abs(a[name] - b[name]).max() / max(np.abs(b[name]).max(), scale) for name in b)


program = compiled("program", ranks)
run(program, ranks, "threads", "--dump-parameters", folder + "/threads", "--checkpoint", folder + "/saved", "--checkpoint-every", 5, "--keep", 2)

windows = partita_data.Windows(tokens, LENGTH, seed=3)
with open(folder + "/numbers", "w", encoding="utf-8") as file:
    for step in range(STEPS):
        batches = [windows.batch(step, micro, BATCH, accumulate) for micro in range(accumulate)]
        for kind in (0, 1):
            print(*np.concatenate([batch[kind].ravel() for batch in batches]), file=file)
call("partita-interp", compiled("memory.mlir", ranks, "--compile-to", "memory"), "--entry", "train_step", "--init", "seed", "--seed", 1, "--times", STEPS, "--lr",
     RATE, "--inputs", folder + "/numbers", "--log", folder + "/interpreted.csv", "--parameters", folder + "/interpreted")
apart = distance(read(folder + "/threads"), read(folder + "/interpreted"))
print(f"parameters {apart:.1e} from the interpreter's", file=sys.stderr)
assert apart < 1e-5, apart
assert np.allclose(losses("threads"), losses("interpreted"), rtol=1e-6), (losses("threads"), losses("interpreted"))
print("the interpreter's losses and parameters")

run(program, ranks, "processes", "--dump-parameters", folder + "/processes", mpi=True)
with open(folder + "/threads", "rb") as a, open(folder + "/processes", "rb") as b:
    assert a.read() == b.read()
print("processes have the bits of threads")

run(program, ranks, "first", "--checkpoint", folder + "/first", steps=5)
run(program, ranks, "resumed", "--checkpoint", folder + "/first", "--resume", "--dump-parameters", folder + "/resumed")
with open(folder + "/threads", "rb") as a, open(folder + "/resumed", "rb") as b:
    assert a.read() == b.read()
print("a resumed run has the bits of one that was not interrupted")

# Another number of ranks takes equal shares of what all workers owe. In a warm-up, errors stay as they were read.
other = 4 if ranks == 2 else 2
before = read(folder + "/first")
shutil.copytree(folder + "/first", folder + "/shared")
output = run(compiled("waiting", other, "--freeze-step", 100), other, "waiting", "--checkpoint", folder + "/shared", "--resume", steps=6)
after = read(folder + "/shared")
workers = [name for name in before if name.endswith(".worker")]
assert len(workers) > 20 and f"{len(workers)} errors of compressed sums shared among another number of ranks" in output, output
for name in workers:
    assert before[name].shape[0] == ranks and after[name].shape[0] == other, name
    assert np.any(before[name]) and np.allclose(after[name], before[name].sum(0) / other, rtol=1e-6, atol=1e-12), name
    assert np.any(before[name.replace(".worker", ".server")]) and np.array_equal(after[name.replace(".worker", ".server")], before[name.replace(".worker", ".server")]), name
print("another number of ranks owes the same")

shutil.copytree(folder + "/first", folder + "/more")
run(compiled("other", other), other, "other", "--checkpoint", folder + "/more", "--resume")
assert np.allclose(losses("other"), losses("threads")[5:], rtol=0.02), (losses("other"), losses("threads"))
print("and trains on")

# One rank has no errors, and compresses nothing.
shutil.copytree(folder + "/first", folder + "/alone")
output = run(compiled("alone", 1), 1, "alone", "--checkpoint", folder + "/alone", "--resume")
assert f"left out: {2 * len(workers)} errors of compressed sums" in output, output
assert np.allclose(losses("alone"), losses("threads")[5:], rtol=0.02), (losses("alone"), losses("threads"))
output = run(program, ranks, "again", "--checkpoint", folder + "/alone", "--resume", steps=STEPS + 2)
assert f"{2 * len(workers)} errors of compressed sums begin with 0" in output, output
print("one rank, too")
