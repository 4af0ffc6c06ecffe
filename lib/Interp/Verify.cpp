//===- Verify.cpp - is the partitioned program equal to the unpartitioned one? ----------------===//

#include "partita/Interp/Verify.h"
#include "dialects/Amp/Amp.h"
#include "dialects/Par/OneBit.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Interp/ComparedProgram.h"
#include "lib/Interp/Execution.h"
#include "lib/Interp/OneBitReference.h"
#include "lib/Interp/Undecided.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <sys/resource.h>
#include <unistd.h>

using namespace mlir;
using namespace partita;
using namespace partita::interp;

namespace {

/// max |a - b|; infinite where shapes differ or a number is not finite on one side alone.
double distance(const Tensor &a, const Tensor &b) {
  if (a.shape != b.shape || a.isReal != b.isReal)
    return INFINITY;
  double worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (a.number(i) == b.number(i)) // the same infinity too
      continue;
    double difference = std::abs(a.number(i) - b.number(i));
    if (!std::isfinite(difference))
      return INFINITY;
    worst = std::max(worst, difference);
  }
  return worst;
}

/// Of the finite elements.
double largest(const Tensor &tensor) {
  double result = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (std::isfinite(tensor.number(i)))
      result = std::max(result, std::abs(tensor.number(i)));
  return result;
}

int64_t countNaN(const Tensor &tensor) {
  return llvm::count_if(tensor.reals, [](double number) { return std::isnan(number); });
}

class Comparison {
public:
  explicit Comparison(ModuleOp full) : fullModule(full) {}

  /// Measures tensors of one kind by name. Where the whole program computes NaN, no plan can be
  /// equal to it or differ from it: an error.
  LogicalResult add(StringRef kind, const Named &partitioned, const Named &full) {
    double scale = 0;
    for (auto &[name, tensor] : full) {
      if (int64_t count = countNaN(tensor))
        return fullModule.emitError()
               << "the unpartitioned program itself computes NaN, in " << count << " of "
               << tensor.size() << " elements of " << kind << " '" << name
               << "': there is nothing to compare; other values (--seed, --init) may help";
      scale = std::max(scale, largest(tensor));
    }
    for (auto &[name, b] : full) {
      auto a = partitioned.find(name);
      double difference = a == partitioned.end() ? INFINITY : distance(a->second, b);
      note(kind, name, difference == 0 ? 0 : difference / std::max(largest(b), 1e-3 * scale));
    }
    for (auto &[name, tensor] : partitioned)
      if (!full.count(name))
        note(kind, name, INFINITY);
    return success();
  }

  VerifyReport report(std::optional<double> loss) const {
    VerifyReport result;
    for (auto &[key, error] : worst)
      result.entries.push_back({key.first, key.second, error});
    llvm::sort(result.entries, [](const auto &a, const auto &b) {
      return std::tie(b.error, a.kind, a.name) < std::tie(a.error, b.kind, b.name);
    });
    result.loss = loss;
    return result;
  }

private:
  void note(StringRef kind, const std::string &name, double error) {
    double &slot = worst[{kind.str(), name}];
    slot = std::max(slot, error);
  }
  ModuleOp fullModule;
  std::map<std::pair<std::string, std::string>, double> worst;
};

} // namespace

static LogicalResult compareCall(Comparison &comparison, ComparedProgram &full,
                                 ComparedProgram &partitioned, train::EntryPoint entry,
                                 uint64_t seed, double *loss = nullptr,
                                 llvm::function_ref<LogicalResult()> between = {}) {
  auto inputs = modelInputs(full.function(entry), seed);
  if (failed(inputs))
    return failure();
  auto a = partitioned.call(entry, *inputs);
  if (failed(a) || (between && failed(between())))
    return failure();
  auto b = full.call(entry, *inputs);
  if (failed(b))
    return failure();
  for (auto &[name, value] : *b)
    if (failed(comparison.add("result", {{name, (*a)[name]}}, {{name, value}})))
      return failure();
  if (loss && !b->empty() && b->begin()->second.size() == 1)
    *loss = b->begin()->second.number(0);
  return success();
}

