"""Clipping of 1-bit optimizers far below the usual norm, and its state in checkpoints.

    one_bit_clip.py MODEL.onnx FOLDER [sharded] OPTION...

sharded: with ZeRO-1
"""
import os
import sys

import checkpoints
import commands
import numpy as np

model, folder, *options = sys.argv[1:]
SHARDED = ["--zero-stage", 1] if "sharded" in options else []
options = [option for option in options if option != "sharded"]
WARMUP, STEPS, CLIP = 20, 80, 0.02
os.makedirs(folder, exist_ok=True)
random = np.random.default_rng(0)
after, tokens = random.integers(0, 64, 64), [1]
for _ in range(20000):  # mostly a token's own successor, so that there is something to learn
    tokens.append(after[tokens[-1]] if random.random() < 0.9 else random.integers(0, 64))
np.array(tokens).astype("uint16").tofile(folder + "/tokens.bin")


def compiled(name, ranks, *more):
    commands.call("partita", "compile", model, "--dim", "batch=4", "--dim", "sequence=8", "--betas", "0.9,0.95", "--lr", 0.002, *options,
                  *(["--mesh", f"dp={ranks}", *SHARDED] if ranks > 1 else []), *more, "-o", f"{folder}/{name}")
    return f"{folder}/{name}"


def run(program, ranks, *more, steps=STEPS):
    """Returns the losses, also those before it began, and what the run printed."""
    log = program + ".csv"
    begin = [] if "--resume" in more else ["--init", "seed:1"]
    said = commands.call("partita", "run", program, "-n", ranks, "--data", folder + "/tokens.bin", *begin, "--seed", 3, "--steps", steps, "--log", log, *more)
    with open(log, encoding="utf-8") as file:
        return [float(line.split(",")[1]) for line in file.read().split()[1:]], said


def state(path):
    values = checkpoints.read(path)[0]
    return float(values["clip_factor"]) if "clip_factor" in values else None


clipped = compiled("clipped", 2, "--clip", CLIP)
losses, _ = run(clipped, 2, "--checkpoint", folder + "/saved", "--checkpoint-every", WARMUP + 10, "--keep", 3)
before, end = np.mean(losses[WARMUP - 5:WARMUP]), np.mean(losses[-5:])
print(f"losses {losses[0]:.2f}, {before:.2f} at the end of the warm-up, {end:.2f}, at most {max(losses[WARMUP:]):.2f}", file=sys.stderr)
assert max(losses[WARMUP:]) < losses[0] and end < before - 0.2, losses
assert 0 < state(f"{folder}/saved/step-{STEPS}") < 0.5
print("after a warm-up of clipped gradients the loss goes on to fall")

run(clipped, 2, "--clip", 0, "--dump-parameters", folder + "/never.parameters", steps=WARMUP + 5)
run(compiled("plain", 2), 2, "--dump-parameters", folder + "/plain.parameters", "--checkpoint", folder + "/plain.saved", steps=WARMUP + 5)
never, plain = (checkpoints.read(f"{folder}/{name}.parameters")[0] for name in ("never", "plain"))
assert never.keys() == plain.keys() and all(np.array_equal(never[name], plain[name]) for name in plain)
print("where nothing is clipped, the bits are those of a program without --clip")

begun = f"{folder}/saved/step-{WARMUP + 10}"
os.makedirs(folder + "/four")
os.rename(begun, f"{folder}/four/step-{WARMUP + 10}")
kept = state(f"{folder}/four/step-{WARMUP + 10}")
_, said = run(compiled("of_four", 4, "--clip", CLIP), 4, "--checkpoint", folder + "/four", "--resume", steps=WARMUP + 11)
assert state(f"{folder}/four/step-{WARMUP + 11}") == kept and "clip_factor" not in said, (kept, said)
print("another number of ranks goes on with the factor")

alone = compiled("alone", 1, "--clip", CLIP)
run(alone, 1, "--checkpoint", folder + "/one", steps=WARMUP)
kept = state(f"{folder}/one/step-{WARMUP}")
losses, said = run(clipped, 2, "--checkpoint", folder + "/one", "--resume")
assert 0 < kept < 0.5 and "clip_factor" not in said and max(losses[WARMUP:]) < losses[0] and np.mean(losses[-5:]) < before - 0.2, (kept, said, losses)
print("and so do several after one")

_, said = run(clipped, 2, "--checkpoint", folder + "/plain.saved", "--resume", steps=WARMUP + 6)
assert "starts anew: clip_factor" in said, said
print("a checkpoint without it is reported")
