#!/usr/bin/env python3
"""Makes the goldens of this folder: what PyTorch computes, in float32 and in float64, from the same
initial weights and the same data as Partita's programs. See README.md for the format.

    make_goldens.py [NAME...]       needs the environment of tools/python/make_venv

The tests compare against the JSON files and need no PyTorch.
"""

import argparse
import hashlib
import json
import math
import os
import sys

import numpy
import torch
from transformers import GPT2Config, GPT2LMHeadModel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "python"))
import partita_data  # noqa: E402
import partita_init  # noqa: E402

TEXT = "/usr/share/common-licenses/GPL-3"  # Debian's base-files: on every system
INIT_SEED = 1
DATA_SEED = 1
ADAMW = {"lr": 3e-4, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.1}
SGD = {"lr": 0.1}
SAMPLES = 8
IGNORED = -100  # label of a masked token

TINY = dict(layers=2, hidden=32, heads=2, vocab=64, positions=32)
SMALL = dict(layers=4, hidden=128, heads=4, vocab=256, positions=128)
MEDIUM = dict(layers=6, hidden=384, heads=6, vocab=256, positions=256)
# What the two exporters call the tied embedding; the name decides the initial values.
TIED = {"torchscript": "transformer.wte.weight", "dynamo": "lm_head.weight"}


def build_model(shape, dtype):
    config = GPT2Config(
        vocab_size=shape["vocab"], n_positions=shape["positions"], n_embd=shape["hidden"],
        n_layer=shape["layers"], n_head=shape["heads"], use_cache=False, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager")
    return GPT2LMHeadModel(config).eval().to(dtype)


def onnx_names(model, exporter):
    """{name in the ONNX file: parameter}; PyTorch lists the tied embedding once, as wte."""
    return {TIED[exporter] if name == TIED["torchscript"] else name: parameter
            for name, parameter in model.named_parameters()}


def initialize(parameters, values):
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.tensor(values[name]))


def seeded_values(shape, exporter):
    with torch.device("meta"):
        model = build_model(shape, torch.float32)
    return {name: partita_init.gpt2_parameter(INIT_SEED, name, tuple(parameter.shape))
            for name, parameter in onnx_names(model, exporter).items()}


def backward(model, micro_batches):
    """Gradients of the sum of the losses of all unmasked tokens over their number, in all
    micro-batches together; returns that mean loss."""
    count = sum(int((labels != IGNORED).sum()) for _, labels in micro_batches)
    total = 0.0
    for ids, labels in micro_batches:
        logits = model(torch.from_numpy(ids)).logits
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), torch.from_numpy(labels).reshape(-1),
            ignore_index=IGNORED, reduction="sum") / count
        loss.backward()
        total += loss.item()
    return total


def make_optimizer(kind, parameters):
    if kind == "sgd":
        return torch.optim.SGD(parameters.values(), lr=SGD["lr"])
    decayed = [p for p in parameters.values() if p.ndim >= 2]
    others = [p for p in parameters.values() if p.ndim < 2]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": ADAMW["weight_decay"]},
         {"params": others, "weight_decay": 0.0}],
        lr=ADAMW["lr"], betas=(ADAMW["beta1"], ADAMW["beta2"]), eps=ADAMW["epsilon"])


def train(shape, exporter, values, dtype, kind, batches):
    """(loss before each update, gradients of the first step, parameters after the last one)."""
    model = build_model(shape, dtype)
    parameters = onnx_names(model, exporter)
    initialize(parameters, values)
    optimizer = make_optimizer(kind, parameters)
    losses, gradients = [], None
    for micro_batches in batches:
        optimizer.zero_grad(set_to_none=True)
        losses.append(backward(model, micro_batches))
        if gradients is None:
            gradients = {name: p.grad.double().numpy().copy() for name, p in parameters.items()}
        optimizer.step()
    return losses, gradients, {n: p.detach().double().numpy() for n, p in parameters.items()}


