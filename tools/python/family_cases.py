#!/usr/bin/env python3
"""Exports families in several ways and trains them with PyTorch, for try_families.py.

    family_cases.py --out DIR [--ways WAY,...] FAMILY...

DIR/FAMILY gets data.safetensors (a column per input, masks with holes), expected.safetensors (logits and parameters after
three SGD steps in float64), case.json (dimensions, objective, learning rate, losses, and the error of PyTorch in float32)
and, per way, WAY.onnx with its weights (and WAY.eager if its attention is not the library's default), or WAY.error with
the exporter's message (reference.error where the library fails). Files that are there already stay. Needs an environment of make_venv.
"""

import argparse
import json
import os
import sys
import warnings

import numpy
import onnx
import torch
import transformers

import torch_models
from export_families import example_inputs, logits_only
from family_models import MATRIX, SHAPES, VOCAB, dims, dynamic_axes, objective

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Golden"))
from family_files import write_safetensors  # noqa: E402

BATCH, SEQUENCE, DECODER, STEPS = 4, 8, 6, 3
IGNORED = -100
SINGLE = 1e-6  # error of float32, if it is less or unknown
STRIDE = 0.03  # relative length of the first update: lr = STRIDE |parameters| / |gradients|
NEWEST = torch.onnx._constants.ONNX_MAX_OPSET


def build(family, dtype, **settings):
    """Builds the model with random weights, those of norms around one, no two tensors equal. Mamba's decays stay near
    their initial values."""
    name, config, usual, inputs = MATRIX[family][:4]
    if config is not None and not hasattr(transformers, name):
        raise LookupError(f"transformers {transformers.__version__} has no {name}")
    torch.manual_seed(1)
    if config is None:
        model = getattr(torch_models, name)()
    else:
        config = getattr(transformers, config)(**{**usual, **settings})
        model = logits_only(getattr(transformers, name), inputs)(config)
    model.eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if not parameter.requires_grad:  # tables of sines, whose values import recognizes
                continue
            module = model.get_submodule(name.rpartition(".")[0])
            if "Norm" in type(module).__name__ and name.endswith("weight"):
                parameter.copy_(1.0 + 0.1 * noise)
            elif name.endswith("A_log"):
                parameter.add_(0.1 * noise)
            else:
                parameter.copy_(noise * (0.1 if parameter.ndim < 2 else 0.2))
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None  # it keeps a row's gradient at zero; only dynamo records it
    return model.to(dtype)


def make_data(family):
    """Makes columns of data. With an attention mask two samples end early, followed by token 1 without a label."""
    inputs, random = MATRIX[family].inputs, numpy.random.default_rng(3)
    lengths = numpy.array([SEQUENCE, 5, SEQUENCE, 3] if "attention_mask" in inputs else [SEQUENCE] * BATCH)
    inside = numpy.arange(SEQUENCE)[None] < lengths[:, None]
    tokens = random.integers(2, VOCAB - 2, (BATCH, SEQUENCE + 1))
    made = {"attention_mask": inside.astype(numpy.int64),
            "input_ids": numpy.where(inside, tokens[:, :-1], 1),
            "token_type_ids": (numpy.arange(SEQUENCE)[None] >= 4) * numpy.ones((BATCH, 1), int),
            "position_ids": numpy.arange(SEQUENCE)[None] * numpy.ones((BATCH, 1), int),
            "decoder_input_ids": random.integers(2, VOCAB, (BATCH, DECODER))}
    for name, shape in SHAPES.items():
        made[name] = random.standard_normal((BATCH, *shape)).astype(numpy.float32)
    return {name: made[name] for name in inputs}, inside, random


def make_labels(family, logits, inside, random):
    """Makes random labels; positions after a sample's end are ignored."""
    kind, shape = objective(family), tuple(logits.shape)
    if kind == "mse":
        return {"labels": random.standard_normal(shape).astype(numpy.float32)}
    if kind == "binary":
        return {"labels": numpy.where(inside, random.integers(0, 2, shape), IGNORED)}
    labels = random.integers(2, shape[-1], shape[:-1])
    if labels.ndim == 2 and labels.shape == inside.shape:
        labels = numpy.where(inside, labels, IGNORED)
    if kind == "masked":
        labels[0, 2] = IGNORED
    return {"labels": labels}


def loss_of(family, logits, labels):
    kind = objective(family)
    if kind == "mse":
        return torch.nn.functional.mse_loss(logits, labels["labels"].to(logits.dtype))
    flat = labels["labels"].reshape(-1)
    if kind == "binary":
        kept = flat != IGNORED
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits.reshape(-1)[kept], flat[kept].to(logits.dtype))
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), flat, ignore_index=IGNORED)


