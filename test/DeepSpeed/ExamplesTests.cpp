// Configurations from DeepSpeed's documentation and its users' guides, key by key: accepted, or
// refused for a reason. Fragments too, as they are printed there: a block without the surrounding
// braces.

#include "TestConfig.h"

using namespace llvm;
using namespace partita::config;
using namespace partita::config::test;

namespace {
struct Example {
  StringLiteral about, text;
  StringLiteral refused = "";            ///< part of the message; empty: accepted
  StringLiteral option = "", value = ""; ///< an option that it must set
};
} // namespace

static constexpr Example kExamples[] = {
    {"getting started: ZeRO as a switch", R"({
  "train_batch_size": 8,
  "gradient_accumulation_steps": 1,
  "optimizer": { "type": "Adam", "params": { "lr": 1.5e-4 } },
  "fp16": { "enabled": true },
  "zero_optimization": true
})",
     "", "zero-stage", "1"},
    {"images: Adam with a warm-up", R"({
  "train_batch_size": 4, "steps_per_print": 2000,
  "optimizer": { "type": "Adam", "params": { "lr": 0.001, "betas": [0.8, 0.999], "eps": 1e-8, "weight_decay": 3e-7 } },
  "scheduler": { "type": "WarmupLR", "params": { "warmup_min_lr": 0, "warmup_max_lr": 0.001, "warmup_num_steps": 1000 } },
  "wall_clock_breakdown": false
})",
     "", "lr-schedule", "WarmupLR,warmup_min_lr=0,warmup_max_lr=0.001,warmup_num_steps=1000"},
    {"adversarial networks: no decay", R"({
  "train_batch_size" : 64,
  "optimizer": { "type": "Adam", "params": { "lr": 2e-4, "betas": [ 0.5, 0.999 ], "eps": 1e-8 } },
  "steps_per_print" : 10
})",
     "", "betas", "0.5,0.999"},
    {"BERT: clipping among the optimizer's parameters", R"({
  "train_batch_size": 4096, "train_micro_batch_size_per_gpu": 64, "steps_per_print": 1000,
  "optimizer": { "type": "Adam", "params": { "lr": 2e-4, "max_grad_norm": 1.0, "weight_decay": 0.01, "bias_correction": false } },
  "fp16": { "enabled": true, "loss_scale": 0, "initial_scale_power": 16 }
})",
     "", "accumulate", "32"},
    {"BERT with Lamb", R"({
  "train_batch_size": 65536, "train_micro_batch_size_per_gpu": 64, "steps_per_print": 1000, "prescale_gradients": false,
  "optimizer": { "type": "Lamb", "params": { "lr": 11e-3, "weight_decay": 0.01, "bias_correction": false, "max_coeff": 0.3, "min_coeff": 0.01 } },
  "gradient_clipping": 1.0,
  "wall_clock_breakdown": false,
  "fp16": { "enabled": true, "loss_scale": 0 }
})",
     "", "lamb-bounds", "0.01,0.3"},
    {"ZeRO 1", R"({ "zero_optimization": { "stage": 1, "reduce_bucket_size": 5e8 } })", "",
     "bucket-bytes", "2000000000"},
    {"ZeRO 2",
     R"({ "zero_optimization": { "stage": 2, "contiguous_gradients": true, "overlap_comm": true,
      "reduce_scatter": true, "reduce_bucket_size": 5e8, "allgather_bucket_size": 5e8 } })",
     "", "zero-stage", "2"},
    {"ZeRO 3, all on the host",
     R"({ "zero_optimization": { "stage": 3, "contiguous_gradients": true,
      "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9, "stage3_prefetch_bucket_size": 1e7,
      "stage3_param_persistence_threshold": 1e5, "reduce_bucket_size": 1e7, "sub_group_size": 1e9,
      "offload_optimizer": { "device": "cpu" }, "offload_param": { "device": "cpu" } } })",
     "", "offload", "optimizer,parameters"},
    {"ZeRO-Offload, without the comma", R"({
    "zero_optimization": {
        "stage": 2,
        "offload_optimizer": {
            "device": "cpu",
        }
        "contiguous_gradients": true,
        "overlap_comm": true
    }
})",
     "", "offload", "optimizer"},
    {"ZeRO-Infinity", R"({ "zero_optimization": { "stage": 3,
      "offload_optimizer": { "device": "nvme", "nvme_path": "/local", "pin_memory": true, "buffer_count": 4, "fast_init": false },
      "offload_param": { "device": "nvme", "nvme_path": "/local", "pin_memory": true, "buffer_count": 5, "buffer_size": 1e8, "max_in_cpu": 1e9 } },
      "aio": { "block_size": 262144, "queue_depth": 32, "thread_count": 1, "single_submit": false, "overlap_events": true } })",
     "nothing is kept on NVMe"},
    {"ZeRO++",
     R"({ "zero_optimization": { "stage": 3, "reduce_bucket_size": 10000000, "reduce_scatter": true,
      "zero_quantized_weights": true, "zero_hpz_partition_size": 16, "zero_quantized_gradients": true,
      "contiguous_gradients": true, "overlap_comm": true } })",
     "", "zero-quantized-gradients", "true"},
    {"ZeRO++ without gradients",
     R"({ "zero_optimization": { "stage": 3, "zero_quantized_weights": true, "zero_hpz_partition_size": 8 } })",
     "", "zero-hpz-partition-size", "8"},
    {"ZenFlow",
     R"({ "zero_optimization": { "stage": 2, "offload_optimizer": { "device": "cpu", "pin_memory": true },
      "zenflow": { "topk_ratio": 0.05, "select_strategy": "auto", "update_interval": "auto" } } })",
     "ZenFlow"},
    {"modules that hang elsewhere",
     R"({ "train_micro_batch_size_per_gpu": 1, "zero_optimization": { "stage": 3,
      "leaf_module": { "classes": ["package.Block"], "names": ["layers.0"], "name_suffixes": ["experts"] } } })",
     "", "zero-stage", "3"},
    {"a placeholder", "{ \"zero_optimization\": { \"stage\": 3 },\n  ...\n}",
     "'...' is not a key; write what it stands for"},
    {"1-cycle, a fragment", R"("scheduler": {
    "type": "OneCycle",
    "params": { "cycle_first_step_size": 1000, "cycle_first_stair_count": 500, "cycle_second_step_size": 1000,
      "cycle_second_stair_count": 500, "decay_step_size": 1000, "cycle_min_lr": 0.0001, "cycle_max_lr": 0.0010,
      "decay_lr_rate": 0.001, "cycle_min_mom": 0.85, "cycle_max_mom": 0.99, "decay_mom_rate": 0.0 }
},)",
     "", "lr-schedule",
     "OneCycle,cycle_min_lr=0.0001,cycle_max_lr=0.001,decay_lr_rate=0.001,cycle_first_step_size="
     "1000,"
     "cycle_second_step_size=1000,cycle_first_stair_count=500,cycle_second_stair_count=500,"
     "decay_step_size=1000,cycle_min_mom=0.85,cycle_max_mom=0.99,decay_mom_rate=0"},
    {"a test of learning rates",
     R"("scheduler": { "type": "LRRangeTest", "params": { "lr_range_test_min_lr": 0.0001,
      "lr_range_test_step_size": 200, "lr_range_test_step_rate": 5, "lr_range_test_staircase": false } })",
     "", "lr-schedule",
     "LRRangeTest,lr_range_test_min_lr=0.0001,lr_range_test_step_size=200,lr_range_test_step_rate="
     "5,"
     "lr_range_test_staircase=false"},
    {"activation checkpointing, everything off",
     R"("activation_checkpointing": { "partition_activations": false,
      "cpu_checkpointing": false, "contiguous_memory_optimization": false, "number_checkpoints": null,
      "synchronize_checkpoint_boundary": false, "profile": false })"},
    {"Megatron with fp16 at stage 2", R"({
  "train_batch_size": 32, "gradient_accumulation_steps": 1, "steps_per_print": 1,
  "zero_optimization": { "stage": 2, "allgather_partitions": true, "reduce_scatter": true, "allgather_bucket_size": 50000000,
    "reduce_bucket_size": 50000000, "overlap_comm": true, "contiguous_gradients": true, "cpu_offload": true },
  "optimizer": { "type": "Adam", "params": { "lr": 0.00015, "max_grad_norm": 1.0 } },
  "fp16": { "enabled": true, "loss_scale": 0, "loss_scale_window": 1000, "hysteresis": 2, "min_loss_scale": 1 }
})",
     "", "loss-scale-window", "1000"},
    {"pipeline stages", R"({ "train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
      "optimizer": { "type": "Adam", "params": { "lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-8 } },
      "steps_per_print": 10, "wall_clock_breakdown": false })",
     "", "accumulate", "16"},
    {"the engine's pipeline block",
     R"("pipeline": { "stages": "auto", "partition": "best", "seed_layers": false,
      "activation_checkpoint_interval": 0, "pipe_partitioned": true, "grad_partitioned": true })"},
    {"1-bit Adam", R"({ "train_batch_size": 4096, "train_micro_batch_size_per_gpu": 16,
      "optimizer": { "type": "OneBitAdam", "params": { "lr": 4e-4, "freeze_step": 23000, "cuda_aware": false, "comm_backend_name": "nccl" } } })",
     "", "freeze-step", "23000"},
    {"1-bit Lamb",
     R"("optimizer": { "type": "OneBitLamb", "params": { "lr": 11e-3, "max_coeff": 0.3, "min_coeff": 0.01,
      "freeze_step": 1000, "cuda_aware": false, "coeff_beta": 0.9, "factor_max": 4.0, "factor_min": 0.5, "factor_threshold": 0.1 } })",
     "", "factor-bounds", "0.5,4"},
    {"0/1 Adam",
     R"("optimizer": { "type": "ZeroOneAdam", "params": { "lr": 1e-3, "var_freeze_step": 1000, "var_update_scaler": 16,
      "local_step_scaler": 1000, "local_step_clipper": 16 } })",
     "between two sums each rank would have other parameters"},
    {"0/1 Adam, every step synchronized",
     R"({ "optimizer": { "type": "ZeroOneAdam", "params": { "lr": 1e-3, "weight_decay": 0.01, "bias_correction": false, "var_freeze_step": 1000,
      "var_update_scaler": 16, "local_step_scaler": 1000, "local_step_clipper": 1, "cuda_aware": false, "comm_backend_name": "nccl" } } })",
     "", "var-freeze-step", "1000"},
    {"Muon",
     R"("optimizer": { "type": "Muon", "params": { "lr": 2e-5, "momentum": 0.9, "weight_decay": 0, "muon_lr": 2e-5, "adam_lr": 2e-5 } })",
     "the optimizer 'Muon' is not supported"},
    {"layers dropped by chance",
     R"("progressive_layer_drop": { "enabled": true, "theta": 0.5, "gamma": 0.001 })",
     "none is dropped by chance"},
    {"a curriculum",
     R"("curriculum_learning": { "enabled": true, "curriculum_type": "seqlen", "min_difficulty": 8, "max_difficulty": 1024,
      "schedule_type": "fixed_linear", "schedule_config": { "total_curriculum_step": 40000, "difficulty_step": 8 } })",
     "shapes are static"},
    {"data efficiency",
     R"("data_efficiency": { "enabled": true, "seed": 1234, "data_sampling": { "enabled": true } })",
     "token dropping"},
    {"compression",
     R"("compression_training": { "weight_quantization": { "shared_parameters": { "enabled": true, "quantize_groups": 1 } } })",
     "neither quantized nor pruned"},
    {"compression, switched off",
     R"("compression_training": { "weight_quantization": { "shared_parameters": { "enabled": false } } })"},
    {"elasticity",
     R"("elasticity": { "enabled": true, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4, 6], "min_gpus": 1,
      "max_gpus": 10000, "min_time": 20, "ignore_non_elastic_batch_info": false, "version": 0.1 })",
     "compiled for one mesh"},
    {"autotuning, switched off",
     R"("autotuning": { "enabled": false, "results_dir": "r", "exps_dir": "e", "overwrite": false,
      "metric": "throughput", "start_profile_step": 3, "end_profile_step": 5, "fast": true, "max_train_batch_size": null, "mp_size": 1,
      "num_tuning_micro_batch_sizes": 3, "tuner_type": "model_based", "tuner_early_stopping": 5, "tuner_num_trials": 50, "arg_mappings": null })"},
    {"monitors",
     R"({ "tensorboard": { "enabled": true, "output_path": "output/logs/", "job_name": "bert" }
      "csv_monitor": { "enabled": true, "output_path": "output/logs/", "job_name": "bert" } })"},
    {"monitors on the network",
     R"("wandb": { "enabled": true, "group": "g", "team": "t", "project": "p" })",
     "open no connections"},
    {"the FLOPs profiler",
     R"("flops_profiler": { "enabled": true, "profile_step": 1, "module_depth": -1, "top_modules": 1, "detailed": true, "output_file": null })"},
    {"the log of collectives",
     R"("comms_logger": { "enabled": true, "verbose": false, "prof_all": false, "debug": false, "prof_ops": ["all_reduce"] })"},
    {"sparse attention",
     R"("sparse_attention": { "mode": "fixed", "block": 16, "different_layout_per_head": true, "num_local_blocks": 4,
      "num_global_blocks": 1, "attention": "bidirectional", "horizontal_global_attention": false, "num_different_global_patterns": 4 })",
     "", "sparse-attention",
     "mode=fixed,block=16,different_layout_per_head=true,num_local_blocks=4,num_global_blocks=1,"
     "attention=bidirectional,horizontal_global_attention=false,num_different_global_patterns=4"},
    {"tensor parallelism",
     R"({ "train_micro_batch_size_per_gpu": 1, "zero_optimization": { "stage": 2 }, "bf16": { "enabled": true },
      "tensor_parallel": { "autotp_size": 4 } })",
     "", "precision", "bfloat16"},
    {"tensor parallelism by patterns",
     R"("tensor_parallel": { "autotp_size": 4, "partition_config": { "use_default_specs": false,
      "layer_specs": [{ "patterns": [".*\\.o_proj\\.weight$"], "partition_type": "row" }] } })",
     "--shard PATTERN=tp@DIM"},
    {"DeepCompile",
     R"({ "zero_optimization": { "stage": 0 }, "compile": { "deepcompile": true, "passes": ["autosp"], } })"},
    {"universal checkpoints", R"({ "checkpoint": { "load_universal": true } })"},
    {"the hybrid engine",
     R"("hybrid_engine": { "enabled": true, "max_out_tokens": 512, "inference_tp_size": 1 })",
     "--objective none"},
    {"Apex", R"("amp": { "enabled": true, "opt_level": "O1" })", "Apex"},
    {"autocast",
     R"("torch_autocast": { "enabled": true, "dtype": "bfloat16", "lower_precision_safe_modules": ["torch.nn.Linear"] })",
     "autocast"},
    {"types",
     R"({ "bf16": { "enabled": true }, "gradient_accumulation_steps": 4, "communication_data_type": "fp32",
      "data_types": { "grad_accum_dtype": "fp32" } })",
     "", "accumulate-type", "float32"},
    {"Hugging Face, stage 3", R"({
  "fp16": { "enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1 },
  "optimizer": { "type": "AdamW", "params": { "lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto" } },
  "scheduler": { "type": "WarmupLR", "params": { "warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto" } },
  "zero_optimization": { "stage": 3, "offload_optimizer": { "device": "cpu", "pin_memory": true }, "offload_param": { "device": "cpu", "pin_memory": true },
    "overlap_comm": true, "contiguous_gradients": true, "sub_group_size": 1e9, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9,
    "stage3_gather_16bit_weights_on_model_save": true },
  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000,
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "wall_clock_breakdown": false
})",
     "", "precision", ""},
    {"Hugging Face, ZeRO 0 with bfloat16", R"({
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
  "zero_allow_untested_optimizer": true, "bf16": { "enabled": "auto" },
  "zero_optimization": { "stage": 0, "allgather_partitions": true, "allgather_bucket_size": 5e8, "overlap_comm": true, "reduce_scatter": true,
    "reduce_bucket_size": 5e8, "contiguous_gradients": true, "round_robin_gradients": true }
})",
     "", "precision", ""},
};

TEST(Examples, AreAcceptedOrRefusedForAReason) {
  for (const Example &example : kExamples) {
    SCOPED_TRACE(example.about.str());
    Facts facts = withModel(factsOf({{"dp", 2}, {"tp", 4}}));
    bool leavesBatch = !StringRef(example.text).contains("batch_size") ||
                       StringRef(example.text).contains("\"train_batch_size\": \"auto\"");
    if (leavesBatch)
      facts.dims = {{"batch", 8}};
    Outcome outcome = resolveText(example.text, facts);
    if (!example.refused.empty()) {
      EXPECT_FALSE(outcome.ok);
      EXPECT_TRUE(StringRef(outcome.said).contains(example.refused)) << outcome.said;
      EXPECT_EQ(StringRef(outcome.said).count("error:"), 1u) << outcome.said;
      continue;
    }
    EXPECT_TRUE(outcome.ok) << outcome.said;
    if (!example.option.empty())
      EXPECT_EQ(outcome.plan(example.option), example.value.str()) << example.option.str();
    for (const Entry &entry : outcome.resolution.entries) // nothing is ignored silently
      EXPECT_TRUE(entry.key->use != Use::NoEffect || !entry.idle.empty()) << entry.key->path.str();
  }
}