/// Calls f with each state of a program's compressed sums: what they leave out, and the factor of their gradients.
template <typename F> static void eachStateOfSums(ComparedProgram &program, F f) {
  auto visit = [&](Value value) {
    if (train::StateOp state = train::stateReadBy(value))
      f(state);
  };
  for (Interpreter &stage : program.stages()) {
    stage.module().walk([&](par::OneBitAllReduceOp sum) {
      llvm::for_each(sum.getWorkers(), visit);
      llvm::for_each(sum.getServers(), visit);
    });
    stage.module().walk([&](par::OneBitClipOp clip) { visit(clip.getTypical()); });
  }
}

static LogicalResult compareParameters(Comparison &comparison, ComparedProgram &full,
                                       ComparedProgram &partitioned) {
  auto b = full.parameters(), a = partitioned.parameters();
  if (failed(a) || failed(b))
    return failure();
  return comparison.add("parameter", *a, *b);
}

/// The whole program, in 32 bits, has no maxima of 8-bit numbers; nor states of sums that it does not compress. `errors`: what it would have of these.
static LogicalResult compareStates(Comparison &comparison, ComparedProgram &full,
                                   ComparedProgram &partitioned, const Named &errors) {
  auto b = full.states(), a = partitioned.states();
  if (failed(a) || failed(b))
    return failure();
  b->insert(errors.begin(), errors.end());
  std::string maxima = amp::AmpDialect::kMaxima.str();
  if (b->find(maxima) == b->end())
    a->erase(maxima);
  eachStateOfSums(partitioned, [&](train::StateOp state) {
    if (std::string name = state.getSymName().str(); !b->count(name))
      a->erase(name);
  });
  return comparison.add("state", *a, *b);
}

/// Without rounding a master is its parameter, which the whole program has in 32 bits.
static LogicalResult compareMasters(Comparison &comparison, ComparedProgram &full,
                                    ComparedProgram &partitioned) {
  auto masters = partitioned.masters();
  auto parameters = full.parameters();
  if (failed(masters) || failed(parameters))
    return failure();
  Named expected;
  for (auto &[name, value] : *masters)
    expected[name] = std::move((*parameters)[name]);
  return comparison.add("master", *masters, expected);
}

/// The functions of inference that both programs have.
static LogicalResult compareForward(Comparison &comparison, ComparedProgram &full,
                                    ComparedProgram &partitioned, uint64_t seed) {
  for (auto entry : {train::EntryPoint::Forward, train::EntryPoint::EvalStep})
    if (full.has(entry) && partitioned.has(entry) &&
        failed(compareCall(comparison, full, partitioned, entry, seed)))
      return failure();
  return success();
}

/// The gradients of a step. Where momenta are averaged in place of gradients, an update's operand is the momentum.
static LogicalResult compareGradients(Comparison &comparison, ComparedProgram &full,
                                      ComparedProgram &partitioned,
                                      const OneBitReference *reference) {
  auto b = full.gradients(), a = partitioned.gradients();
  if (failed(a) || failed(b))
    return failure();
  if (b->empty())
    return full.module().emitError()
           << "the entry point '" << train::nameOf(train::EntryPoint::TrainStep)
           << "' updates no parameter";
  if (reference) {
    Named momenta;
    for (const auto &[parameter, momentum] : reference->momenta()) {
      momenta[parameter] = std::move((*a)[parameter]);
      (*a)[parameter] = reference->terms().at(parameter);
      (*b)[parameter] = reference->gradients().at(parameter);
    }
    if (failed(comparison.add("momentum", momenta, reference->momenta())))
      return failure();
  }
  return comparison.add("gradient", *a, *b);
}

