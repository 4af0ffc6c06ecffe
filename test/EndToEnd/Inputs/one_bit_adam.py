"""1-bit Adam from end to end: compiled programs against the interpreter of the program that the passes made, in double precision;
threads against MPI; a resumed run against one that was not interrupted; errors of one number of ranks taken over by another.

    one_bit_adam.py MODEL.onnx FOLDER RANKS [tp=2] [OPTION...]
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
tensor, more = (2, more[1:]) if more[:1] == ["tp=2"] else (1, more)
ranks, STEPS, FREEZE, BATCH, LENGTH, RATE = int(ranks), 8, 3, 4, 8, "0.001"
tokens = np.random.default_rng(0).integers(0, 64, 4000).astype("uint16")
os.makedirs(folder, exist_ok=True)
tokens.tofile(folder + "/tokens.bin")
accumulate = int(more[more.index("--accumulate") + 1]) if "--accumulate" in more else 1
OPTIONS = ["--dim", f"batch={BATCH}", "--dim", f"sequence={LENGTH}", "--optimizer", "onebit-adam", "--lr", RATE, "--eps", "0.01"]


def call(*command):
    return commands.call(*map(str, command))


def compiled(name, count, *options, freeze=FREEZE):
    call("partita", "compile", model, *OPTIONS, "--freeze-step", freeze, "--mesh", f"dp={count}" + (",tp=2" if tensor > 1 else ""), *more, *options, "-o", f"{folder}/{name}")
    return f"{folder}/{name}"


def run(program, count, name, *options, steps=STEPS, mpi=False):
    count *= tensor
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", count, "partita", "run", program] if mpi else ["partita", "run", program, "-n", count]
    begin = [] if "--resume" in options else ["--init", "seed:1"]
    return call(*start, "--data", folder + "/tokens.bin", *begin, "--seed", "3", "--steps", steps, "--log", f"{folder}/{name}.csv", *options)


def losses(name):
    with open(f"{folder}/{name}.csv", encoding="utf-8") as file:
        header, *rows = [line.split(",") for line in file.read().split()]
    return [float(row[header.index("loss")] if "loss" in header else row[-1]) for row in rows]


def read(path):
    return checkpoints.read(path)[0]


program = compiled("program", ranks)
run(program, ranks, "threads", "--dump-parameters", folder + "/threads", "--checkpoint", folder + "/saved", "--checkpoint-every", 5, "--keep", 2)

windows = partita_data.Windows(tokens, LENGTH, seed=3)
with open(folder + "/numbers", "w", encoding="utf-8") as file:
    for step in range(STEPS):
        batches = [windows.batch(step, micro, BATCH, accumulate) for micro in range(accumulate)]
        for kind in (0, 1):
            print(*np.concatenate([batch[kind].ravel() for batch in batches]), file=file)
memory = compiled("memory.mlir", ranks, "--compile-to", "memory")


def interpret(steps):
    call("partita-interp", memory, "--entry", "train_step", "--init", "seed", "--seed", 1, "--times", steps, "--lr", RATE, "--inputs", folder + "/numbers",
         "--log", folder + "/interpreted.csv", "--parameters", folder + "/interpreted")
    return read(folder + "/interpreted")


# All tensors behind the first two compressed sums. The sign of an element that is 0 but for rounding is another one in float32, and takes those of
# its chunk along a bit: a few tensors may have such a one.
saved, interpreted = read(folder + "/saved/step-5"), interpret(5)
assert saved.keys() == interpreted.keys(), saved.keys() ^ interpreted.keys()
scale = {kind: 1e-3 * max(np.abs(value).max() for name, value in interpreted.items() if name.rsplit(".", 1)[1] == kind)
         for kind in {name.rsplit(".", 1)[1] for name in interpreted}}
errors = {name: np.abs(saved[name] - value).max() / max(np.abs(value).max(), scale[name.rsplit(".", 1)[1]]) for name, value in interpreted.items()}
flipped = {name: f"{error:.1e}" for name, error in errors.items() if error > 1e-5}
print(f"worst but {flipped}: {max(error for name, error in errors.items() if name not in flipped):.1e}", file=sys.stderr)
assert len(flipped) <= 6, flipped
interpret(STEPS)
assert np.allclose(losses("threads")[:5], losses("interpreted")[:5], rtol=1e-6), (losses("threads"), losses("interpreted"))
assert np.allclose(losses("threads"), losses("interpreted"), rtol=1e-4), (losses("threads"), losses("interpreted"))
print("the interpreter's losses, parameters and states")

run(program, ranks, "processes", "--dump-parameters", folder + "/processes", mpi=True)
with open(folder + "/threads", "rb") as a, open(folder + "/processes", "rb") as b:
    assert a.read() == b.read()
print("processes have the bits of threads")

run(program, ranks, "first", "--checkpoint", folder + "/first", steps=5)
shutil.copytree(folder + "/first", folder + "/five")
run(program, ranks, "resumed", "--checkpoint", folder + "/first", "--resume", "--dump-parameters", folder + "/resumed")
with open(folder + "/threads", "rb") as a, open(folder + "/resumed", "rb") as b:
    assert a.read() == b.read()
print("a resumed run has the bits of one that was not interrupted")

call("partita", "checkpoint", "verify", folder + "/first")
call("partita", "checkpoint", "merge", folder + "/first", "-o", folder + "/merged.safetensors")
call("partita", "checkpoint", "diff", folder + "/first", folder + "/merged.safetensors")
print("checkpoints are verified, merged and compared")

# Another number of ranks takes equal shares of what all workers owe. In a warm-up, errors stay as they were read.
other = 4 if ranks == 2 else 2
before = read(folder + "/five")
shutil.copytree(folder + "/five", folder + "/shared")
output = run(compiled("waiting", other, freeze=100), other, "waiting", "--checkpoint", folder + "/shared", "--resume", steps=6)
after = read(folder + "/shared")
workers = [name for name in before if name.endswith(".worker")]
assert len(workers) > 20 and f"{len(workers)} errors of compressed sums shared among another number of ranks" in output, output
for name in workers:
    assert before[name].shape[0] == ranks and after[name].shape[0] == other, name
    assert np.any(before[name]) and np.allclose(after[name], before[name].sum(0) / other, rtol=1e-6, atol=1e-12), name
    assert np.any(before[name.replace(".worker", ".server")]) and np.array_equal(after[name.replace(".worker", ".server")], before[name.replace(".worker", ".server")]), name
print("another number of ranks owes the same")

shutil.copytree(folder + "/five", folder + "/more")
run(compiled("other", other), other, "other", "--checkpoint", folder + "/more", "--resume")
assert np.allclose(losses("other"), losses("threads")[5:], rtol=0.02), (losses("other"), losses("threads"))
print("and trains on")

# One rank has no errors, and compresses nothing.
shutil.copytree(folder + "/five", folder + "/alone")
output = run(compiled("one", 1), 1, "alone", "--checkpoint", folder + "/alone", "--resume")
assert f"left out: {2 * len(workers)} errors of compressed sums" in output, output
assert np.allclose(losses("alone"), losses("threads")[5:], rtol=0.02), (losses("alone"), losses("threads"))
output = run(program, ranks, "again", "--checkpoint", folder + "/alone", "--resume", steps=STEPS + 2)
assert f"{2 * len(workers)} errors of compressed sums begin with 0" in output, output
print("one rank, too")
