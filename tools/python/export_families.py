#!/usr/bin/env python3
"""Exports small Transformers of Hugging Face, one per family, to ONNX with either of PyTorch's
exporters, as a user would: the library's own code, its default attention, its own input names.

    export_families.py --exporter torchscript --out DIR [--training] [--loss] [--fold] [FAMILY...]

Families: those of FAMILIES below, or those named, of FURTHER too. All dimensions of inputs but
those of pixels are dynamic. The weights are stripped as in export_gpt2.py: a file declares its
parameters and holds the values of constants only. Needs the environment of make_venv.
"""

import argparse
import os
import sys
import tempfile
import warnings

import onnx
import torch
import transformers

from export_gpt2 import VALUE_FIELDS

HIDDEN, LAYERS, HEADS, VOCAB, POSITIONS = 32, 2, 4, 64, 32
LLAMA = dict(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=48, num_hidden_layers=LAYERS,
             num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=POSITIONS,
             tie_word_embeddings=False)
TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)
BERT = dict(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=LAYERS,
            num_attention_heads=HEADS, type_vocab_size=2, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0)
GPTJ = dict(vocab_size=VOCAB, n_positions=POSITIONS, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS,
            rotary_dim=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1,
            eos_token_id=2)

# family: class, configuration, inputs in the order of the file
FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", dict(
        vocab_size=VOCAB, n_positions=POSITIONS, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), ["input_ids"]),
    "bert": ("BertForMaskedLM", "BertConfig", dict(
        BERT, max_position_embeddings=POSITIONS),
        ["input_ids", "attention_mask", "token_type_ids"]),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", dict(
        BERT, max_position_embeddings=POSITIONS + 2, pad_token_id=1),
        ["input_ids", "attention_mask"]),
    "t5": ("T5ForConditionalGeneration", "T5Config", dict(
        vocab_size=VOCAB, d_model=HIDDEN, d_kv=8, d_ff=64, num_layers=LAYERS, num_heads=HEADS,
        relative_attention_num_buckets=8, relative_attention_max_distance=16, dropout_rate=0.0),
        ["input_ids", "attention_mask", "decoder_input_ids"]),
    "llama": ("LlamaForCausalLM", "LlamaConfig", LLAMA, ["input_ids"]),
    "mistral": ("MistralForCausalLM", "MistralConfig", dict(LLAMA, sliding_window=None),
                ["input_ids", "attention_mask"]),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", LLAMA,
              ["input_ids", "attention_mask", "position_ids"]),
    "opt": ("OPTForCausalLM", "OPTConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, word_embed_proj_dim=HIDDEN, ffn_dim=64,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, max_position_embeddings=POSITIONS,
        dropout=0.0), ["input_ids", "attention_mask"]),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=POSITIONS, rotary_pct=0.5,
        use_parallel_residual=True), ["input_ids"]),
    "vit": ("ViTForImageClassification", "ViTConfig", dict(
        hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=64, image_size=16, patch_size=4, num_channels=3, num_labels=10,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), ["pixel_values"]),
}
# Models of other heads and families, exported when named: they look elements up by the batch, or have attention that
# is split in other ways: slopes of ALiBi, queries, keys and values of unequal sizes in one weight, scaled logits, norms of
# all queries and of all keys, attention written out; or have tables that exporters compute when they fold constants (sines
# beside cosines, biases of ALiBi).
FURTHER = {
    "gpt2_classifier": ("GPT2ForSequenceClassification", "GPT2Config", dict(
        FAMILIES["gpt2"][2], pad_token_id=0, num_labels=5), ["input_ids"]),
    "clip_text": ("CLIPTextModel", "CLIPTextConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=POSITIONS, bos_token_id=62,
        eos_token_id=63), ["input_ids", "attention_mask"]),
    "deberta": ("DebertaV2ForMaskedLM", "DebertaV2Config", dict(
        BERT, max_position_embeddings=POSITIONS, type_vocab_size=0, relative_attention=True,
        pos_att_type=["p2c", "c2p"], position_buckets=8, norm_rel_ebd="layer_norm",
        share_att_key=True, position_biased_input=False), ["input_ids", "attention_mask"]),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS),
        ["input_ids", "attention_mask"]),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", dict(
        LLAMA, original_max_position_embeddings=POSITIONS, **TOKENS), ["input_ids"]),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        max_position_embeddings=POSITIONS), ["input_ids"]),
    "falcon_grouped": ("FalconForCausalLM", "FalconConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_kv_heads=2, new_decoder_architecture=True, max_position_embeddings=POSITIONS),
        ["input_ids"]),
    "cohere": ("CohereForCausalLM", "CohereConfig", dict(
        LLAMA, vocab_size=VOCAB + 1, logit_scale=0.0625, **TOKENS), ["input_ids"]),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", GPTJ, ["input_ids"]),
    "codegen": ("CodeGenForCausalLM", "CodeGenConfig", dict(GPTJ, n_ctx=POSITIONS), ["input_ids"]),
    "mpt": ("MptForCausalLM", "MptConfig", dict(
        vocab_size=VOCAB, d_model=HIDDEN, expansion_ratio=2, n_layers=LAYERS, n_heads=HEADS,
        max_seq_len=POSITIONS), ["input_ids"]),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", "GPTBigCodeConfig", dict(
        FAMILIES["gpt2"][2], multi_query=True), ["input_ids"]),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", dict(LLAMA, **TOKENS), ["input_ids"]),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", dict(
        LLAMA, head_dim=8, query_pre_attn_scalar=8, sliding_window=8,
        attn_implementation="eager", **TOKENS), ["input_ids"]),
}
ALL = {**FAMILIES, **FURTHER}


