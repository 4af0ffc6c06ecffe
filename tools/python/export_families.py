#!/usr/bin/env python3
"""Exports small Transformers of Hugging Face, one per family, to ONNX with either of PyTorch's
exporters, as a user would: the library's own code, its default attention, its own input names.

    export_families.py --exporter torchscript --out DIR [--training] [--loss] [--fold] [--layers N] [FAMILY...]

Families: those of FAMILIES in family_models.py, or those named, of all there. All dimensions of inputs but
those of pixels are dynamic. The weights are stripped as in export_gpt2.py: a file declares its
parameters and holds the values of constants only. Needs the environment of make_venv.
"""

import argparse
import inspect
import os
import sys
import tempfile
import warnings

import onnx
import torch
import transformers

import family_models
from export_gpt2 import VALUE_FIELDS
from family_models import ALL, FAMILIES, VOCAB

LAYER_SETTINGS = ["num_hidden_layers", "num_layers", "n_layer", "n_layers"]  # a configuration has one of them


def logits_only(cls, names, loss=False):
    """Returns the model with the file's inputs and one output, or with labels and the loss too. A subclass,
    not a wrapper: parameters keep their names."""
    names = names + ["labels"] * loss
    arguments = ", ".join(names)
    keywords = ", ".join(f"{name}={name}" for name in names)
    cached = "use_cache" in inspect.signature(cls.forward).parameters
    options = ", use_cache=False" if cached else ""
    output = "pooler_output" if "CLIP" in cls.__name__ else "logits"
    scope = {"cls": cls}
    exec(f"def forward(self, {arguments}):\n"
         f"    made = cls.forward(self, {keywords}{options})\n"
         f"    return {'made.loss, ' * loss}made.{output}", scope)
    return type("LogitsOnly", (cls,), {"forward": scope["forward"]})


def build_model(family, dtype=torch.float32, sizes=(), training=False, loss=False):
    """Builds the model with random weights, no two tensors equal: exporters merge equal initializers. `sizes`
    are settings of its configuration other than those above. For training, with every dropout that the
    configuration names, and with attention written out: exporters lose the training mode, or all, of the
    fused one's dropout."""
    cls, config, settings, inputs = ALL[family][:4]
    settings = dict(settings, **dict(sizes))
    if training:
        settings = {key: 0.1 if value == 0.0 and isinstance(value, float) else value
                    for key, value in settings.items()}
        settings["attn_implementation"] = "eager"
    config = getattr(transformers, config)(**settings)
    torch.manual_seed(1)
    model = logits_only(getattr(transformers, cls), inputs, loss)(config).train(training)
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data.normal_(0.0, 0.02, generator=generator)
    return model.to(dtype)


def example_inputs(family, names, batch=2, sequence=7):
    """Returns inputs to trace with. No two sizes are equal, so that no dimension is mistaken for another."""
    generator = torch.Generator().manual_seed(2)
    made = []
    for name in names:
        length = sequence + 2 if "decoder" in dynamic_axes(family, name).get(1, "") else sequence
        if name == "pixel_values":
            made.append(torch.randn((batch, 3, 16, 16), generator=generator))
        elif name == "attention_mask":
            made.append(torch.ones((batch, length), dtype=torch.int64))
        elif name == "position_ids":
            made.append(torch.arange(length).expand(batch, length).contiguous())
        elif name == "token_type_ids":
            made.append(torch.zeros((batch, length), dtype=torch.int64))
        elif name == "labels" and family == "vit":
            made.append(torch.randint(0, 10, (batch,), generator=generator))
        else:
            made.append(torch.randint(2, VOCAB, (batch, length), generator=generator))
    return tuple(made)


def dynamic_axes(family, name):
    """Returns the dynamic axes of an input; labels have those of the input that they label."""
    labelled = {"vit": "pixel_values", "t5": "decoder_input_ids"}.get(family, "input_ids")
    return family_models.dynamic_axes(labelled if name == "labels" else name)


def export_torchscript(model, axes, outputs, inputs, fold):
    mode = torch.onnx.TrainingMode.PRESERVE  # the model's own
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # tracer warnings about the shapes of dynamic dimensions
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(model, inputs, path, dynamo=False, opset_version=17,
                          do_constant_folding=fold, input_names=list(axes), output_names=outputs,
                          training=mode, dynamic_axes=axes)
        return onnx.load(path)


