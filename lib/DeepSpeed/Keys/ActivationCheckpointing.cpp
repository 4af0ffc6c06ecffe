//===- ActivationCheckpointing.cpp - recomputation --------------------------------------------===//
//
// DeepSpeed's block describes how checkpointed activations are kept. Which ones are checkpointed is
// decided by the model's code there, and by --recompute here.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

#define BLOCK "activation_checkpointing."

static constexpr StringLiteral kPartition = BLOCK "partition_activations",
                               kHost = BLOCK "cpu_checkpointing",
                               kContiguous = BLOCK "contiguous_memory_optimization",
                               kCount = BLOCK "number_checkpoints";

static constexpr Key kActivationCheckpointingRows[] = {
    {"activation_checkpointing", block, "{}", Obeyed,
     "how recomputed activations are kept; --recompute says which are recomputed"},
    {kPartition, boolean, "false", Obeyed,
     "--recompute-partition: each tensor-parallel rank keeps a shard of what all would keep; an "
     "error without --recompute"},
    {kHost, boolean, "false", Obeyed, "--offload activations"},
    {kContiguous, boolean, "false", Obeyed,
     "every buffer has its place in one arena in any case; needs number_checkpoints and "
     "partition_activations, as in DeepSpeed"},
    {kCount, integer(1), "null", NoEffect, "what is kept is known at compile time"},
    {BLOCK "synchronize_checkpoint_boundary", boolean, "false", NoEffect,
     "there is nothing to synchronize where layers meet"},
    {BLOCK "profile", boolean, "false", NoEffect,
     "'partita explain --memory' says what recomputation keeps"},
};

Section partita::config::activationCheckpointingKeys() {
  return {"Activation checkpointing", kActivationCheckpointingRows};
}

static bool recomputes(const Resolver &r) {
  std::string kind = r.planned("recompute"), budget = r.planned("recompute-budget");
  return (!kind.empty() && kind != "none") || (!budget.empty() && budget != "0");
}

bool partita::config::resolveActivationCheckpointing(Resolver &r) {
  r.find("activation_checkpointing");
  if (r.flag(kContiguous)) {
    if (!r.isGiven(kCount) || !r.flag(kPartition))
      return r.fail(kContiguous, r.name(kContiguous) + " needs " +
                                     (r.isGiven(kCount) ? "\"partition_activations\": true"
                                                        : "\"number_checkpoints\"") +
                                     ", as in DeepSpeed; here every buffer has its place in one "
                                     "arena without it");
    r.idle(kContiguous, "every buffer has its place in one arena in any case");
  }
  if (r.flag(kPartition)) {
    if (!recomputes(r))
      return r.fail(kPartition, r.name(kPartition) +
                                    " has no effect without --recompute selective or block, "
                                    "which says what is recomputed and what is kept");
    if (r.size("tp") == 1)
      r.idle(kPartition, "there is one tensor-parallel rank");
    else if (!r.set(kPartition, "recompute-partition", "true"))
      return false;
  }
  if (!r.flag(kHost))
    return true;
  if (const std::string *said = r.commandLine("offload");
      said && !StringRef("," + *said + ",").contains(",activations,"))
    return r.fail(kHost, r.name(kHost) +
                             " asks for activations on the host, but the command line "
                             "says --offload " +
                             *said + "; leave one of them out");
  r.offload(kHost, "activations");
  return true;
}
