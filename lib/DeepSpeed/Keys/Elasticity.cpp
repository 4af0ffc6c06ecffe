//===- Elasticity.cpp - elastic training, autotuning ------------------------------------------===//

#include "lib/DeepSpeed/Rows.h"

using namespace partita::config;

static constexpr llvm::StringLiteral kElastic = "with elasticity.enabled, which is refused",
                                     kTuning = "with autotuning.enabled, which is refused";
static constexpr Key kElasticityRows[] = {
    {"elasticity", block, "{}", NoEffect, "batch sizes that fit many numbers of ranks"},
    {"elasticity.enabled", boolean, "false", Refused,
     "a program is compiled for one mesh and batch; partita compile --elastic dp=2..8 compiles for "
     "several sizes with one batch, and a checkpoint goes on under any of them"},
    {"elasticity.max_train_batch_size", integer(1), "2000", NoEffect, kElastic},
    {"elasticity.micro_batch_sizes", anything, "[2, 4, 6]", NoEffect, kElastic},
    {"elasticity.min_gpus", integer(1), "1", NoEffect, kElastic},
    {"elasticity.max_gpus", integer(1), "10000", NoEffect, kElastic},
    {"elasticity.min_time", integer(0), "0", NoEffect, kElastic},
    {"elasticity.prefer_larger_batch", boolean, "true", NoEffect, kElastic},
    {"elasticity.ignore_non_elastic_batch_info", boolean, "false", NoEffect, kElastic},
    {"elasticity.version", number(0), "0.2", NoEffect, kElastic},
    {"elasticity.model_parallel_size", integer(1), "1", NoEffect, kElastic},
    {"elasticity.num_gpus_per_node", integer(1), "1", NoEffect, kElastic},
    {"autotuning", block, "{}", NoEffect, "searches for the fastest configuration with trial runs"},
    {"autotuning.enabled", boolean, "false", Refused,
     "no runs are tried; --memory-limit SIZE says which changes of the plan fit, with what each "
     "costs"},
    {"autotuning.metric", choice("latency|throughput|flops"), "\"throughput\"", NoEffect, kTuning},
    {"autotuning.metric_path", text, "null", NoEffect, kTuning},
    {"autotuning.start_profile_step", integer(0), "3", NoEffect, kTuning},
    {"autotuning.end_profile_step", integer(0), "5", NoEffect, kTuning},
    {"autotuning.start_step", integer(0), "null", NoEffect, kTuning},
    {"autotuning.end_step", integer(0), "null", NoEffect, kTuning},
    {"autotuning.fast", boolean, "true", NoEffect, kTuning},
    {"autotuning.results_dir", text, "null", NoEffect, kTuning},
    {"autotuning.exps_dir", text, "null", NoEffect, kTuning},
    {"autotuning.overwrite", boolean, "true", NoEffect, kTuning},
    {"autotuning.arg_mappings", anything, "null", NoEffect, kTuning},
    {"autotuning.tuner_type", choice("gridsearch|random|model_based"), "\"model_based\"", NoEffect,
     kTuning},
    {"autotuning.tuner_early_stopping", integer(1), "5", NoEffect, kTuning},
    {"autotuning.tuner_num_trials", integer(1), "50", NoEffect, kTuning},
    {"autotuning.num_tuning_micro_batch_sizes", integer(1), "3", NoEffect, kTuning},
    {"autotuning.max_train_batch_size", integer(1), "null", NoEffect, kTuning},
    {"autotuning.min_train_batch_size", integer(1), "1", NoEffect, kTuning},
    {"autotuning.max_train_micro_batch_size_per_gpu", integer(1), "1024", NoEffect, kTuning},
    {"autotuning.min_train_micro_batch_size_per_gpu", integer(1), "1", NoEffect, kTuning},
    {"autotuning.mp_size", integer(1), "1", NoEffect, kTuning},
    {"autotuning.model_info", anything, "null", NoEffect, kTuning},
    {"autotuning.model_info_path", text, "null", NoEffect, kTuning},
};

Section partita::config::elasticityKeys() { return {"Elasticity and autotuning", kElasticityRows}; }
