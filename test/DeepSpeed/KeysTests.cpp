// The table of keys: it is consistent, every key is on the page, every obeyed one is read.

#include "TestConfig.h"
#include <set>

using namespace llvm;
using namespace partita::config;
using namespace partita::config::test;

TEST(Keys, RowsAreComplete) {
  std::set<std::string> seen;
  for (const Key *key : allKeys()) {
    EXPECT_TRUE(seen.insert(key->path.str()).second) << key->path.str() << " has two rows";
    EXPECT_FALSE(key->about.empty()) << key->path.str();
    EXPECT_EQ(findKey(key->path), key);
    StringRef block = key->block();
    if (!block.empty()) {
      ASSERT_NE(findKey(block), nullptr) << key->path.str() << " stands in no block";
      EXPECT_TRUE(findKey(block)->isBlock()) << block.str();
    }
    EXPECT_TRUE(key->shape.kind != Shape::Block || key->use != Use::Part) << key->path.str();
  }
  for (const Alias &alias : aliases()) {
    EXPECT_EQ(findKey(alias.path), nullptr) << alias.path.str();
    EXPECT_NE(findKey(alias.current), nullptr) << alias.path.str();
  }
}

TEST(Keys, AllAreOnThePage) {
  std::string page;
  raw_string_ostream os(page);
  printPage(os);
  for (const Key *key : allKeys())
    EXPECT_EQ(StringRef(page).count(("\n| `" + key->path + "` | ").str()), 1u) << key->path.str();
  for (const Alias &alias : aliases())
    EXPECT_TRUE(StringRef(page).contains(("| `" + alias.path + "` | `").str()));
}

/// Returns a configuration with only this key, inside its blocks.
static std::string withKey(StringRef path, StringRef value) {
  SmallVector<StringRef> parts;
  path.split(parts, '.');
  std::string text, closing;
  for (StringRef part : parts) {
    text += ("{\"" + part + "\": ").str();
    closing += "}";
  }
  return text + value.str() + closing;
}

TEST(Keys, EveryDefaultIsAccepted) {
  for (const Key *key : allKeys()) {
    StringRef block = key->block();
    bool isWithin = false; // in a block that is refused as a whole, or never read
    for (; !block.empty(); block = findKey(block)->block())
      isWithin |= findKey(block)->use == Use::Refused;
    if (key->isBlock() || isWithin || key->use == Use::Part)
      continue;
    std::string text = withKey(key->path, key->initial), said;
    raw_string_ostream os(said);
    std::unique_ptr<Document> document = Document::parse("c.json", text, os);
    EXPECT_TRUE(document && checkKeys(*document)) << text << ": " << said;
  }
}

TEST(Keys, RefusedOnesAreRefusedForTheirValue) {
  expectError(
      resolveText("{\"zero_optimization\": {\"zeropp_loco_param\": {\"err_beta\": 0.8}}}"), "1:24",
      "'zero_optimization.zeropp_loco_param': to feed back what 4 bits leave out, each rank would");
  expectError(resolveText("{\"zero_optimization\": {\"zenflow\": {\"topk_ratio\": 0.1}}}"), "1:24",
              "'zero_optimization.zenflow': ZenFlow");
  expectError(resolveText("{\"wandb\": {\"enabled\": true}}"), "1:23", "'wandb' is switched on");
  EXPECT_TRUE(resolveText("{\"wandb\": {\"enabled\": false, \"team\": 3}}").ok);
  expectError(
      resolveText("{\"compression_training\": {\"pruning\": {\"shared\": {\"enabled\": true}}}}"),
      "1:61", "'compression_training' is switched on");
}

