"""Shared by random_plans and random_pipelines: the models, random options of a plan, data, and the form of a valid refusal.
"""

import array
import csv
import json
import math
import random
import re
import struct
import subprocess
import sys

import harness

sys.path.insert(0, str(harness.ROOT / "tools/python"))
import family_models  # noqa: E402

FOLDERS = [harness.ROOT / "test/Data/families", harness.ROOT / "test/Data/further"]
LOCATED = re.compile(r"^(partita \w+|\S+|[^:\n]+:\d+(:\d+)?)(: '[^'\n]*')?: error: ", re.MULTILINE)


def models():
    return {path.name.removesuffix(".onnx"): path for folder in FOLDERS for path in sorted(folder.glob("*.onnx"))}


def family_of(name):
    return name.rsplit("_", 1)[0]


def is_causal(name):
    return family_models.objective(family_of(name)) == "causal"


def model_options(name, batch=12):
    return family_models.training_options(family_of(name), batch=batch, sequence=8, decoder_sequence=4)


def draw_options(rng, mesh, micro_batches=(2, 3), accumulate=0.5):
    """Draws options of a plan on a mesh; the same for the same state of `rng`."""
    options = []

    def maybe(chance, *words):
        if rng.random() < chance:
            options.extend(str(word) for word in words)

    if rng.random() < 0.15:
        options += ["--fsdp-strategy", rng.choice(["full-shard", "no-shard", "shard-grad-op"])]
    else:
        shards = "dp" in mesh or rng.random() < 0.05
        options += ["--zero-stage", str(rng.choice([0, 1, 2, 3]) if shards or "fsdp" in mesh else 0)]
    maybe(0.3 if "tp" in mesh else 0.02, "--sequence-parallel")
    maybe(0.5, "--recompute", rng.choice(["selective", "block"]))
    maybe(0.1, "--recompute-budget", rng.choice([1000, 20000, 1000000]))
    maybe(0.1 if "tp" in mesh else 0.02, "--recompute-partition")
    maybe(0.4, "--offload", ",".join(rng.sample(["optimizer", "parameters", "activations"], rng.randint(1, 3))))
    maybe(0.8 if "activations" in options[-1] else 0.01, "--offload-threshold", rng.choice([1, 1024]))
    maybe(accumulate, "--accumulate", rng.choice(micro_batches))
    maybe(0.3, "--bucket-bytes", rng.choice([1, 4096, 100000]))
    gathers = options[1] in ("3", "full-shard") and "tp" != mesh.split("=")[0]
    maybe(0.3 if gathers else 0.01, "--prefetch-bytes", rng.choice([1, 10000, 10000000]))
    maybe(0.3 if gathers else 0.01, "--persistence-threshold", rng.choice([1, 100, 10000]))
    maybe(0.2 if gathers else 0.01, "--gather-always")
    maybe(0.2 if gathers else 0.01, "--keep-gathered", "*weight*")
    scatters = options[1] in ("1", "2", "3", "full-shard", "shard-grad-op") and "tp" != mesh.split("=")[0]
    maybe(0.2 if scatters else 0.01, "--zero-quantized-gradients", "--gradient-quantization-block", rng.choice([8, 20, 64, 256]))
    maybe(0.3, "--clip", rng.choice([0.1, 1.0]))
    precision = rng.choice(["float32", "float32", "float32", "bfloat16", "float16"])
    if precision != "float32":
        options += ["--precision", precision]
        maybe(0.3, "--reduce-type", "float32")
        maybe(0.3 if "--accumulate" in options else 0.02, "--accumulate-type", precision)
    maybe(0.8 if precision == "float16" else 0.1, "--loss-scale", rng.choice([0, 1, 1024]))
    return options + ["--optimizer", rng.choice(["adamw", "adam", "sgd", "lion", "adagrad", "lamb"])]


# Families whose keys have no biases. A key's bias has a gradient that is 0 but for rounding, of which each order of additions sends another sign.
NO_KEY_BIAS = {"llama", "mistral", "t5"}
ONE_BIT = {"onebit-adam": ["--freeze-step", "1"], "onebit-lamb": ["--freeze-step", "1", "--coeff-beta", "0"],
           "zero-one-adam": ["--var-freeze-step", "1", "--var-update-scaler", "1"]}


