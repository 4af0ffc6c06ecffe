"""The families that export_families.py exports and try_families.py tries: names of classes of Hugging Face's library,
settings of small configurations, and what training requires (objective and dimensions). Needs neither library.
bench/plans.py and the tests use the objectives and dimensions too."""

from typing import NamedTuple


class Family(NamedTuple):
    model: str          # name of its class
    config: str | None  # name of its configuration's class; None: PyTorch's own layers (torch_models.py)
    settings: dict
    inputs: list        # in the file's order
    objective: str
    takes_mask: bool = True  # an attention mask, even if it is not among the inputs


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

FAMILIES = {
    "gpt2": Family("GPT2LMHeadModel", "GPT2Config", dict(
        vocab_size=VOCAB, n_positions=POSITIONS, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0), ["input_ids"], "causal"),
    "bert": Family("BertForMaskedLM", "BertConfig", dict(
        BERT, max_position_embeddings=POSITIONS),
        ["input_ids", "attention_mask", "token_type_ids"], "masked"),
    "roberta": Family("RobertaForMaskedLM", "RobertaConfig", dict(
        BERT, max_position_embeddings=POSITIONS + 2, pad_token_id=1),
        ["input_ids", "attention_mask"], "masked"),
    "t5": Family("T5ForConditionalGeneration", "T5Config", dict(
        vocab_size=VOCAB, d_model=HIDDEN, d_kv=8, d_ff=64, num_layers=LAYERS, num_heads=HEADS,
        relative_attention_num_buckets=8, relative_attention_max_distance=16, dropout_rate=0.0),
        ["input_ids", "attention_mask", "decoder_input_ids"], "masked"),
    "llama": Family("LlamaForCausalLM", "LlamaConfig", LLAMA, ["input_ids"], "causal"),
    "mistral": Family("MistralForCausalLM", "MistralConfig", dict(LLAMA, sliding_window=None),
                      ["input_ids", "attention_mask"], "causal"),
    "qwen2": Family("Qwen2ForCausalLM", "Qwen2Config", LLAMA,
                    ["input_ids", "attention_mask", "position_ids"], "causal"),
    "opt": Family("OPTForCausalLM", "OPTConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, word_embed_proj_dim=HIDDEN, ffn_dim=64,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, max_position_embeddings=POSITIONS,
        dropout=0.0), ["input_ids", "attention_mask"], "causal"),
    "gpt_neox": Family("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=POSITIONS, rotary_pct=0.5,
        use_parallel_residual=True), ["input_ids"], "causal"),
    "vit": Family("ViTForImageClassification", "ViTConfig", dict(
        hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=64, image_size=16, patch_size=4, num_channels=3, num_labels=10,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), ["pixel_values"], "classification", takes_mask=False),
}
# Models of other heads and families, exported only when named. They look up elements by batch, or have attention that is
# split in other ways (slopes of ALiBi; queries, keys and values of unequal sizes in one weight; scaled logits; norms of
# all queries and of all keys; attention written out), or have tables that exporters compute when they fold constants
# (sines beside cosines, biases of ALiBi).
FURTHER = {
    "gpt2_classifier": Family("GPT2ForSequenceClassification", "GPT2Config", dict(
        FAMILIES["gpt2"].settings, pad_token_id=0, num_labels=5), ["input_ids"], "classification"),
    "clip_text": Family("CLIPTextModel", "CLIPTextConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=64, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=POSITIONS, bos_token_id=62,
        eos_token_id=63), ["input_ids", "attention_mask"], "mse"),
    "deberta": Family("DebertaV2ForMaskedLM", "DebertaV2Config", dict(
        BERT, max_position_embeddings=POSITIONS, type_vocab_size=0, relative_attention=True,
        pos_att_type=["p2c", "c2p"], position_buckets=8, norm_rel_ebd="layer_norm",
        share_att_key=True, position_biased_input=False), ["input_ids", "attention_mask"], "masked"),
    "bloom": Family("BloomForCausalLM", "BloomConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS),
        ["input_ids", "attention_mask"], "causal"),
    "phi3": Family("Phi3ForCausalLM", "Phi3Config", dict(
        LLAMA, original_max_position_embeddings=POSITIONS, **TOKENS), ["input_ids"], "causal"),
    "falcon": Family("FalconForCausalLM", "FalconConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        max_position_embeddings=POSITIONS), ["input_ids"], "causal"),
    "falcon_grouped": Family("FalconForCausalLM", "FalconConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_kv_heads=2, new_decoder_architecture=True, max_position_embeddings=POSITIONS),
        ["input_ids"], "causal"),
    "cohere": Family("CohereForCausalLM", "CohereConfig", dict(
        LLAMA, vocab_size=VOCAB + 1, logit_scale=0.0625, **TOKENS), ["input_ids"], "causal"),
    "gptj": Family("GPTJForCausalLM", "GPTJConfig", GPTJ, ["input_ids"], "causal"),
    "codegen": Family("CodeGenForCausalLM", "CodeGenConfig", dict(GPTJ, n_ctx=POSITIONS), ["input_ids"], "causal"),
    "mpt": Family("MptForCausalLM", "MptConfig", dict(
        vocab_size=VOCAB, d_model=HIDDEN, expansion_ratio=2, n_layers=LAYERS, n_heads=HEADS,
        max_seq_len=POSITIONS), ["input_ids"], "causal"),
    "gpt_bigcode": Family("GPTBigCodeForCausalLM", "GPTBigCodeConfig", dict(
        FAMILIES["gpt2"].settings, multi_query=True), ["input_ids"], "causal"),
    "olmo2": Family("Olmo2ForCausalLM", "Olmo2Config", dict(LLAMA, **TOKENS), ["input_ids"], "causal"),
    "gemma2": Family("Gemma2ForCausalLM", "Gemma2Config", dict(
        LLAMA, head_dim=8, query_pre_attn_scalar=8, sliding_window=8,
        attn_implementation="eager", **TOKENS), ["input_ids"], "causal"),
}