def summarize(tensors32, tensors64):
    """Per tensor: shape, norms, largest element, and a few elements as [index, float32, float64]:
    evenly spread ones and the largest."""
    summary = {}
    for name, exact in tensors64.items():
        flat32, flat64 = tensors32[name].ravel(), exact.ravel()
        spread = [i * (flat64.size - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
        indices = sorted({*spread, int(numpy.abs(flat64).argmax())})
        summary[name] = {
            "shape": list(exact.shape),
            "norm_float32": math.sqrt(float(numpy.dot(flat32, flat32))),
            "norm_float64": math.sqrt(float(numpy.dot(flat64, flat64))),
            "max": float(numpy.abs(flat64).max()),
            "samples": [[i, float(flat32[i]), float(flat64[i])] for i in indices],
        }
    return summary


def compare_kinds(shape, exporter, values, batches, kind):
    single = train(shape, exporter, values, torch.float32, kind, batches)
    double = train(shape, exporter, values, torch.float64, kind, batches)
    run = {"steps": len(batches), "options": ADAMW if kind == "adamw" else SGD,
           "loss_float32": single[0], "loss_float64": double[0],
           "parameters": summarize(single[2], double[2])}
    return run, summarize(single[1], double[1])


def text_golden(shape, exporter, onnx, batch, sequence, accumulate=1, adamw_steps=50, sgd_steps=5):
    """`--data text:GPL-3 --seed 1 --init seed:1`."""
    values = seeded_values(shape, exporter)
    with open(TEXT, "rb") as file:
        text = file.read()
    order = partita_data.Windows(numpy.frombuffer(text, numpy.uint8), sequence, DATA_SEED)
    batches = [[order.batch(step, micro, batch, accumulate) for micro in range(accumulate)]
               for step in range(adamw_steps)]
    golden = {"onnx": onnx, "model": shape, "batch": batch, "sequence": sequence,
              "accumulate": accumulate, "init_seed": INIT_SEED,
              "data": {"file": TEXT, "sha256": hashlib.sha256(text).hexdigest(),
                       "seed": DATA_SEED, "first_batch": batches[0][0][0].tolist()}}
    golden["adamw"], golden["gradients"] = compare_kinds(shape, exporter, values, batches, "adamw")
    golden["sgd"], _ = compare_kinds(shape, exporter, values, batches[:sgd_steps], "sgd")
    return golden


def file_weights(path):
    import onnx
    from onnx import numpy_helper
    tensors = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    return {n: v for n, v in tensors.items() if n.startswith(("transformer.", "lm_head."))}


def tiny_tokens():
    """Four windows of 8 + 1 tokens. Token 0 is the one that is masked as a label: the windows, and
    so any micro-batches and ranks, have 8, 1, 0 and 5 labels that are not it."""
    tokens = numpy.random.default_rng(7).integers(1, TINY["vocab"], 33)
    tokens[9:16] = 0
    tokens[17:25] = 0
    tokens[[26, 29, 30]] = 0
    return tokens.astype(numpy.int64)


def tiny_golden():
    """`--data uint16:FILE` of the golden's tokens, batch 4 x 8, no --init: one step is one epoch, so
    the order of the data does not matter. For the tiny models, whose weights are in their files:
    logits, and losses and gradients as they are and with `--ignore-index 0`."""
    values = file_weights(os.path.join(HERE, "..", "Data", "gpt2_tiny_torchscript_eager.onnx"))
    tokens = tiny_tokens()
    ids, labels = tokens[:-1].reshape(4, 8), tokens[1:].reshape(4, 8)
    masked = numpy.where(labels == 0, IGNORED, labels)
    golden = {"model": TINY, "onnx": "test/Data/gpt2_tiny_*.onnx", "batch": 4,
              "sequence": 8, "tokens": tokens.tolist()}
    model = build_model(TINY, torch.float64)
    initialize(onnx_names(model, "torchscript"), values)
    with torch.no_grad():
        golden["logits_float64"] = model(torch.from_numpy(ids)).logits.tolist()
    for key, target in (("unmasked", labels), ("masked", masked)):
        full = [(ids, target)]
        halves = [(ids[:2], target[:2]), (ids[2:], target[2:])]
        one, gradients = compare_kinds(TINY, "torchscript", values, [full] * 3, "adamw")
        two, _ = compare_kinds(TINY, "torchscript", values, [halves] * 3, "adamw")
        assert numpy.allclose(one["loss_float64"], two["loss_float64"], rtol=1e-12, atol=0)
        golden[key] = {"adamw": one, "gradients": gradients}
    return golden


GOLDENS = {
    "gpt2_tiny": tiny_golden,
    "gpt2_4x128_dynamo": lambda: text_golden(
        SMALL, "dynamo", "examples/01_gpt2_data_parallel/model.onnx", batch=8, sequence=64),
    "gpt2_4x128_torchscript": lambda: text_golden(
        SMALL, "torchscript", "test/Data/gpt2_4x128_torchscript_*.onnx", batch=8, sequence=64),
    "gpt2_4x128_accumulate2": lambda: text_golden(
        SMALL, "dynamo", "examples/01_gpt2_data_parallel/model.onnx", batch=4, sequence=64,
        accumulate=2, adamw_steps=10),
    "gpt2_6x384_dynamo": lambda: text_golden(
        MEDIUM, "dynamo", "test/Data/gpt2_6x384_dynamo_*.onnx", batch=4, sequence=64),
    "gpt2_6x384_torchscript": lambda: text_golden(
        MEDIUM, "torchscript", "test/Data/gpt2_6x384_torchscript_*.onnx", batch=4, sequence=64),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(GOLDENS))
    names = parser.parse_args().names or list(GOLDENS)
    torch.set_num_threads(1)  # one order of summation, whatever the machine
    for name in names:
        golden = {"made_by": f"torch {torch.__version__.split('+')[0]}", **GOLDENS[name]()}
        path = os.path.join(HERE, name + ".json")
        with open(path, "w") as file:
            json.dump(golden, file, separators=(",", ":"))
            file.write("\n")
        print(f"{path}: {os.path.getsize(path)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