def export_dynamo(model, axes, outputs, inputs, fold):
    """Does what torch.onnx.export(dynamo=True) does, with one exception unless `fold`: its optimizer
    transposes matrices of up to 8192 elements, which all of these models have and no real one does."""
    import onnxscript.optimizer
    import onnxscript.rewriter.onnx_fusions
    program = torch.onnx.export(model, inputs, dynamo=True, verbose=False, optimize=fold,
                                input_names=list(axes), output_names=outputs,
                                dynamic_shapes=tuple(axes.values()))
    if fold:
        return program.model_proto
    onnxscript.optimizer.optimize_ir(
        program.model, should_fold=lambda node: False if node.op_type == "Transpose" else None)
    onnxscript.rewriter.onnx_fusions.fuse(program.model)
    return program.model_proto


def strip(proto, parameters):
    """Removes the values of the parameters, of which only names and shapes are needed, and exporters'
    debugging data. Buffers (tables of positions, frequencies) are kept."""
    for tensor in proto.graph.initializer:
        elements = 1
        for extent in tensor.dims:
            elements *= extent
        if tensor.name in parameters and elements > 1:
            for field in VALUE_FIELDS:
                tensor.ClearField(field)
    for item in [*proto.graph.node, *proto.graph.value_info, *proto.graph.input,
                 *proto.graph.output, *proto.graph.initializer]:
        item.ClearField("doc_string")
        item.ClearField("metadata_props")
    proto.graph.ClearField("value_info")
    for function in proto.functions:
        for node in function.node:
            node.ClearField("doc_string")
            node.ClearField("metadata_props")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(ALL))
    parser.add_argument("--exporter", choices=["torchscript", "dynamo"], required=True)
    parser.add_argument("--fold", action="store_true",
                        help="the exporter's constant folding, as by default, which writes transposed "
                        "matrices under names of their own; weights stay in the file: "
                        "FAMILY_folded_EXPORTER")
    parser.add_argument("--training", action="store_true",
                        help="dropout of 0.1 everywhere, in training mode: FAMILY_training_EXPORTER")
    parser.add_argument("--loss", action="store_true",
                        help="with labels as an input and the loss as an output: FAMILY_loss_EXPORTER")
    parser.add_argument("--keep", action="store_true", help="keep the weights in the files")
    parser.add_argument("--size", action="append", default=[], metavar="SETTING=N",
                        help="another size of the configuration, such as hidden_size=128")
    parser.add_argument("--layers", type=int, metavar="N",
                        help="layers of the model, of each side of an encoder-decoder")
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    if not os.path.isdir(args.out):
        parser.error(f"--out: there is no folder '{args.out}'")
    sizes = [(name, int(value)) for name, value in (size.split("=") for size in args.size)]
    for family in args.families or FAMILIES:
        if family not in ALL:
            parser.error(f"no family '{family}', there are {', '.join(ALL)}")
        names = ALL[family].inputs + ["labels"] * args.loss
        deeper = [(name, args.layers) for name in LAYER_SETTINGS if args.layers and name in ALL[family].settings]
        axes = {name: dynamic_axes(family, name) for name in names}
        outputs, inputs = ["loss"] * args.loss + ["logits"], example_inputs(family, names)
        model = build_model(family, sizes=sizes + deeper, training=args.training, loss=args.loss)
        if args.exporter == "torchscript":
            proto = export_torchscript(model, axes, outputs, inputs, args.fold)
        else:
            proto = export_dynamo(model, axes, outputs, inputs, args.fold)
        parameters = dict(model.named_parameters(remove_duplicate=False))
        lost = sorted(set(parameters) - {tensor.name for tensor in proto.graph.initializer})
        if not args.keep:
            strip(proto, {} if args.fold else parameters)
        mode = "_training" * args.training + "_loss" * args.loss + "_folded" * args.fold
        path = os.path.join(args.out, f"{family}{mode}_{args.exporter}.onnx")
        onnx.save(proto, path)
        print(f"{path}: {os.path.getsize(path)} bytes, {len(proto.graph.node)} nodes, opset "
              f"{proto.opset_import[0].version}, without {', '.join(lost) or 'nothing'}",
              file=sys.stderr)


if __name__ == "__main__":
    main()