/// What steps leave behind.
static LogicalResult compareStored(Comparison &comparison, ComparedProgram &full,
                                   ComparedProgram &partitioned, const OneBitReference *reference) {
  FailureOr<Named> errors = reference ? reference->errors() : Named();
  return success(succeeded(errors) && succeeded(compareParameters(comparison, full, partitioned)) &&
                 succeeded(compareStates(comparison, full, partitioned, *errors)) &&
                 succeeded(compareMasters(comparison, full, partitioned)));
}

/// Gives the whole program the partitioned one's parameters and states, as far as it has them.
static LogicalResult adopt(ComparedProgram &full, ComparedProgram &partitioned) {
  auto parameters = partitioned.parameters(), masters = partitioned.masters(),
       states = partitioned.states(), own = full.states();
  if (failed(parameters) || failed(masters) || failed(states) || failed(own))
    return failure();
  for (auto &[name, master] : *masters)
    (*parameters)[name] = std::move(master);
  for (auto &[name, state] : *states)
    if (own->count(name))
      (*parameters)[name] = std::move(state);
  for (auto &[name, value] : *parameters)
    if (failed(full.interpreter().setParameter(name, value)))
      return failure();
  return success();
}

/// Optimizer steps: their losses, gradients, and what they leave behind.
static LogicalResult compareTraining(Comparison &comparison, ComparedProgram &full,
                                     ComparedProgram &partitioned, const VerifyOptions &options,
                                     Undecided &undecided, OneBitReference *reference,
                                     std::optional<double> &loss) {
  loss = 0;
  for (int64_t step = 1; step <= options.steps; ++step) {
    full.setStep(step);
    partitioned.setStep(step);
    auto prepare = [&] { return reference ? reference->prepare(step) : success(); };
    if (failed(compareCall(comparison, full, partitioned, train::EntryPoint::TrainStep,
                           options.seed + step - 1, &*loss, prepare)) ||
        failed(compareGradients(comparison, full, partitioned, reference)) ||
        failed(undecided.settle(full.interpreter(), partitioned.stages())))
      return failure();
    // Where a momentum is far from a variance's root, steps are long and training may diverge, which magnifies rounding: a compressed step begins
    // with equal values.
    if (reference && (reference->compresses(step) || reference->compresses(step + 1)) &&
        (failed(compareStored(comparison, full, partitioned, reference)) ||
         failed(adopt(full, partitioned)) || failed(reference->adoptErrors())))
      return failure();
  }
  return compareStored(comparison, full, partitioned, reference);
}

/// How far all parameters have gone since `before`, and how far apart they are now: Euclidean norms.
static LogicalResult measureWay(const Named &before, ComparedProgram &full,
                                ComparedProgram &partitioned, VerifyReport &report) {
  auto b = full.parameters(), a = partitioned.parameters();
  if (failed(a) || failed(b))
    return failure();
  double way = 0, apart = 0;
  for (const auto &[name, value] : *b)
    for (int64_t i = 0; i < value.size(); ++i)
      way += std::pow(value.number(i) - before.at(name).number(i), 2);
  for (const auto &[name, value] : *a)
    if (auto expected = b->find(name);
        expected != b->end() && value.shape == expected->second.shape)
      for (int64_t i = 0; i < value.size(); ++i)
        apart += std::pow(value.number(i) - expected->second.number(i), 2);
  report.way = std::sqrt(way), report.apart = std::sqrt(apart);
  return success();
}

/// Bytes of the values of a block that live at once, in double precision, each once however many
/// ranks have it: less than this no execution needs.
static double liveBytes(Block &block) {
  auto bytes = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? 8.0 * double(par::fullType(type).getNumElements()) : 0;
  };
  llvm::DenseMap<Operation *, double> freed;
  double live = 0, most = 0;
  auto begin = [&](Value value) {
    Operation *last = lastUse(block, value);
    if (!last)
      return;
    live += bytes(value);
    freed[last] += bytes(value);
  };
  llvm::for_each(block.getArguments(), begin);
  for (Operation &op : block) {
    llvm::for_each(op.getResults(), begin);
    double inner = 0;
    for (Region &region : op.getRegions())
      for (Block &each : region)
        inner = std::max(inner, liveBytes(each));
    most = std::max(most, live + inner);
    live -= freed.lookup(&op);
  }
  return most;
}

