#!/usr/bin/env python3
"""Makes families.json and families/: what PyTorch computes of the models of
tools/python/export_families.py, in float32 and in float64. Needs the environment of
tools/python/make_venv; README.md says what the files hold, family_files.py makes weights and data
out of them again, without PyTorch.

    make_families.py [FAMILY...]      others keep what the files have of them
"""

import json
import os
import sys

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "python"))
import export_families  # noqa: E402
import family_files  # noqa: E402

PATH = os.path.join(HERE, "families.json")
BATCH, SEQUENCE, DECODER, STEPS, RATE = 4, 8, 6, 3, 0.1
IGNORED = -100
OBJECTIVE = {"bert": "masked", "roberta": "masked", "t5": "masked", "vit": "classification"}


def parameter_specs(model):
    """{name: shape, mean, std, other names}: scales around one, the rest around zero; no tensor is
    constant, so that a mistake in any of them shows."""
    scales = {id(module.weight) for module in model.modules()
              if "Norm" in type(module).__name__ and hasattr(module, "weight")}
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    specs = {}
    for name, parameter in model.named_parameters():
        scale = id(parameter) in scales
        std = 0.1 if parameter.ndim < 2 else 0.2
        specs[name] = {"shape": list(parameter.shape), "mean": 1.0 if scale else 0.0, "std": std,
                       "aliases": [other for other in names[id(parameter)] if other != name]}
    return specs


def make_data(family):
    """Columns of the data file. Where there is an attention mask, the second sample ends early and
    the last has one token only; what is not there is token 1 and no label."""
    random = numpy.random.default_rng(3)
    names = export_families.FAMILIES[family].inputs
    if "pixel_values" in names:
        return {"labels": random.integers(0, 10, BATCH).tolist()}
    lengths = [SEQUENCE] * BATCH
    if "attention_mask" in names:
        lengths[1], lengths[3] = 5, 1
    tokens = random.integers(2, export_families.VOCAB, (BATCH, SEQUENCE + 1))
    inside = numpy.arange(SEQUENCE)[None] < numpy.array(lengths)[:, None]
    data = {"input_ids": numpy.where(inside, tokens[:, :-1], 1)}
    if "attention_mask" in names:
        data["attention_mask"] = inside.astype(numpy.int64)
    if "token_type_ids" in names:
        data["token_type_ids"] = (numpy.arange(SEQUENCE)[None] >= 4) * numpy.ones((BATCH, 1), int)
    if family == "t5":
        labels = random.integers(2, export_families.VOCAB, (BATCH, DECODER))
        labels[2, 4:] = IGNORED
    elif OBJECTIVE.get(family) == "masked":
        labels = numpy.where((random.random((BATCH, SEQUENCE)) < 0.4) & inside, tokens[:, 1:],
                             IGNORED)
    else:
        labels = numpy.where(inside, tokens[:, 1:], IGNORED)
    data["labels"] = labels
    return {name: numpy.asarray(column).tolist() for name, column in data.items()}


def model_inputs(family, data, dtype):
    made = {}
    for name in export_families.FAMILIES[family].inputs:
        if name == "pixel_values":
            made[name] = torch.tensor(family_files.pixels(BATCH)).to(dtype)
        elif name == "decoder_input_ids":
            labels = torch.tensor(data["labels"])
            made[name] = torch.cat([torch.zeros((BATCH, 1), dtype=torch.int64), labels[:, :-1]], 1)
            made[name][made[name] == IGNORED] = 0
        elif name == "position_ids":
            made[name] = torch.arange(SEQUENCE).expand(BATCH, SEQUENCE)
        else:
            made[name] = torch.tensor(data[name])
    return made


def train(family, specs, data, dtype):
    """(logits before, loss before each SGD step, gradients of the first)."""
    model = export_families.build_model(family, dtype)
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None  # it only keeps a row's gradient at zero, and no file says so
    parameters = dict(model.named_parameters())
    values = family_files.weights(specs)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.tensor(values[name]))
    inputs, labels = model_inputs(family, data, dtype), torch.tensor(data["labels"]).reshape(-1)
    losses, first, gradients = [], None, None
    for _ in range(STEPS):
        logits = model(*inputs.values())
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels,
                                                 ignore_index=IGNORED)
        model.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if first is None:
            first = logits.detach().double().numpy()
            gradients = {name: parameter.grad.double().numpy().copy()
                         for name, parameter in parameters.items()}
        with torch.no_grad():
            for parameter in parameters.values():
                parameter -= RATE * parameter.grad
    return first, losses, gradients


def make(family):
    model = export_families.build_model(family)
    specs, data = parameter_specs(model), make_data(family)
    logits32, losses32, gradients32 = train(family, specs, data, torch.float32)
    logits64, losses64, gradients64 = train(family, specs, data, torch.float64)
    errors = family_files.gradient_errors(gradients32, gradients64)
    family_files.write_safetensors(
        family_files.gradients_path(family),
        {name: value.astype(numpy.float32) for name, value in gradients64.items()})
    return {"objective": OBJECTIVE.get(family, "causal"), "batch": BATCH,
            "dims": {} if family == "vit" else
            {"sequence": SEQUENCE, **({"decoder_sequence": DECODER} if family == "t5" else {})},
            "lr": RATE, "parameters": specs, "data": data,
            "logits": {"shape": list(logits64.shape), "max": float(numpy.abs(logits64).max()),
                       "values": [float(f"{x:.9g}") for x in logits64.ravel()]},
            "loss_float32": losses32, "loss_float64": losses64,
            "gradient_error_float32": float(f"{max(errors.values()):.3g}")}


def main():
    torch.set_num_threads(1)
    golden = json.load(open(PATH)) if os.path.exists(PATH) else {}
    golden["made_by"] = f"torch {torch.__version__.split('+')[0]}, transformers " \
                        f"{export_families.transformers.__version__}"
    for family in sys.argv[1:] or export_families.FAMILIES:
        golden[family] = make(family)
    with open(PATH, "w") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")
    print(f"{PATH}: {os.path.getsize(PATH)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
