//===- Keys.cpp - finds rows of keys ----------------------------------------------------------===//

#include "partita/DeepSpeed/Keys.h"
#include "lib/DeepSpeed/Rows.h"
#include "partita/DeepSpeed/Document.h"
#include "partita/Support/NearestNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace partita::config;

ArrayRef<Section> partita::config::sections() {
  static const Section all[] = {batchKeys(),      stepKeys(),
                                precisionKeys(),  optimizerKeys(),
                                schedulerKeys(),  zeroKeys(),
                                offloadKeys(),    activationCheckpointingKeys(),
                                monitorKeys(),    tensorParallelKeys(),
                                pipelineKeys(),   checkpointKeys(),
                                compileKeys(),    sparseAttentionKeys(),
                                elasticityKeys(), outOfScopeKeys()};
  return all;
}

std::vector<const Key *> partita::config::allKeys() {
  std::vector<const Key *> keys;
  for (const Section &section : sections())
    for (const Key &key : section.keys)
      keys.push_back(&key);
  return keys;
}

const Key *partita::config::findKey(StringRef path) {
  static const StringMap<const Key *> byPath = [] {
    StringMap<const Key *> map;
    for (const Key *key : allKeys())
      map[key->path] = key;
    return map;
  }();
  return byPath.lookup(path);
}

static constexpr Alias kAliases[] = {
    {"bfloat16", "bf16"},
    {"bf16.check_overflow", "bf16.check_grad_overflow"},
    {"aio.thread_count", "aio.intra_op_parallelism"},
    {"zero_optimization.stage3_gather_fp16_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization.gather_16bit_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization.prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"},
    {"zero_optimization.param_persistence_threshold",
     "zero_optimization.stage3_param_persistence_threshold"},
    {"zero_optimization.model_persistence_threshold",
     "zero_optimization.stage3_model_persistence_threshold"},
    {"zero_optimization.max_live_parameters", "zero_optimization.stage3_max_live_parameters"},
    {"zero_optimization.max_reuse_distance", "zero_optimization.stage3_max_reuse_distance"},
    {"zero_optimization.module_granularity_threshold",
     "zero_optimization.stage3_module_granularity_threshold"},
    {"zero_optimization.use_all_reduce_for_fetch_params",
     "zero_optimization.stage3_use_all_reduce_for_fetch_params"},
    {"zero_optimization.allgather_sequential", "zero_optimization.stage3_allgather_sequential"},
};

ArrayRef<Alias> partita::config::aliases() { return kAliases; }

const Key *partita::config::nearestKey(StringRef path) {
  StringRef name = path.substr(path.rfind('.') + 1),
            block = path.contains('.') ? path.rsplit('.').first : StringRef();
  auto nearestOf = [&](ArrayRef<const Key *> keys, unsigned farthest) -> const Key * {
    auto names = map_to_vector(keys, [](const Key *key) { return key->name(); });
    StringRef best = nearestName(name, names, farthest);
    auto found = find_if(keys, [&](const Key *key) { return key->name() == best; });
    return found == keys.end() ? nullptr : *found;
  };
  std::vector<const Key *> all = allKeys(), beside;
  copy_if(all, std::back_inserter(beside), [&](const Key *key) { return key->block() == block; });
  if (const Key *key = nearestOf(beside, farthestError(name)))
    return key;
  // The right word in another block, or nearly so; not one that several blocks have, of which none is meant.
  const Key *other = nearestOf(all, farthestError(name) / 2);
  bool isOnlyOne =
      other && count_if(all, [&](const Key *key) { return key->name() == other->name(); }) == 1;
  return isOnlyOne ? other : nullptr;
}

std::string partita::config::describeShape(const Shape &shape) {
  auto bounds = [&](StringRef what) {
    std::string result = what.str();
    if (shape.high >= kMost)
      return shape.low <= -kMost ? result : result + " of at least " + numberText(shape.low);
    return result + " from " + numberText(shape.low) + " to " + numberText(shape.high);
  };
  switch (shape.kind) {
  case Shape::Boolean:
    return "true or false";
  case Shape::Integer:
    return bounds("an integer");
  case Shape::Number:
    return bounds("a number");
  case Shape::Text:
    return "a string";
  case Shape::Choice: {
    SmallVector<StringRef> words;
    shape.values.split(words, '|');
    return "one of " + join(words, ", ");
  }
  case Shape::Betas:
    return "two numbers, each at least 0 and below 1";
  case Shape::Anything:
    return "any value";
  case Shape::Block:
  case Shape::Foreign:
    return "a block";
  }
  return {};
}