SEQ2SEQ = dict(vocab_size=VOCAB, d_model=HIDDEN, encoder_layers=LAYERS, decoder_layers=LAYERS,
               encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=64,
               decoder_ffn_dim=64, max_position_embeddings=POSITIONS, dropout=0.0, **TOKENS,
               decoder_start_token_id=2, forced_eos_token_id=None)
BOTH_SIDES = ["input_ids", "attention_mask", "decoder_input_ids"]
MASKED = ["input_ids", "attention_mask"]
VIT = FAMILIES["vit"].settings
LATENT = dict(LLAMA, num_key_value_heads=HEADS, q_lora_rank=16, kv_lora_rank=16, qk_nope_head_dim=8,
              qk_rope_head_dim=4, v_head_dim=8, first_k_dense_replace=LAYERS, n_routed_experts=4,
              num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=16, **TOKENS)
AUDIO = dict(hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
             intermediate_size=64, conv_dim=(16, 16), conv_kernel=(8, 4), conv_stride=(4, 2),
             num_feat_extract_layers=2, num_conv_pos_embeddings=8,
             num_conv_pos_embedding_groups=4, vocab_size=VOCAB, hidden_dropout=0.0, layerdrop=0.0,
             attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0,
             mask_time_prob=0.0, mask_feature_prob=0.0, **TOKENS)

