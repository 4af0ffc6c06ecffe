"""Thirty plans of one model, compiled, run for three steps of SGD and held against one rank: parameters within 1e-5 (float32), the same bits
where the sums are the same (stages 0 to 3 without micro-batches; with them 0 = 1 and 2 = 3; what is kept on the host or computed again changes
none), hybrid sharding within 1e-6; what a run allocates is what the compiler announced; the arena is at most 1.05 of the largest live set.
usage: configurations.py MODEL FOLDER"""
import json, re, sys
import numpy as np
from commands import call

model, folder = sys.argv[1:]
tokens = folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(tokens)
HOST = ["--offload", "optimizer,parameters,activations", "--offload-threshold", "1"]
PLANS = [  # name, mesh, options; ranks
    ("stage 0", "dp=2", [], 2),
    ("stage 1", "dp=2", ["--zero-stage", "1"], 2),
    ("stage 2", "dp=2", ["--zero-stage", "2"], 2),
    ("stage 3", "dp=2", ["--zero-stage", "3"], 2),
    ("stage 3, kept", "dp=2", ["--fsdp-strategy", "shard-grad-op"], 2),
    ("stage 3, small ones whole", "dp=2", ["--zero-stage", "3", "--persistence-threshold", "64"], 2),
    ("stage 3, recomputed", "dp=2", ["--zero-stage", "3", "--recompute", "block"], 2),
    ("stage 0, cheap ones recomputed", "dp=2", ["--recompute", "selective"], 2),
    ("stage 0, host", "dp=2", HOST, 2),
    ("stage 3, host", "dp=2", ["--zero-stage", "3"] + HOST, 2),
    ("hybrid 1", "dp=2,fsdp=2", ["--zero-stage", "1"], 4),
    ("hybrid 3", "dp=2,fsdp=2", ["--zero-stage", "3"], 4),
    ("tensor", "dp=2,tp=2", [], 4),
    ("tensor 3", "dp=2,tp=2", ["--zero-stage", "3", "--recompute", "block", "--recompute-partition"], 4),
    ("sequence 2, host", "dp=2,tp=2", ["--zero-stage", "2", "--sequence-parallel"] + HOST, 4),
]


def tensors(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    return {name: data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]]
            for name, entry in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"}


def error(a, b):
    a, b = ({name: np.frombuffer(data, "f4") for name, data in each.items()} for each in (a, b))
    largest = max(np.abs(each).max() for each in b.values())
    return max(np.abs(a[name] - b[name]).max() / max(np.abs(b[name]).max(), 1e-3 * largest) for name in b)


def check_memory(program, text):
    memory = json.load(open(program + "/manifest.json"))["memory"]
    for side, words in ((memory, r"memory +[\d,]+ bytes per rank: ([\d,]+) persistent, ([\d,]+) arena"),
                        (memory.get("host"), r"bytes of host memory: ([\d,]+) persistent, ([\d,]+) pinned")):
        found = re.search(words, text)
        assert (side is None) == (found is None), (program, text)
        if side is None:
            continue
        assert [int(number.replace(",", "")) for number in found.groups()] == [side["persistent"], side["arena"]], (program, text)
        for function in side["functions"].values():
            assert function["arena"] <= 1.05 * function["peak"], (program, function["arena"], function["peak"])


def run(name, mesh, options, ranks, accumulate):
    program = f"{folder}/{re.sub('[^a-z0-9]+', '_', name)}_{accumulate}"
    batch = 8 // accumulate
    call("partita", "compile", model, "--dim", f"batch={batch}", "--dim", "sequence=8", "--accumulate", str(accumulate), "--optimizer", "sgd",
         *(["--mesh", mesh] if mesh else []), *(option if option != "optimizer,parameters,activations" else "parameters,activations" for option in options),
         "-o", program)
    text = call("partita", "run", program, "-n", str(ranks), "--data", tokens, "--init", "seed:1", "--seed", "3", "--steps", "3", "--lr", "0.05",
                "--check-replicas", "1", "--dump-parameters", program + ".safetensors")
    check_memory(program, text)
    return tensors(program + ".safetensors")


count = 0
for accumulate in (1, 2):
    full = run("whole", "", [], 1, accumulate)
    results = {}
    for name, mesh, options, ranks in PLANS:
        results[name] = run(name, mesh, options, ranks, accumulate)
        assert error(results[name], full) < 1e-5, (name, accumulate, error(results[name], full))
        count += 1
    for name, like in (("stage 1", "stage 0"), ("stage 3", "stage 2"), ("stage 3, kept", "stage 3"), ("stage 3, small ones whole", "stage 3"),
                       ("stage 3, recomputed", "stage 3"), ("stage 0, cheap ones recomputed", "stage 0"), ("stage 0, host", "stage 0"),
                       ("stage 3, host", "stage 3")):
        assert results[name] == results[like], f"{name} has not the bits of {like}, {accumulate} micro-batches"
    if accumulate == 1:
        assert results["stage 2"] == results["stage 0"]
    for name, like in (("stage 2", "stage 0"), ("hybrid 1", "stage 0"), ("hybrid 3", "stage 0")):
        assert error(results[name], results[like]) < 1e-6, (name, error(results[name], results[like]))
print(f"{count} plans: equal, as large as announced, planned tightly")
