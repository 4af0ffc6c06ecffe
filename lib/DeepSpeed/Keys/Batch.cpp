//===- Batch.cpp - the batch triple -----------------------------------------------------------===//
//
// train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x data-parallel
// ranks. What the file omits, or gives as "auto", comes from the command line and the model, and
// from the equation. The data-parallel ranks are those of the mesh axes dp and fsdp: the world size
// divided by the other axes.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"

using namespace llvm;
using namespace partita::config;

static constexpr StringLiteral kTrain = "train_batch_size",
                               kMicro = "train_micro_batch_size_per_gpu",
                               kSteps = "gradient_accumulation_steps",
                               kManaged = "managed_gradient_accumulation";

static constexpr int64_t kMostSamples = 1'000'000'000;
static constexpr Key kBatchRows[] = {
    {kTrain, integer(1, kMostSamples), "null", Obeyed,
     "samples per update; equals train_micro_batch_size_per_gpu x gradient_accumulation_steps x "
     "data-parallel ranks (the mesh's dp x fsdp)",
     "the product"},
    {kMicro, integer(1, kMostSamples), "null", Obeyed,
     "samples of a rank in one micro-batch: times dp it is the model's batch dimension (--dim)",
     "--dim of the batch, or the batch of the model's file, divided by dp; else by the equation"},
    {kSteps, integer(1, 1 << 20), "null", Obeyed, "--accumulate; 1 where nothing says otherwise",
     "--accumulate, else by the equation, else 1"},
    {kManaged, boolean, "true", Refused,
     "the program adds up the gradients of its micro-batches itself; a script of yours has no part "
     "in it"},
};

Section partita::config::batchKeys() { return {"Batch", kBatchRows}; }

namespace {

/// A member of the triple, and its origin.
struct Size {
  std::optional<int64_t> value;
  std::string from; ///< empty: the file itself
};

class Triple {
public:
  explicit Triple(Resolver &r) : r(r), dp(r.dataParallel()) {}

  bool solve() {
    r.flag(kManaged);
    if (!readFile() || !readCommandLine() || !readModel())
      return false;
    if (!train.value && !micro.value && !isAnyGiven())
      return true; // the command line's --dim and --accumulate determine everything
    if (!complete())
      return false;
    if (isOpen)
      return true;
    StringRef path = r.has(kTrain) && !r.isAuto(kTrain) ? kTrain : kMicro;
    std::optional<int64_t> all = samples(*micro.value, *steps.value, dp);
    if (!all)
      return r.fail(path, "a step of train_micro_batch_size_per_gpu " + Twine(*micro.value) +
                              " x gradient_accumulation_steps " + Twine(*steps.value) + " x " +
                              ranks() + " has more than " + Twine(kMostSamples) +
                              " samples, the largest train_batch_size");
    if (*train.value != *all)
      return r.fail(path, unequal(*all));
    return write();
  }

private:
  /// Returns the product, unless it exceeds the samples that a step may have.
  static std::optional<int64_t> samples(int64_t micro, int64_t steps, int64_t dp) {
    int64_t all = 0;
    bool isMore = llvm::MulOverflow(micro, steps, all) || llvm::MulOverflow(all, dp, all) ||
                  all > kMostSamples;
    return isMore ? std::nullopt : std::optional(all);
  }

  bool isAnyGiven() { return r.has(kTrain) || r.has(kMicro) || r.has(kSteps); }

  bool readFile() {
    for (auto [path, size] : {std::pair(kTrain, &train), {kMicro, &micro}, {kSteps, &steps}})
      if (r.has(path) && !r.isAuto(path))
        size->value = r.integer(path);
    return true;
  }

  bool readCommandLine() {
    const std::string *accumulate = r.commandLine("accumulate");
    int64_t count;
    if (!accumulate || StringRef(*accumulate).getAsInteger(10, count))
      return true;
    if (steps.value && *steps.value != count)
      return r.fail(kSteps, r.name(kSteps) + " is " + Twine(*steps.value) +
                                ", but the command line says --accumulate " + *accumulate +
                                "; leave one of them out");
    if (!steps.value)
      steps = {count, "command line, --accumulate"};
    return true;
  }

  struct Batch {
    int64_t size;
    std::string from;
    bool isModels; ///< else --dim's
  };
  /// Returns the batch of all ranks: as --dim sets it, or as in the model file.
  std::optional<Batch> globalBatch() const {
    const auto &model = r.facts.model;
    for (const auto &[name, size] : r.facts.dims)
      if (model ? is_contained(model->batchNames, name) || name == model->batchAxis
                : name == "batch")
        return Batch{size, "command line, --dim " + name, false};
    if (model && model->batch)
      return Batch{*model->batch, "model, " + model->path, true};
    return {};
  }

