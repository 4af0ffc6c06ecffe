#!/usr/bin/env python3
"""Exports a Hugging Face GPT2LMHeadModel to ONNX, as a user of PyTorch would.

    export_gpt2.py --layers 4 --hidden 128 --heads 4 --vocab 256 --positions 128 \\
                   --exporter dynamo --attention sdpa --weights strip -o model.onnx

Input `input_ids` (int64, batch x sequence, both dynamic), output `logits`. No key-value cache, no
dropout. Needs the environment of make_venv.

--exporter torchscript   torch.onnx.export(dynamo=False), opset 17
--exporter dynamo        torch.onnx.export(dynamo=True), the opset that this exporter defaults to
--fold                   torchscript with its constant folding, which replaces the transposed tied
                         embedding at the head by a second tensor, onnx::MatMul_<n>. Without it the
                         tied embedding stays one tensor and every name is the module's own.

--weights keep           in the file
--weights external       in FILE.data beside it
--weights strip          none: each float initializer of more than one element keeps its name, type
                         and shape and loses its value. Such a file is how models for tests and
                         benchmarks are committed; `partita run` then needs --init.
--weights fake           as strip, but the model is exported without ever allocating its weights
                         (dynamo only): the way to a 96-layer GPT-3 shape on a laptop.

Weights are random, and no two tensors are equal: both exporters merge initializers of equal value,
so exporting a freshly built model, all zero biases and unit LayerNorm weights, ties parameters of
different layers together for good.
"""

import argparse
import contextlib
import os
import re
import sys
import warnings

import numpy
import onnx
import torch
from transformers import GPT2Config, GPT2LMHeadModel

FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16,
          onnx.TensorProto.DOUBLE}
# Every field of a TensorProto that carries or locates a value.
VALUE_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "raw_data",
                "external_data", "data_location")


class LogitsOnly(GPT2LMHeadModel):
    """The model with one input and one output. A subclass, not a wrapper: names do not change."""

    def forward(self, input_ids):
        return super().forward(input_ids=input_ids, use_cache=False).logits


def build_model(args):
    config = GPT2Config(
        vocab_size=args.vocab, n_positions=args.positions, n_embd=args.hidden,
        n_layer=args.layers, n_head=args.heads, use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, attn_implementation=args.attention)
    model = LogitsOnly(config).eval()
    if args.weights != "fake":
        generator = torch.Generator().manual_seed(args.seed)
        for name, parameter in model.named_parameters():
            mean = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
            parameter.data.normal_(mean, 0.02, generator=generator)
    return model


def export_torchscript(model, ids, path, fold):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracer warnings about the shapes of dynamic dimensions
        axes = {0: "batch", 1: "sequence"}
        torch.onnx.export(model, (ids,), path, dynamo=False, opset_version=17,
                          do_constant_folding=fold, input_names=["input_ids"],
                          output_names=["logits"], dynamic_axes={"input_ids": axes, "logits": axes})
    return onnx.load(path)


def export_dynamo(model, ids, fake):
    program = torch.onnx.export(model, (ids,), dynamo=True, verbose=False, optimize=not fake,
                                input_names=["input_ids"], output_names=["logits"],
                                dynamic_shapes=({0: "batch", 1: "sequence"},))
    if fake:
        replace_fake_values(program.model)
        program.optimize()
    return program.model_proto


def replace_fake_values(model):
    """Allows a graph exported under FakeTensorMode to be optimized and serialized. Vectors get
    random values, since the optimizer reads them (it drops zero biases and merges equal ones).
    Matrices become references to a file that does not exist, which strip_weights then removes."""
    import onnx_ir as ir
    random = numpy.random.default_rng(1)
    for value in model.graph.initializers.values():
        tensor = value.const_value
        if not isinstance(getattr(tensor, "raw", None), torch._subclasses.FakeTensor):
            continue
        if len(tensor.shape) < 2:
            values = random.standard_normal(tuple(tensor.shape), dtype=numpy.float32)
            value.const_value = ir.tensor(values, name=value.name)
        else:
            value.const_value = ir.ExternalTensor("none", 0, tensor.nbytes, tensor.dtype,
                                                  shape=tensor.shape, name=value.name)


def forget_paths(model):
    """Shortens the paths in the stack traces that the exporter leaves in the nodes' metadata, so
    that the file does not depend on the folder it was made in."""
    for node in model.graph.node:
        for entry in node.metadata_props:
            entry.value = re.sub(r'File "[^"]*/(?:site-packages/)?([^"/]*/)?([^"/]*)"',
                                 r'File "\1\2"', entry.value)


def strip_weights(model, keep=()):
    """Removes the values of the model's weights but for those named in `keep`, keeping names, types and
    shapes. Also removes exporters' debugging data (metadata, stack traces), which is most of the rest."""
    for tensor in model.graph.initializer:
        elements = 1
        for extent in tensor.dims:
            elements *= extent
        if tensor.name not in keep and tensor.data_type in FLOATS and len(tensor.dims) >= 1 and elements > 1:
            for field in VALUE_FIELDS:
                tensor.ClearField(field)
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output]:
        value.ClearField("metadata_props")
        value.ClearField("doc_string")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in [("layers", 4), ("hidden", 128), ("heads", 4), ("vocab", 256),
                        ("positions", 128), ("seed", 1)]:
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--attention", choices=["eager", "sdpa"], default="sdpa")
    parser.add_argument("--exporter", choices=["torchscript", "dynamo"], default="dynamo")
    parser.add_argument("--fold", action="store_true")
    parser.add_argument("--weights", choices=["keep", "external", "strip", "fake"], default="keep")
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    if args.exporter == "torchscript" and args.weights == "fake":
        parser.error("--weights fake needs --exporter dynamo: tracing runs the model")
    if args.exporter == "dynamo" and args.fold:
        parser.error("--fold belongs to --exporter torchscript")

    fake = (torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
            if args.weights == "fake" else contextlib.nullcontext())
    with fake:
        model = build_model(args)
        ids = torch.zeros((2, min(16, args.positions)), dtype=torch.int64)
        if args.exporter == "torchscript":
            proto = export_torchscript(model, ids, args.output, args.fold)
        else:
            proto = export_dynamo(model, ids, args.weights == "fake")

    forget_paths(proto)
    if args.weights in ("strip", "fake"):
        strip_weights(proto)
    if args.weights == "external":
        data = os.path.basename(args.output) + ".data"
        if os.path.exists(args.output + ".data"):
            os.remove(args.output + ".data")
        onnx.save(proto, args.output, save_as_external_data=True, location=data,
                  all_tensors_to_one_file=True, size_threshold=1024)
    else:
        onnx.save(proto, args.output)
    print(f"{args.output}: {os.path.getsize(args.output)} bytes, {len(proto.graph.node)} nodes, "
          f"opset {proto.opset_import[0].version}", file=sys.stderr)


if __name__ == "__main__":
    main()