def with_one_bit(rng, options):
    """Draws an optimizer whose second step sums momenta with a bit per element, in place of the one that was drawn."""
    kind = rng.choice(sorted(ONE_BIT))
    return replaced(options, "--optimizer", "--optimizer", kind, *ONE_BIT[kind])


def replaced(options, name, *words):
    """Returns the options with one option and its value replaced by other words."""
    at = options.index(name)
    return options[:at] + list(words) + options[at + 2:]


def partita(*words):
    return subprocess.run([str(word) for word in (harness.partita(), *words)], capture_output=True, text=True, timeout=600)


def refusal(done):
    """Returns the reason of a well-formed refusal, or None."""
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    if done.returncode != 1 or len(errors) != 1 or not LOCATED.match(errors[0]):
        return None
    return errors[0].split("error: ", 1)[1]


def ranks(mesh):
    return math.prod(int(part.split("=")[1]) for part in mesh.split(","))


def losses(log):
    with open(log, newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def write_tokens(path):
    rng = random.Random(7)
    path.write_bytes(b"".join(rng.randrange(60).to_bytes(2, "little") for _ in range(6000)))


def columns(family, rows):
    """Makes random columns for a model of test/Data/families: name, shape of a row, values. Masks have holes at the end of
    every fourth row, and every second token of a masked model has no label."""
    rng = random.Random(7)
    tokens, decoded = 8, 4
    if family == "vit":
        yield "pixel_values", (3, 16, 16), [rng.gauss(0, 1) for _ in range(rows * 3 * 16 * 16)]
        yield "labels", (), [rng.randrange(10) for _ in range(rows)]
        return
    yield "input_ids", (tokens,), [rng.randrange(2, 60) for _ in range(rows * tokens)]
    if family not in ("gpt2", "llama", "gpt_neox"):
        yield "attention_mask", (tokens,), [int(i < 6 or row % 4 > 0) for row in range(rows) for i in range(tokens)]
    if family == "bert":
        yield "token_type_ids", (tokens,), [i // 4 for _ in range(rows) for i in range(tokens)]
    if family in ("bert", "roberta"):
        yield "labels", (tokens,), [rng.randrange(60) if i % 2 else -100 for _ in range(rows) for i in range(tokens)]
    if family == "t5":
        yield "labels", (decoded,), [rng.randrange(2, 60) for _ in range(rows * decoded)]


def write_columns(path, family, rows):
    header, blob = {}, b""
    for name, shape, values in columns(family, rows):
        kind, letter = ("F32", "f") if isinstance(values[0], float) else ("I64", "q")
        data = array.array(letter, values).tobytes()
        header[name] = {"dtype": kind, "shape": [rows, *shape], "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def train(model, mesh, options, data, folder):
    """Runs three steps of a program; its log is FOLDER/log.csv."""
    folder.mkdir(exist_ok=True)
    done = partita("compile", model, *options, "--mesh", mesh, "-o", folder / "program")
    if done.returncode == 0:
        done = partita("run", folder / "program", "-n", ranks(mesh), "--data", data, "--init", "seed:5", "--steps", "3",
                       "--lr", "0.05", "--log", folder / "log.csv")
    return done


def compare_runs(programs, data, tolerance):
    """Compares two programs, each (model, mesh, options, folder): returns None if their losses have the same bits, the
    difference if it exceeds `tolerance`, else ""."""
    found = []
    for model, mesh, options, folder in programs:
        done = train(model, mesh, options, data, folder)
        if done.returncode != 0:
            return f"{folder.name}: {done.stderr.strip().splitlines()[-1:]}"
        found.append(losses(folder / "log.csv"))
    expected, got = found
    if len(expected) != len(got) or not all(abs(a - b) <= tolerance * max(abs(a), 1e-3) for a, b in zip(expected, got)):
        return f"losses {got} where {programs[0][1]} has {expected}"
    return None if got == expected else ""