/// One configuration per optimizer and schedule: together they hold every obeyed key.
static constexpr StringLiteral kAll[] = {
    R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
        "bf16": {"enabled": true, "check_grad_overflow": true}, "gradient_clipping": 0.5, "communication_data_type": "fp32",
        "data_types": {"grad_accum_dtype": "fp32"},
        "optimizer": {"type": "Adam", "params": {"lr": 0.1, "betas": [0.8, 0.9], "eps": 1e-6,
          "weight_decay": 0.1, "bias_correction": false, "adam_w_mode": false}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0.001, "warmup_max_lr": 0.1,
          "warmup_num_steps": 10, "warmup_type": "linear", "total_num_steps": 100}},
        "zero_optimization": {"stage": 3, "reduce_bucket_size": 1e6, "mics_shard_size": 2,
          "stage3_prefetch_bucket_size": 1e5, "zero_quantized_weights": true, "zero_quantized_gradients": true, "zero_hpz_partition_size": 2, "stage3_param_persistence_threshold": 1e4,
          "offload_optimizer": {"device": "cpu", "ratio": 1.0}, "offload_param": {"device": "cpu"}},
        "activation_checkpointing": {"partition_activations": true, "cpu_checkpointing": true,
          "contiguous_memory_optimization": true, "number_checkpoints": 4},
        "steps_per_print": 10, "wall_clock_breakdown": true,
        "tensorboard": {"enabled": true, "output_path": "tb", "job_name": "job"},
        "csv_monitor": {"enabled": true, "output_path": "csv", "job_name": "job"},
        "tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 2}},
        "pipeline": {"stages": 1, "partition": "uniform", "activation_checkpoint_interval": 1}})",
    R"({"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 8, "loss_scale_window": 10,
          "hysteresis": 3, "consecutive_hysteresis": true, "min_loss_scale": 2},
        "fp32_allreduce": true,
        "optimizer": {"type": "Lamb", "params": {"max_grad_norm": 2, "max_coeff": 5, "min_coeff": 0.1}},
        "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.001, "cycle_max_lr": 0.1,
          "decay_lr_rate": 0.1, "cycle_first_step_size": 10, "cycle_second_step_size": 20,
          "cycle_first_stair_count": 2, "cycle_second_stair_count": 3, "decay_step_size": 5,
          "cycle_momentum": true, "cycle_min_mom": 0.7, "cycle_max_mom": 0.8,
          "decay_mom_rate": 0.1}}})",
    R"({"zero_optimization": {"cpu_offload": true, "cpu_offload_params": true, "cpu_offload_param": true},
        "optimizer": {"type": "SGD", "params": {"momentum": 0.9, "nesterov": true}},
        "scheduler": {"type": "WarmupCosineLR", "params": {"warmup_min_ratio": 0.1,
          "cos_min_ratio": 0.01, "total_num_steps": 100}}})",
    R"({"scheduler": {"type": "LRRangeTest", "params": {"lr_range_test_min_lr": 0.1,
          "lr_range_test_step_size": 10, "lr_range_test_step_rate": 2,
          "lr_range_test_staircase": true}}})",
    R"({"sparse_attention": {"mode": "fixed", "block": 32, "different_layout_per_head": true,
          "num_local_blocks": 8, "num_global_blocks": 2, "attention": "bidirectional",
          "horizontal_global_attention": true, "num_different_global_patterns": 2}})",
    R"({"sparse_attention": {"mode": "variable", "num_random_blocks": 1, "local_window_blocks": [2, 4],
          "global_block_indices": [0], "global_block_end_indices": [2]}})",
    R"({"sparse_attention": {"mode": "bslongformer", "num_sliding_window_blocks": 5}})",
    R"({"sequence_parallel_size": 2})",
    R"({"optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 100}}})",
    R"({"optimizer": {"type": "OneBitLamb", "params": {"lr": 1e-3, "freeze_step": 100, "max_coeff": 5, "min_coeff": 0.1, "coeff_beta": 0.8,
          "factor_max": 3, "factor_min": 0.25, "factor_threshold": 0.2}}})",
    R"({"optimizer": {"type": "ZeroOneAdam", "params": {"var_freeze_step": 100, "var_update_scaler": 4, "local_step_clipper": 1}}})",
};

TEST(Keys, EveryObeyedOneIsRead) {
  std::set<std::string> seen;
  for (StringRef text : kAll) {
    Facts facts = factsOf({{"dp", 2}, {"fsdp", 2}, {"cp", 2}, {"tp", 2}});
    facts.commandLine["recompute"] = "block";
    Outcome outcome = resolveText(text, facts);
    EXPECT_TRUE(outcome.ok) << outcome.said;
    for (const Entry &entry : outcome.resolution.entries) {
      const Key &key = *entry.key;
      if (outcome.resolution.read.contains(key.path) && outcome.resolution.isGiven(key))
        seen.insert(key.path.str());
    }
  }
  for (const Key *key : allKeys())
    if (key->use == Use::Obeyed && !key->isBlock())
      EXPECT_TRUE(seen.count(key->path.str())) << "nobody has read " << key->path.str();
}

TEST(Keys, WhatHasNoEffectIsNotRead) {
  for (StringRef text : kAll) {
    Facts facts = factsOf({{"dp", 2}, {"fsdp", 2}, {"cp", 2}, {"tp", 2}});
    facts.commandLine["recompute"] = "block";
    Outcome outcome = resolveText(text, facts);
    for (const auto &path : outcome.resolution.read.keys()) {
      const Key *key = findKey(path);
      ASSERT_NE(key, nullptr) << path.str();
      bool isChecked = path == "sparse_gradients" || path == "gradient_allreduce_op" ||
                       path == "managed_gradient_accumulation";
      EXPECT_TRUE(key->use == Use::Obeyed || isChecked) << path.str() << " is read: obey it";
    }
  }
}

TEST(Keys, Nearest) {
  auto meant = [](StringRef path) {
    const Key *key = nearestKey(path);
    return key ? key->path.str() : "";
  };
  EXPECT_EQ(meant("zero_optimisation"), "zero_optimization");
  EXPECT_EQ(meant("zero_optimization.stge"), "zero_optimization.stage");
  EXPECT_EQ(meant("train_batchsize"), "train_batch_size");
  EXPECT_EQ(meant("reduce_bucket_size"), "zero_optimization.reduce_bucket_size");
  EXPECT_EQ(meant("optimizer.params.Lr"), "optimizer.params.lr");
  EXPECT_EQ(meant("qqqqqqqq"), "");
}
