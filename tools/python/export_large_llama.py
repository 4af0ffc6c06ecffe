#!/usr/bin/env python3
"""Exports a Hugging Face LlamaForCausalLM of any size with dynamo, without ever allocating its weights.

    export_large_llama.py --layers 96 --hidden 8192 --heads 64 --key-heads 8 --intermediate 28672 \\
                          --vocab 128256 --out DIR

Writes DIR/model.onnx and its weights as external data of several files, as such a model is distributed.
The matrices are holes in sparse files but for their first page, by which they differ: hundreds of
gigabytes by size, a few megabytes on the disk. The graph is as the exporter leaves it without its
optimizer, whose rewriting takes the better part of an hour at this size. With --strip it writes the graph alone, to
DIR/model.onnx: how the model of a test is committed (export_gpt2.py, --weights strip). Input `input_ids` (int64,
batch x sequence, both dynamic), output `logits`. Needs the environment of make_venv.
"""

import argparse
import math
import os
import sys

import numpy
import onnx
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from export_gpt2 import replace_fake_values, strip_weights
from export_families import logits_only

FILE_BYTES = 32 << 30  # max bytes of weights per file
ALIGNMENT = 4096
FREQUENCIES = "model.rotary_emb.inv_freq"
EXTERNAL = 1024  # bytes from which a tensor is stored outside the model, as in onnx.save


def export(args):
    config = LlamaConfig(
        vocab_size=args.vocab, hidden_size=args.hidden, intermediate_size=args.intermediate,
        num_hidden_layers=args.layers, num_attention_heads=args.heads,
        num_key_value_heads=args.key_heads, max_position_embeddings=8192, rope_theta=args.rope_theta, tie_word_embeddings=False)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        model = logits_only(LlamaForCausalLM, ["input_ids"])(config).eval()
        ids = torch.zeros((2, 16), dtype=torch.int64)
        program = torch.onnx.export(model, (ids,), dynamo=True, verbose=False, optimize=False,
                                    input_names=["input_ids"], output_names=["logits"],
                                    dynamic_shapes=({0: "batch", 1: "sequence"},))
        replace_fake_values(program.model)
    return program.model_proto


def set_frequencies(proto, args):
    """Gives the rotary embedding's frequencies, of which a fake model has none, their values."""
    tensor, = [each for each in proto.graph.initializer if each.name == FREQUENCIES]
    features = args.hidden // args.heads
    exponents = numpy.arange(0, features, 2, dtype=numpy.float32) / features
    values = (1 / args.rope_theta ** exponents).astype(numpy.float32)
    tensor.CopyFrom(onnx.numpy_helper.from_array(values.reshape(tensor.dims), FREQUENCIES))


def move_weights_out(proto, folder):
    """Gives each large initializer a place in a file of `folder`; one without a value becomes a hole."""
    random = numpy.random.default_rng(1)
    number, end, total = 0, FILE_BYTES, 0
    for tensor in proto.graph.initializer:
        size = math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        if size < EXTERNAL:
            continue
        if end + size > FILE_BYTES and end:
            number, end = number + 1, 0
        name = f"weights-{number:03}.data"
        with open(os.path.join(folder, name), "r+b" if end else "wb") as file:
            file.seek(end)
            file.write(tensor.raw_data or random.bytes(min(size, ALIGNMENT)))
            file.truncate(end + size)
        del tensor.external_data[:]
        tensor.raw_data = b""  # set_external_data requires the field, the file must not have it
        onnx.external_data_helper.set_external_data(tensor, name, end, size)
        tensor.ClearField("raw_data")
        end = -(-(end + size) // ALIGNMENT) * ALIGNMENT
        total += size
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in [("layers", 96), ("hidden", 8192), ("heads", 64), ("key-heads", 8),
                        ("intermediate", 28672), ("vocab", 128256)]:
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--rope-theta", type=float, default=10000.0)
    parser.add_argument("--strip", action="store_true", help="write no weights")
    args = parser.parse_args()
    if not os.path.isdir(args.out):
        parser.error(f"--out: there is no folder '{args.out}'")
    proto = export(args)
    total = 0
    set_frequencies(proto, args)
    if args.strip:
        strip_weights(proto, keep={FREQUENCIES})
    else:
        total = move_weights_out(proto, args.out)
    path = os.path.join(args.out, "model.onnx")
    with open(path, "wb") as file:
        file.write(proto.SerializeToString())
    print(f"{path}: {os.path.getsize(path)} bytes, {len(proto.graph.node)} nodes, opset "
          f"{proto.opset_import[0].version}, {total} bytes of weights", file=sys.stderr)


if __name__ == "__main__":
    main()