# For try_families.py only. Among others: norms without parameters (OLMo), buffers that are only added (BART), embeddings
# tied to the head (ALBERT, BART, mBART), state spaces (Mamba), latent attention (DeepSeek), weights that are products
# (wav2vec2), windows (Swin), experts (Mixtral).
TRIED = {
    "olmo": Family("OlmoForCausalLM", "OlmoConfig", dict(LLAMA, **TOKENS), MASKED, "causal"),
    "bart": Family("BartForConditionalGeneration", "BartConfig", SEQ2SEQ, BOTH_SIDES, "masked"),
    "mbart": Family("MBartForConditionalGeneration", "MBartConfig", SEQ2SEQ, BOTH_SIDES, "masked"),
    "marian": Family("MarianMTModel", "MarianConfig", SEQ2SEQ, BOTH_SIDES, "masked"),
    "pegasus": Family("PegasusForConditionalGeneration", "PegasusConfig", SEQ2SEQ, BOTH_SIDES, "masked"),
    "albert": Family("AlbertForMaskedLM", "AlbertConfig", dict(
        BERT, embedding_size=16, max_position_embeddings=POSITIONS), MASKED, "masked"),
    "distilbert": Family("DistilBertForMaskedLM", "DistilBertConfig", dict(
        vocab_size=VOCAB, dim=HIDDEN, hidden_dim=64, n_layers=LAYERS, n_heads=HEADS,
        max_position_embeddings=POSITIONS, dropout=0.0, attention_dropout=0.0), MASKED, "masked"),
    "electra": Family("ElectraForMaskedLM", "ElectraConfig", dict(
        BERT, embedding_size=16, max_position_embeddings=POSITIONS), MASKED, "masked"),
    "electra_discriminator": Family("ElectraForPreTraining", "ElectraConfig", dict(
        BERT, embedding_size=16, max_position_embeddings=POSITIONS), MASKED, "binary"),
    "modernbert": Family("ModernBertForMaskedLM", "ModernBertConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=48, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=POSITIONS, local_attention=8,
        reference_compile=False, cls_token_id=1, sep_token_id=2, **TOKENS), MASKED, "masked"),
    "xlnet": Family("XLNetLMHeadModel", "XLNetConfig", dict(
        vocab_size=VOCAB, d_model=HIDDEN, n_layer=LAYERS, n_head=HEADS, d_inner=64, dropout=0.0),
        MASKED, "masked"),
    "cohere2": Family("Cohere2ForCausalLM", "Cohere2Config", dict(
        LLAMA, logit_scale=0.0625, sliding_window=8, **TOKENS), MASKED, "causal"),
    "mamba": Family("MambaForCausalLM", "MambaConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, state_size=4, num_hidden_layers=LAYERS,
        time_step_rank=4), ["input_ids"], "causal", takes_mask=False),
    "deepseek_v2": Family("DeepseekV2ForCausalLM", "DeepseekV2Config", LATENT, MASKED, "causal"),
    "deepseek_v3": Family("DeepseekV3ForCausalLM", "DeepseekV3Config", LATENT, MASKED, "causal"),
    "phi": Family("PhiForCausalLM", "PhiConfig", dict(
        LLAMA, num_key_value_heads=HEADS, partial_rotary_factor=0.5, resid_pdrop=0.0, **TOKENS),
        MASKED, "causal"),
    "gemma": Family("GemmaForCausalLM", "GemmaConfig", dict(LLAMA, head_dim=8, **TOKENS), MASKED, "causal"),
    "gemma3": Family("Gemma3ForCausalLM", "Gemma3TextConfig", dict(
        LLAMA, head_dim=8, query_pre_attn_scalar=8, sliding_window=8, **TOKENS), MASKED, "causal"),
    "qwen3": Family("Qwen3ForCausalLM", "Qwen3Config", dict(LLAMA, head_dim=8), MASKED, "causal"),
    "granite": Family("GraniteForCausalLM", "GraniteConfig", dict(LLAMA, **TOKENS), MASKED, "causal"),
    "stablelm": Family("StableLmForCausalLM", "StableLmConfig", dict(LLAMA, **TOKENS), MASKED, "causal"),
    "starcoder2": Family("Starcoder2ForCausalLM", "Starcoder2Config", dict(
        LLAMA, residual_dropout=0.0, embedding_dropout=0.0, **TOKENS), MASKED, "causal"),
    "nemotron": Family("NemotronForCausalLM", "NemotronConfig", dict(LLAMA, **TOKENS), MASKED, "causal"),
    "gpt_neo": Family("GPTNeoForCausalLM", "GPTNeoConfig", dict(
        vocab_size=VOCAB, hidden_size=HIDDEN, num_layers=LAYERS, num_heads=HEADS, window_size=4,
        attention_types=[[["global", "local"], 1]], intermediate_size=64,
        max_position_embeddings=POSITIONS, resid_dropout=0.0, embed_dropout=0.0), MASKED, "causal"),
    "mixtral": Family("MixtralForCausalLM", "MixtralConfig", dict(
        LLAMA, num_local_experts=4, num_experts_per_tok=2, **TOKENS), MASKED, "causal"),
    "deit": Family("DeiTForImageClassification", "DeiTConfig", VIT, ["pixel_values"], "classification", takes_mask=False),
    "dinov2": Family("Dinov2ForImageClassification", "Dinov2Config", VIT, ["pixel_values"], "classification", takes_mask=False),
    "beit": Family("BeitForImageClassification", "BeitConfig", dict(
        VIT, use_relative_position_bias=True), ["pixel_values"], "classification", takes_mask=False),
    "swin": Family("SwinForImageClassification", "SwinConfig", dict(
        image_size=16, patch_size=2, num_channels=3, embed_dim=16, depths=[2, 2], num_heads=[2, 4],
        window_size=4, num_labels=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        drop_path_rate=0.0), ["pixel_values"], "classification", takes_mask=False),
    "wav2vec2": Family("Wav2Vec2ForCTC", "Wav2Vec2Config", AUDIO, ["input_values"], "masked", takes_mask=False),
    "wav2vec2_layer_norm": Family("Wav2Vec2ForCTC", "Wav2Vec2Config", dict(
        AUDIO, feat_extract_norm="layer", do_stable_layer_norm=True), ["input_values"], "masked", takes_mask=False),
    "whisper": Family("WhisperForConditionalGeneration", "WhisperConfig", dict(
        SEQ2SEQ, num_mel_bins=8, max_source_positions=10, max_target_positions=POSITIONS),
        ["input_features", "decoder_input_ids"], "masked", takes_mask=False),
    "group_norm": Family("GroupNormModel", None, {}, ["pixel_values"], "classification", takes_mask=False),
    "weight_norm": Family("WeightNormModel", None, {}, ["input_ids"], "masked", takes_mask=False),
    "sliced_weight": Family("SlicedWeightModel", None, {}, ["input_ids"], "masked", takes_mask=False),
    "torch_encoder": Family("EncoderModel", None, {}, ["input_ids"], "masked", takes_mask=False),
    "torch_transformer": Family("TransformerModel", None, {}, ["input_ids", "decoder_input_ids"], "masked", takes_mask=False),
}
ALL = {**FAMILIES, **FURTHER, **TRIED}


