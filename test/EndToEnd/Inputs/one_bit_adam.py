"""1-bit Adam, 1-bit LAMB or 0/1 Adam from end to end: a compiled program against the interpreter of the program that the passes made, in double precision; threads
against MPI; a resumed run against one that was not interrupted, and on another mesh.

    one_bit_adam.py MODEL.onnx FOLDER MESH [then=MESH] [zero-one|lamb] [OPTION...]
"""
import os
import shutil
import sys

import checkpoints
import commands
import numpy as np

sys.path.insert(0, os.path.join(os.environ["PARTITA_SOURCE"], "tools", "python"))
import partita_data  # noqa: E402

model, folder, mesh, *more = sys.argv[1:]
other, more = (more[0][5:], more[1:]) if more and more[0].startswith("then=") else ("", more)
STEPS, SAVED, FREEZE, BATCH, LENGTH, RATE = 6, 4, 2, 4, 8, "0.001"
KINDS = {"zero-one": ["zero-one-adam", "--var-freeze-step", 4, "--var-update-scaler", 1], "lamb": ["onebit-lamb", "--freeze-step", FREEZE, "--coeff-beta", 0.5]}
CLOSE = 1e-4 if "gpt2" in model else 1e-5  # a few steps of 0/1 Adam take GPT-2's float32 that far from double, whatever its vocabulary
kind = next((KINDS[word] for word in more if word in KINDS), ["onebit-adam", "--freeze-step", FREEZE])
more = [word for word in more if word not in KINDS]
accumulate = int(more[more.index("--accumulate") + 1]) if "--accumulate" in more else 1
OPTIONS = ["--dim", f"batch={BATCH}", "--dim", f"sequence={LENGTH}", "--optimizer", *kind, "--lr", RATE, "--eps", "0.01"]
tokens = np.random.default_rng(0).integers(0, 64, 4000).astype("uint16")
os.makedirs(folder, exist_ok=True)
tokens.tofile(folder + "/tokens.bin")


def compiled(name, mesh, *options, base=OPTIONS):
    commands.call("partita", "compile", model, *base, "--mesh", mesh, *more, *options, "-o", f"{folder}/{name}")
    return f"{folder}/{name}"


def run(program, mesh, name, *options, steps=STEPS, mpi=False):
    """A run whose parameters and losses get this name. Returns what it printed."""
    ranks = np.prod([int(axis.split("=")[1]) for axis in mesh.split(",")])
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", ranks, "partita", "run", program] if mpi else ["partita", "run", program, "-n", ranks]
    begin = [] if "--resume" in options else ["--init", "seed:1"]
    return commands.call(*start, "--data", folder + "/tokens.bin", *begin, "--seed", 3, "--steps", steps, "--log", f"{folder}/{name}.csv",
                         "--dump-parameters", f"{folder}/{name}.parameters", *options)


def bits(name):
    with open(f"{folder}/{name}.parameters", "rb") as file:
        return file.read()


def losses(name):
    with open(f"{folder}/{name}.csv", encoding="utf-8") as file:
        header, *rows = [line.split(",") for line in file.read().split()]
    return [float(row[header.index("loss")] if "loss" in header else row[-1]) for row in rows]


def read(path):
    return checkpoints.read(path)[0]


program = compiled("program", mesh)
run(program, mesh, "threads", "--checkpoint", folder + "/saved", "--checkpoint-every", SAVED, "--keep", 2)

windows = partita_data.Windows(tokens, LENGTH, seed=3)
with open(folder + "/numbers", "w", encoding="utf-8") as file:
    for step in range(SAVED):
        batches = [windows.batch(step, micro, BATCH, accumulate) for micro in range(accumulate)]
        for kind in (0, 1):
            print(*np.concatenate([batch[kind].ravel() for batch in batches]), file=file)
commands.call("partita-interp", compiled("memory.mlir", mesh, "--compile-to", "memory"), "--entry", "train_step", "--init", "seed", "--seed", 1, "--times", SAVED,
              "--lr", RATE, "--inputs", folder + "/numbers", "--log", folder + "/interpreted.csv", "--parameters", folder + "/interpreted")