def train(family, data, labels, dtype, rate=None):
    """Returns (loss before each step, logits after the last, parameters by all of their names, learning rate)."""
    model = build(family, dtype)
    inputs = [torch.tensor(column) for column in data.values()]
    inputs = [column.to(dtype) if column.is_floating_point() else column for column in inputs]
    labels = {name: torch.tensor(column) for name, column in labels.items()}
    losses = []
    for _ in range(STEPS):
        loss = loss_of(family, model(*inputs), labels)
        model.zero_grad()
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            trained = [parameter for parameter in model.parameters() if parameter.grad is not None]
            if rate is None:
                norm = [sum((x.double() ** 2).sum() for x in tensors) ** 0.5
                        for tensors in (trained, [parameter.grad for parameter in trained])]
                rate = float(f"{STRIDE * norm[0] / norm[1]:.2g}")
            for parameter in trained:
                parameter -= rate * parameter.grad
    with torch.no_grad():
        logits = model(*inputs).double().numpy()
    named = {name: parameter.detach().double().numpy()
             for name, parameter in model.named_parameters(remove_duplicate=False)}
    return losses, logits, named, rate


def make_reference(family, folder):
    data, inside, random = make_data(family)
    with torch.no_grad():
        logits = build(family, torch.float32)(*[torch.tensor(column) for column in data.values()])
    labels = make_labels(family, logits, inside, random)
    losses32, logits32, single, rate = train(family, data, labels, torch.float32)
    try:
        losses, logits, parameters, _ = train(family, data, labels, torch.float64, rate)
    except RuntimeError:  # masks of CLIP and MPT exist only in float32
        losses, logits, parameters = losses32, logits32, single
    write_safetensors(os.path.join(folder, "data.safetensors"),
                      {name: column if column.dtype == numpy.float32 else column.astype(numpy.int64)
                       for name, column in {**data, **labels}.items()})
    write_safetensors(os.path.join(folder, "expected.safetensors"),
                      {"logits": logits, **{"parameter:" + name: value for name, value in parameters.items()}})
    sizes = {"batch": BATCH, "sequence": SEQUENCE, "decoder_sequence": DECODER}
    error = max(numpy.abs(logits32 - logits).max() / numpy.abs(logits).max(),
                *(abs(a - b) / abs(b) for a, b in zip(losses32, losses)))
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump({"dims": {name: sizes[name] for name in dims(family)},
                   "objective": objective(family), "lr": rate, "losses": losses,
                   "single": max(float(error), SINGLE),
                   "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}, file)


def example(family):
    """Returns inputs to trace with; their sizes differ from each other and from those of the data."""
    made = []
    for name in MATRIX[family].inputs:
        if name in SHAPES:
            generator = torch.Generator().manual_seed(2)
            made.append(torch.randn((2, *SHAPES[name]), generator=generator))
        else:
            made += example_inputs(family, [name])
    return tuple(made)


def torchscript(folded):
    def export(model, axes, inputs, path):
        torch.onnx.export(model, inputs, path, dynamo=False, opset_version=17, do_constant_folding=folded,
                          input_names=list(axes), output_names=["logits"], dynamic_axes=axes)
    return export


def dynamo(**options):
    def export(model, axes, inputs, path):
        torch.onnx.export(model, inputs, dynamo=True, verbose=False, input_names=list(axes),
                          output_names=["logits"], dynamic_shapes=tuple(axes.values()),
                          **options).save(path)
    return export


WAYS = {
    "torchscript": torchscript(False),
    "torchscript_folded": torchscript(True),
    "dynamo": dynamo(),
    "dynamo_unoptimized": dynamo(optimize=False),
    "dynamo_18": dynamo(opset_version=18),
    "dynamo_newest": dynamo(opset_version=NEWEST),
}


def first_words(error):
    """Returns an exporter's message in one line; for dynamo, that of the innermost cause."""
    while isinstance(error, torch.onnx.errors.OnnxExporterError) and error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:300]


def write_error(folder, what, error):
    with open(os.path.join(folder, what + ".error"), "w") as file:
        file.write(first_words(error) + "\n")


def export(family, way, folder):
    """Exports with the library's default attention; if an exporter cannot export that, with attention written out, which
    WAY.eager records."""
    path, names = os.path.join(folder, way), MATRIX[family].inputs
    attentions = [{}] if MATRIX[family].config is None else [{}, {"attn_implementation": "eager"}]
    errors = []
    for settings in attentions:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                WAYS[way](build(family, torch.float32, **settings), {name: dynamic_axes(name) for name in names},
                          example(family), path + ".partial")
            onnx.load(path + ".partial", load_external_data=False)
        except Exception as error:  # exporters raise any type
            errors.append(error)
            continue
        if settings:
            open(path + ".eager", "w").close()
        os.replace(path + ".partial", path + ".onnx")
        return
    write_error(folder, way, errors[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="+", choices=list(MATRIX), metavar="FAMILY")
    parser.add_argument("--ways", default=",".join(WAYS), metavar="WAY,...", help=", ".join(WAYS))
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    ways = args.ways.split(",")
    for way in ways:
        if way not in WAYS:
            parser.error(f"no way '{way}', there are {', '.join(WAYS)}")
    torch.set_num_threads(1)
    for family in args.families:
        folder = os.path.join(args.out, family)
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(os.path.join(folder, "case.json")):
            print(family, "reference", flush=True)
            try:
                make_reference(family, folder)
            except Exception as error:
                write_error(folder, "reference", error)
                continue
        for way in ways:
            if not any(os.path.exists(os.path.join(folder, way + end)) for end in (".onnx", ".error")):
                print(family, way, flush=True)
                export(family, way, folder)


if __name__ == "__main__":
    main()
