"""Checkpoints written under each plan and read under every other: stages, tp, fsdp, accumulation, numbers of ranks.
usage: checkpoint_plans.py MODEL FOLDER

A plan reads what another wrote and, with nothing computed in between, has its parameters bit by bit; then it makes the next
step: the states are where they belong, so that both go on alike.
"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import checkpoints
from commands import call
import numpy as np

model, folder = sys.argv[1], sys.argv[2]
tokens = folder + "/tokens.bin"
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(tokens)

# Every stage on every mesh, with one micro-batch and with two in turn; a step takes 24 samples.
meshes = ["dp=2", "dp=3", "dp=2,tp=2", "dp=2,fsdp=2"]
plans = [("dp=1", 0, 1), ("tp=2", 0, 2), ("tp=2", 0, 1)]
plans += [(mesh, stage, 1 + (row + stage) % 2) for row, mesh in enumerate(meshes) for stage in range(4)]


def name(plan):
    mesh, stage, accumulate = plan
    return f"{mesh.replace('=', '').replace(',', '')}_z{stage}_a{accumulate}"


def program(plan):
    return f"{folder}/{name(plan)}/{name(plan)}"


def checkpoint(plan):
    return f"{folder}/c_{name(plan)}"


def compile_and_write(plan):
    mesh, stage, accumulate = plan
    call("partita", "compile", model, "--dim", f"batch={24 // accumulate}", "--dim", "sequence=8", "--mesh", mesh, "--zero-stage",
         str(stage), "--accumulate", str(accumulate), "-o", f"{folder}/{name(plan)}")
    call(program(plan), "--data", tokens, "--init", "seed:1", "--seed", "3", "--steps", "2", "--lr", "0.01", "--checkpoint",
         checkpoint(plan))
    return checkpoints.read(checkpoint(plan))


def write_uninterrupted(plan):
    full = f"{folder}/w_{name(plan)}"
    call(program(plan), "--data", tokens, "--init", "seed:1", "--seed", "3", "--steps", "3", "--lr", "0.01", "--checkpoint", full,
         "--check-replicas", "1")
    return checkpoints.read(full)


def read_by_all(writer):
    """One run at a time has a folder."""
    for reader in plans:
        path = f"{folder}/p_{name(writer)}.safetensors"
        call(program(reader), "--resume", "--checkpoint", checkpoint(writer), "--dump-parameters", path)
        parameters = checkpoints.read(path)[0]
        assert len(parameters) == 28, len(parameters)
        for key, values in parameters.items():
            assert values.tobytes() == written[writer][0][key].tobytes(), (writer, reader, key)
    return len(plans)


def go_on(pair):
    """The next step of a copy, and the checkpoint that it leaves."""
    writer, reader = pair
    copy = f"{folder}/x_{name(writer)}_{name(reader)}"
    call("cp", "-r", checkpoint(writer), copy)
    call(program(reader), "--data", tokens, "--seed", "3", "--resume", "--steps", "3", "--lr", "0.01", "--checkpoint", copy)
    split = "tp" in reader[0] or reader[1] > 0
    assert sorted(os.listdir(copy)) == ["step-2", "step-3"], os.listdir(copy)
    names = os.listdir(copy + "/step-3")
    assert ("checkpoint.safetensors.index.json" in names) == split != ("checkpoint.safetensors" in names), (pair, names)
    result = checkpoints.read(copy)
    assert result[1]["step"] == "3" and result[1]["seed"] == "3"
    call("rm", "-r", copy)
    return result


def worst_state(a, b):
    """The sums that Adam keeps; parameters follow their signs, also where they are rounding errors."""
    states = [key for key in b if key.endswith((".m", ".v"))]
    assert a.keys() == b.keys() and len(states) == 56
    largest = {end: max(np.abs(b[key]).max() for key in states if key.endswith(end)) for end in (".m", ".v")}
    return max(np.abs(a[key] - b[key]).max() / max(np.abs(b[key]).max(), 1e-2 * largest[key[-2:]]) for key in states)


with ThreadPoolExecutor(2) as pool:
    written = dict(zip(plans, pool.map(compile_and_write, plans)))
    print(f"{sum(pool.map(read_by_all, plans))} pairs of {len(plans)} plans: the same parameters")
    # Each plan goes on from its own checkpoint, and three others do, as it would have without any.
    uninterrupted = dict(zip(plans, pool.map(write_uninterrupted, plans)))
    for number, writer in enumerate(plans):
        readers = [plans[(number + step) % len(plans)] for step in (0, 1, 5, 11)]
        own, *others = pool.map(go_on, [(writer, reader) for reader in readers])
        assert not checkpoints.same(uninterrupted[writer], own), (writer, checkpoints.same(uninterrupted[writer], own))
        for reader, found in zip(readers[1:], others):
            error = worst_state(found[0], own[0])
            assert error < 1e-4, (writer, reader, error)
print("and the next step from the same states")
