//===- OutOfScope.cpp - blocks that change the training itself --------------------------------===//
//
// Accepts these blocks if they are disabled, whatever they contain.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Rows.h"

using namespace partita::config;

static constexpr Key kOutOfScopeRows[] = {
    {"progressive_layer_drop", foreign, "{}", Refused,
     "the model's file says which layers run; none is dropped by chance"},
    {"progressive_layer_drop.enabled", boolean, "false", Part, "of progressive_layer_drop"},
    {"progressive_layer_drop.theta", number(0, 1), "1.0", Part, "of progressive_layer_drop"},
    {"progressive_layer_drop.gamma", number(0), "0.001", Part, "of progressive_layer_drop"},
    {"expert_parallel", foreign, "{}", Refused, "expert parallelism is not supported"},
    {"datastates_ckpt", foreign, "{}", Refused, "checkpoints go to a folder: run --checkpoint DIR"},
    {"curriculum_learning", foreign, "{}", Refused,
     "shapes are static: compile a program per sequence length, and run each with --resume"},
    {"data_efficiency", foreign, "{}", Refused,
     "data are read in the order of --seed; sampling and token dropping are not supported"},
    {"eigenvalue", foreign, "{}", Refused,
     "its only use, mixture of quantization, is not supported"},
    {"quantize_training", foreign, "{}", Refused, "there is no training with quantized weights"},
    {"compression_training", foreign, "{}", Refused,
     "weights are neither quantized nor pruned while they are trained"},
    {"hybrid_engine", foreign, "{}", Refused,
     "a program either trains or infers: compile the model with --objective none for inference"},
    {"nebula", foreign, "{}", Refused, "checkpoints go to a folder: run --checkpoint DIR"},
    {"weight_quantization", foreign, "{}", Refused, "weights are not quantized"},
};

Section partita::config::outOfScopeKeys() {
  return {"Training methods that are out of scope", kOutOfScopeRows};
}