def logits_only(cls, names, loss=False):
    """The model with the inputs of the file and one output, or with labels and the loss too. A
    subclass and no wrapper: parameters keep their names."""
    names = names + ["labels"] * loss
    arguments = ", ".join(names)
    keywords = ", ".join(f"{name}={name}" for name in names)
    uncached = "pixel_values" in names or "Masked" in cls.__name__ or "CLIP" in cls.__name__
    options = "" if uncached else ", use_cache=False"
    output = "pooler_output" if "CLIP" in cls.__name__ else "logits"
    scope = {"cls": cls}
    exec(f"def forward(self, {arguments}):\n"
         f"    made = cls.forward(self, {keywords}{options})\n"
         f"    return {'made.loss, ' * loss}made.{output}", scope)
    return type("LogitsOnly", (cls,), {"forward": scope["forward"]})


def build_model(family, dtype=torch.float32, sizes=(), training=False, loss=False):
    """The model with random weights, no two tensors equal: exporters merge equal initializers.
    `sizes` are settings of its configuration other than those above. For training with every dropout
    that the configuration names, and attention written out: of the fused one's dropout, exporters
    lose the training mode or all."""
    cls, config, settings, inputs = ALL[family]
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
    """Inputs to trace with. No two sizes are equal, so that no dimension is taken for another."""
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
    """The sides of an encoder-decoder have lengths of their own."""
    if name == "pixel_values" or (family == "vit" and name == "labels"):
        return {0: "batch"}
    decoder = name == "decoder_input_ids" or (family == "t5" and name == "labels")
    return {0: "batch", 1: "decoder_sequence" if decoder else "sequence"}


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
    """As torch.onnx.export(dynamo=True) does it, with one exception if not to `fold`: its optimizer
    transposes matrices of up to 8192 elements, which all of these models are and none of a real one
    is."""
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
    """Removes the values of the parameters, which only their names and shapes are needed of, and
    what exporters leave to debug themselves. Buffers (tables of positions, frequencies) stay."""
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
    parser.add_argument("--out", required=True, metavar="DIR")
    args = parser.parse_args()
    if not os.path.isdir(args.out):
        parser.error(f"--out: there is no folder '{args.out}'")
    sizes = [(name, int(value)) for name, value in (size.split("=") for size in args.size)]
    for family in args.families or FAMILIES:
        if family not in ALL:
            parser.error(f"no family '{family}', there are {', '.join(ALL)}")
        names = ALL[family][3] + ["labels"] * args.loss
        axes = {name: dynamic_axes(family, name) for name in names}
        outputs, inputs = ["loss"] * args.loss + ["logits"], example_inputs(family, names)
        model = build_model(family, sizes=sizes, training=args.training, loss=args.loss)
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