saved, interpreted = read(f"{folder}/saved/step-{SAVED}"), read(folder + "/interpreted")
assert saved.keys() == interpreted.keys(), saved.keys() ^ interpreted.keys()
kinds = {name: name.rsplit(".", 1)[-1] for name in interpreted}
assert ("clip_factor" in saved) == ("--clip" in more) and ("--clip" not in more or saved["clip_factor"] < 1), saved.get("clip_factor")
assert sum(np.any(saved[name]) for name in saved if kinds[name] == "worker") > 20
if "bfloat16" in more:  # the interpreter rounds nothing; where it adds up another sign, an element differs by twice a scale
    def distance(kind):
        pairs = [(saved[name].astype(float), value) for name, value in interpreted.items() if kinds[name] == kind]
        return (sum(((a - b) ** 2).sum() for a, b in pairs) / sum((b ** 2).sum() for _, b in pairs)) ** 0.5
    distances = {kind: distance(kind) for kind in ("m", "v", "worker", "server")}
    print(distances, file=sys.stderr)
    assert all(each < 0.2 for each in distances.values()), distances
    assert np.allclose(losses("threads")[:SAVED], losses("interpreted"), rtol=1e-3), (losses("threads"), losses("interpreted"))
    assert all(saved[name].dtype == np.float32 for name in saved if kinds[name] in ("m", "v", "fresh", "coefficient", "factor", "clip_factor", "master", "worker", "server"))
else:
    # All tensors after the compressed sums of two steps. The sign of an element that is 0 but for rounding is another one in float32, and takes those
    # of its chunk along a bit: a few tensors may have such a one, which is off by twice a scale. A third of GPT-2's c_attn.bias, that of keys, are such elements.
    interpreted = {name: value for name, value in interpreted.items() if ".c_attn.bias" not in name}
    least = {kind: 1e-3 * max(np.abs(value).max() for name, value in interpreted.items() if kinds[name] == kind) for kind in kinds.values()}
    off = {name: np.abs(saved[name] - value) / max(np.abs(value).max(), least[kinds[name]]) for name, value in interpreted.items()}
    flipped = {name: (int((each > 1e-3).sum()), f"{each.max():.1e}") for name, each in off.items() if each.max() > CLOSE}
    print(f"worst but {flipped}: {max(each.max() for name, each in off.items() if name not in flipped):.1e}", file=sys.stderr)
    assert len(flipped) <= 6 and all(count <= 2 for count, _ in flipped.values()) and all(off[name].max() <= 2 for name in flipped), flipped
    assert np.allclose(losses("threads")[:SAVED], losses("interpreted"), rtol=1e-6), (losses("threads"), losses("interpreted"))
print("the interpreter's losses, parameters and states")

run(program, mesh, "processes", mpi=True)
assert bits("processes") == bits("threads")
print("processes have the bits of threads")

if other:
    commands.call("partita", "checkpoint", "verify", folder + f"/saved/step-{SAVED}")
    commands.call("partita", "checkpoint", "merge", folder + f"/saved/step-{SAVED}", "-o", folder + "/merged.safetensors")
    commands.call("partita", "checkpoint", "diff", folder + f"/saved/step-{SAVED}", folder + "/merged.safetensors")
    print("checkpoints are verified, merged and compared")

    os.makedirs(folder + "/first")
    os.rename(f"{folder}/saved/step-{SAVED}", f"{folder}/first/step-{SAVED}")
    shutil.copytree(folder + "/first", folder + "/shared")
    run(program, mesh, "resumed", "--checkpoint", folder + "/first", "--resume", "--keep", 2)
    assert bits("resumed") == bits("threads")
    print("a resumed run has the bits of one that was not interrupted")

    # Another number of ranks has all that was not sent, in equal shares: exact steps keep the errors as they were read.
    exact = [100 if before in ("--freeze-step", "--var-freeze-step", "--var-update-scaler") else word for before, word in zip(["", *OPTIONS], OPTIONS)]
    run(compiled("exact", other, base=exact), other, "exact", "--checkpoint", folder + "/shared", "--resume", steps=SAVED + 1)
    shared = read(f"{folder}/shared/step-{SAVED + 1}")
    for name in saved:
        if kinds[name] == "worker":
            assert len(shared[name]) != len(saved[name]) and all(np.array_equal(row, shared[name][0]) for row in shared[name]), name
            unsent = saved[name].astype(float).sum(axis=0)
            assert np.allclose(shared[name].astype(float).sum(axis=0), unsent, rtol=1e-6, atol=1e-6 * np.abs(unsent).max()), name
        elif kinds[name] == "server":
            assert np.array_equal(shared[name], saved[name]), name
    print("another number of ranks has the same errors")

    output = run(compiled("other", other), other, "other", "--checkpoint", folder + "/first", "--resume", steps=STEPS + 2)
    assert f"{sum(name.endswith('.worker') for name in saved)} errors of compressed sums shared among another number of ranks" in output, output
    run(program, mesh, "further", "--checkpoint", folder + "/saved", "--resume", steps=STEPS + 2)
    assert np.allclose(losses("other"), losses("further"), rtol=0.02), (losses("other"), losses("further"))
    print("another number of ranks trains on")