/// Before hours of swapping, or the end by a signal.
static LogicalResult checkMemory(ModuleOp module) {
  double memory = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    memory = std::min(memory, double(limit.rlim_cur));
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.getBody().empty())
      continue;
    double needed = liveBytes(function.getBody().front());
    if (needed > memory)
      return function.emitError() << llvm::formatv(
                 "'{0}' needs at least {1:f1} GiB in double precision, there are {2:f1} GiB of "
                 "memory; smaller --dim sizes prove the same of the plan",
                 function.getName(), needed / 0x1p30, memory / 0x1p30);
  }
  return success();
}

FailureOr<VerifyReport> partita::interp::comparePrograms(ModuleOp fullModule,
                                                         ModuleOp partitionedModule,
                                                         const VerifyOptions &options) {
  FailureOr<ComparedProgram> fullSide = ComparedProgram::of(fullModule, options),
                             partitionedSide = ComparedProgram::of(partitionedModule, options);
  if (failed(fullSide) || failed(partitionedSide))
    return failure();
  ComparedProgram &full = *fullSide, &partitioned = *partitionedSide;
  bool trains =
      full.has(train::EntryPoint::TrainStep) || partitioned.has(train::EntryPoint::TrainStep);
  for (ComparedProgram *side : {&full, &partitioned}) {
    train::EntryPoint needed = trains ? train::EntryPoint::TrainStep : train::EntryPoint::Forward;
    if (!side->has(needed))
      return side->module().emitError() << "has no @" << train::nameOf(needed) << " to compare"
                                        << (trains ? ", and the other program has one" : "")
                                        << train::hintFor(side->module(), needed);
  }
  if (failed(checkMemory(fullModule)) || failed(full.initialize(options.values)) ||
      failed(partitioned.initialize(options.values)))
    return failure();
  Comparison comparison(fullModule);
  Undecided undecided(options.tolerance);
  std::optional<OneBitReference> reference;
  if (!options.measuresDistance && par::hasOneBitSums(partitionedModule))
    reference.emplace(full, partitioned);
  std::optional<double> loss;
  FailureOr<Named> before = options.measuresDistance ? full.parameters() : Named();
  if (failed(before) || failed(compareForward(comparison, full, partitioned, options.seed)) ||
      (trains && failed(compareTraining(comparison, full, partitioned, options, undecided,
                                        reference ? &*reference : nullptr, loss))))
    return failure();
  VerifyReport report = comparison.report(loss);
  if (options.measuresDistance && trains && failed(measureWay(*before, full, partitioned, report)))
    return failure();
  if (reference) {
    report.followedElements = reference->elements;
    report.followedParameters = static_cast<int64_t>(reference->parameters.size());
  }
  report.undecidedElements = undecided.elements;
  report.undecidedParameters = static_cast<int64_t>(undecided.parameters.size());
  return report;
}

void VerifyReport::print(llvm::raw_ostream &os, size_t most) const {
  os << "  error     kind       name\n";
  for (const Entry &entry : llvm::ArrayRef(entries).take_front(most))
    os << "  " << llvm::format("%-8.1e", entry.error) << "  " << llvm::left_justify(entry.kind, 9)
       << "  " << entry.name << "\n";
  if (entries.size() > most)
    os << "  and " << entries.size() - most << " more, none worse\n";
  if (undecidedElements > 0)
    os << "  " << undecidedElements << " element(s) of " << undecidedParameters
       << " parameter(s) have gradients that are zero but for rounding; their updates are compared "
          "within it\n";
  if (followedElements > 0)
    os << "  " << followedElements << " element(s) of " << followedParameters
       << " parameter(s) are zero but for rounding, and sent with another sign than the "
          "reference's; either passes\n";
}
