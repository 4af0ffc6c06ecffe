//===- TensorParallel.cpp - tensor and sequence parallelism -----------------------------------===//
//
// The command line gives the mesh; sizes in the file must equal the mesh's.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

static constexpr StringLiteral kAuto = "tensor_parallel.autotp_size",
                               kSize = "tensor_parallel.tp.tp_size",
                               kSequence = "sequence_parallel_size";

static constexpr Key kTensorParallelRows[] = {
    {"tensor_parallel", checkedBlock, "{}", Obeyed,
     "how weights are split follows from the model's structure, with --mesh tp=SIZE"},
    {kAuto, integer(0, 65536), "0", Obeyed, "must equal the mesh's axis tp"},
    {"tensor_parallel.tp_overlap_comm", boolean, "false", NoEffect,
     "sums of the backward pass always overlap with the gradients of weights; those of the forward "
     "pass do with --overlap-chunks"},
    {"tensor_parallel.preset_model", choice("llama|bloom|chatglm|mixtral|deepseek_v2|qwen2|phi3"),
     "null", NoEffect,
     "how weights are split follows from the model's structure, not from its name"},
    {"tensor_parallel.dtype", anything, "\"fp16\"", NoEffect, "parameters have --precision's type"},
    {"tensor_parallel.partition_config", block, "null", Refused,
     "how weights are split follows from the model's structure; --shard PATTERN=tp@DIM,... says "
     "otherwise"},
    {"tensor_parallel.partition_config.use_default_specs", boolean, "false", Part,
     "of partition_config"},
    {"tensor_parallel.partition_config.layer_specs", anything, "[]", Part, "of partition_config"},
    {"tensor_parallel.tp", block, "{}", Obeyed, "sizes"},
    {kSize, integer(1, 65536), "1", Obeyed, "must equal the mesh's axis tp"},
    {"tensor_parallel.tp.tp_grain_size", integer(1), "1", NoEffect,
     "what does not divide is padded, or an error that says so"},
    {kSequence, integer(1, 65536), "1", Obeyed,
     "must equal the size of mesh axis ulysses; on a mesh without that axis, the size of cp, and then it sets --context-parallel all-to-all"},
    {"use_data_before_expert_parallelism", boolean, "false", NoEffect,
     "expert parallelism is not supported"},
};

Section partita::config::tensorParallelKeys() {
  return {"Tensor and sequence parallelism", kTensorParallelRows};
}

/// Fails unless the mesh's axis has this size.
static bool checkAxis(Resolver &r, StringRef path, int64_t size, StringRef axis,
                      const std::string &mesh) {
  int64_t ranks = r.size(axis);
  if (size == ranks)
    return true;
  return r.fail(path, r.name(path) + " is " + Twine(size) + ", but the mesh" +
                          (r.facts.mesh.empty()
                               ? std::string(" is one rank, as no --mesh is given")
                               : "'s axis " + axis.str() + " has " + std::to_string(ranks) +
                                     (ranks == 1 ? " rank" : " ranks")) +
                          "; give --mesh " + mesh);
}

/// Checks the size; 0 and 1 request nothing.
static bool checkTensor(Resolver &r, StringRef path) {
  int64_t size = r.integer(path);
  return !r.has(path) || size <= 1 ||
         checkAxis(r, path, size, "tp", "dp=N,tp=" + std::to_string(size));
}

/// DeepSpeed has no other way to split a sequence than Ulysses'.
static bool checkSequence(Resolver &r) {
  int64_t size = r.integer(kSequence);
  if (!r.has(kSequence) || size <= 1)
    return true;
  if (r.size("ulysses") > 1)
    return checkAxis(r, kSequence, size, "ulysses", "dp=N,ulysses=" + std::to_string(size));
  return checkAxis(r, kSequence, size, "cp", "dp=N,cp=" + std::to_string(size)) &&
         (r.commandLine("context-parallel") || r.set(kSequence, "context-parallel", "all-to-all"));
}

bool partita::config::resolveTensorParallel(Resolver &r) {
  for (StringRef path : {"tensor_parallel", "tensor_parallel.tp"})
    r.find(path);
  return checkTensor(r, kAuto) && checkTensor(r, kSize) && checkSequence(r);
}