def with_mask(entry):
    """Returns the entry with an attention mask among its inputs if the model takes one."""
    if not entry.takes_mask or "attention_mask" in entry.inputs:
        return entry
    return entry._replace(inputs=[entry.inputs[0], "attention_mask", *entry.inputs[1:]])


# The entries that try_families.py tries: all with masks, and three without, which newer versions export differently.
MATRIX = {**{family: with_mask(entry) for family, entry in ALL.items()},
          **{family + "_unmasked": ALL[family] for family in ("gpt2", "llama", "gpt_neox")}}


# Shapes of a sample of the inputs that are not tokens.
SHAPES = {"pixel_values": (3, 16, 16), "input_values": (160,), "input_features": (8, 20)}


def inputs(family):
    """Returns the inputs of its exports in test/Data, which include an attention mask only if the model needs one."""
    return ALL[family].inputs


def dynamic_axes(name):
    """Returns an input's dynamic dimensions, by axis."""
    if name in SHAPES:
        return {0: "batch"}
    return {0: "batch", 1: "decoder_sequence" if name.startswith("decoder") else "sequence"}


def dims(family):
    """Returns the names of its dynamic dimensions."""
    return list(dict.fromkeys(dim for name in MATRIX[family].inputs for dim in dynamic_axes(name).values()))


def training_options(family, **sizes):
    """Returns options for `partita compile`: the sizes of the family's dimensions, and its objective."""
    return [word for name in dims(family) for word in ("--dim", f"{name}={sizes[name]}")] + ["--objective", objective(family)]


def objective(family):
    return MATRIX[family].objective