  bool readModel() {
    std::optional<Batch> batch = globalBatch();
    if (!batch)
      return true;
    StringRef what = batch->isModels ? "the model's batch," : "the batch of --dim,";
    if (micro.value && *micro.value * dp != batch->size)
      return r.fail(kMicro, r.name(kMicro) + " " + Twine(*micro.value) + " x " + ranks() + " = " +
                                Twine(*micro.value * dp) + " is not " + what + " " +
                                Twine(batch->size) +
                                ", which is all ranks' together for one micro-step" + why());
    if (micro.value)
      return true;
    if (batch->size % dp != 0)
      return isAnyGiven() ? r.fail(r.has(kMicro)   ? kMicro
                                   : r.has(kTrain) ? kTrain
                                                   : kSteps,
                                   what + " " + Twine(batch->size) + ", is not a multiple of " +
                                       ranks() + why())
                          : true;
    micro = {batch->size / dp, batch->from + " / dp"};
    return true;
  }

  /// Computes what the equation determines. Returns false after an error.
  bool complete() {
    if (train.value && micro.value && !steps.value)
      return divide(steps, kSteps, *micro.value, kMicro);
    if (train.value && !micro.value) {
      if (!steps.value)
        steps = {1, "default"};
      return divide(micro, kMicro, *steps.value, kSteps);
    }
    if (!train.value && micro.value) {
      if (!steps.value)
        steps = {1, "default"};
      train = {samples(*micro.value, *steps.value, dp), equation("x")};
      return true;
    }
    if (train.value)
      return true;
    if (!steps.value)
      steps = {1, "default"};
    if (!steps.from.empty())
      r.value(kSteps, std::to_string(*steps.value), steps.from);
    // Only accumulation is given: --dim has the batch, which is unknown here without a model.
    if (!r.isAuto(kTrain) && !r.isAuto(kMicro)) {
      isOpen = true;
      return r.set(kSteps, "accumulate", std::to_string(*steps.value));
    }
    for (StringRef path : {StringRef(kTrain), StringRef(kMicro)})
      if (r.isAuto(path))
        r.lacks(path, "--dim batch=N");
    isOpen = true;
    return true;
  }

  /// Computes train / (other x dp), which must be an integer.
  bool divide(Size &result, StringRef resultPath, int64_t other, StringRef otherPath) {
    int64_t divisor = other * dp;
    if (*train.value % divisor != 0)
      return r.fail(kTrain, r.name(kTrain) + " " + Twine(*train.value) + " is not a multiple of " +
                                otherPath + " " + Twine(other) + " x " + ranks() + " = " +
                                Twine(divisor) + why());
    result = {*train.value / divisor, equation("/")};
    return true;
  }

  static std::string equation(StringRef sign) {
    return sign == "x" ? "micro-batch x accumulation x dp" : "by the equation";
  }

  /// Returns "dp 4" or, with other axes, "dp 2 (8 ranks / tp 4)".
  std::string ranks() const {
    std::string text = "dp " + std::to_string(dp), others;
    for (const auto &[axis, size] : r.facts.mesh)
      if (axis != "dp" && axis != "fsdp")
        others += " / " + axis + " " + std::to_string(size);
    if (r.size("fsdp") > 1)
      text += " (dp " + std::to_string(r.size("dp")) + " x fsdp " + std::to_string(r.size("fsdp")) +
              ")";
    return others.empty() ? text
                          : text + " (" + std::to_string(r.world()) + " ranks" + others + ")";
  }

  /// Adds the most likely cause.
  std::string why() const {
    return r.facts.mesh.empty() ? "; dp is 1 because no --mesh is given" : "";
  }

  std::string unequal(int64_t product) const {
    std::string text = "train_batch_size " + std::to_string(*train.value) +
                       " is not train_micro_batch_size_per_gpu " + std::to_string(*micro.value) +
                       " x gradient_accumulation_steps " + std::to_string(*steps.value) + " x " +
                       ranks() + " = " + std::to_string(product) + why();
    int64_t perRank = *micro.value * *steps.value;
    if (*train.value % perRank == 0 && *train.value / perRank > 1)
      text += "; it is with dp " + std::to_string(*train.value / perRank);
    return text;
  }

  bool write() {
    for (auto [path, size] : {std::pair(kTrain, &train), {kMicro, &micro}, {kSteps, &steps}})
      if (!size->from.empty())
        r.value(path, std::to_string(*size->value), size->from);
    if (r.facts.model && !globalBatch())
      for (const std::string &name : r.facts.model->batchNames)
        r.out.dims.push_back({name, *micro.value * dp});
    return r.set(kSteps, "accumulate", std::to_string(*steps.value));
  }

  Resolver &r;
  int64_t dp;
  Size train, micro, steps;
  bool isOpen = false; ///< without a model there is no batch to divide
};

} // namespace

bool partita::config::resolveBatch(Resolver &r) { return Triple(r).solve(); }
