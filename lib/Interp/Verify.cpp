//===- Verify.cpp - is the partitioned program equal to the unpartitioned one? ----------------===//

#include "partita/Interp/Verify.h"
#include "dialects/Amp/Amp.h"
#include "dialects/Par/OneBit.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "lib/Interp/Execution.h"
#include "lib/Interp/Undecided.h"
#include "partita/Interp/Stages.h"
#include "runtime/include/partita_rt/state_names.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <sys/resource.h>
#include <unistd.h>

using namespace mlir;
using namespace partita;
using namespace partita::interp;

namespace {

using Named = std::map<std::string, Tensor>;

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

/// NaN is the same as NaN: that the whole program computes it is reported where it is compared.
bool isSame(const Tensor &a, const Tensor &b) {
  if (a.shape != b.shape || a.isReal != b.isReal)
    return false;
  return llvm::all_of(llvm::seq<int64_t>(0, a.size()), [&](int64_t i) {
    double x = a.number(i), y = b.number(i);
    return x == y || (std::isnan(x) && std::isnan(y));
  });
}

/// One program, perhaps of several pipeline stages: its values by name.
struct Side {
  explicit Side(StageInterpreter program, ModuleOp module)
      : program(std::move(program)), theModule(module) {}

  static FailureOr<Side> of(ModuleOp module, const VerifyOptions &options) {
    // As transports may: no send is complete before its receive has begun.
    auto program = StageInterpreter::create(module, options.interpreter, /*blockingSends=*/true);
    return failed(program) ? FailureOr<Side>() : Side(std::move(*program), module);
  }

  ModuleOp module() { return theModule; }
  /// Of a program that is not cut into stages.
  Interpreter &interpreter() { return program.stages.front(); }
  void setStep(int64_t step) {
    for (Interpreter &stage : program.stages)
      stage.options.stepNumber = step;
  }
  LogicalResult initialize(const InitialValues &values) {
    return success(llvm::all_of(program.stages, [&](Interpreter &stage) {
      return succeeded(interp::initialize(stage, values));
    }));
  }

  /// The first stage's: all have the same arguments.
  func::FuncOp function(train::EntryPoint entry) {
    return train::lookup<func::FuncOp>(interpreter().module(), entry);
  }
  bool has(train::EntryPoint entry) { return static_cast<bool>(function(entry)); }

  FailureOr<Named> call(train::EntryPoint entry, ArrayRef<Tensor> inputs) {
    auto results = program.call(function(entry).getName(),
                                std::vector(program.stages.size(), SmallVector<Tensor>(inputs)));
    if (failed(results))
      return failure();
    Named named;
    for (auto [stage, list] : llvm::zip(program.stages, *results)) {
      auto own = train::lookup<func::FuncOp>(stage.module(), entry);
      for (auto [i, result] : llvm::enumerate(list)) {
        auto number = own.getResultAttrOfType<IntegerAttr>(i, pipe::PipeDialect::kResult);
        std::string name = train::nameOf(entry).str() + "#" +
                           std::to_string(number ? number.getInt() : static_cast<int64_t>(i));
        if (failed(add(named, name, std::move(result), own)))
          return failure();
      }
    }
    return named;
  }

  /// Of all stages; of a parameter that several have once.
  FailureOr<Named> gradients() {
    Named named;
    for (Interpreter &stage : program.stages)
      for (auto &[name, gradient] : stage.gradients())
        if (failed(add(named, name, gradient, stage.module())))
          return failure();
    return named;
  }

  /// Parameters, or states that are no masters, by their names.
  template <typename Op> FailureOr<Named> symbols() {
    return collect<Op>([](Op op) { return isMaster(op) ? StringRef() : op.getSymName(); });
  }

  /// Masters, by their parameters' names.
  FailureOr<Named> masters() {
    return collect<train::StateOp>(
        [](train::StateOp state) { return state.isMaster() ? *state.getOf() : StringRef(); });
  }

  StageInterpreter program;

private:
  /// What several stages have must be the same on each.
  static LogicalResult add(Named &named, const std::string &name, Tensor value, Operation *at) {
    auto [known, isNew] = named.try_emplace(name, std::move(value));
    if (isNew || isSame(known->second, value))
      return success();
    return at->emitError() << "stage " << pipe::stageOf(at).value_or(0) << " has another value of '"
                           << name << "' than a stage before it";
  }

  /// By the names that `nameOf` gives them; without those that it gives none.
  template <typename Op> FailureOr<Named> collect(llvm::function_ref<StringRef(Op)> nameOf) {
    Named named;
    for (Interpreter &stage : program.stages)
      for (auto op : stage.module().getOps<Op>()) {
        StringRef name = nameOf(op);
        if (name.empty())
          continue;
        auto value = stage.parameter(op.getSymName());
        if (failed(value) || failed(add(named, name.str(), std::move(*value), op)))
          return failure();
      }
    return named;
  }

  static bool isMaster(train::StateOp state) { return state.isMaster(); }
  static bool isMaster(train::ParameterOp) { return false; }

  ModuleOp theModule;
};

} // namespace

static LogicalResult compareCall(Comparison &comparison, Side &full, Side &partitioned,
                                 train::EntryPoint entry, uint64_t seed, double *loss = nullptr) {
  auto inputs = modelInputs(full.function(entry), seed);
  if (failed(inputs))
    return failure();
  auto b = full.call(entry, *inputs);
  if (failed(b))
    return failure();
  auto a = partitioned.call(entry, *inputs);
  if (failed(a))
    return failure();
  for (auto &[name, value] : *b)
    if (failed(comparison.add("result", {{name, (*a)[name]}}, {{name, value}})))
      return failure();
  if (loss && !b->empty() && b->begin()->second.size() == 1)
    *loss = b->begin()->second.number(0);
  return success();
}

/// Does the state belong to a compressed sum: what it leaves out, or the factor of its gradients?
static bool isOfCompressedSum(train::StateOp state) {
  std::optional<StringRef> kind = state.getKind();
  return kind == StringRef(partita_rt::kWorkerError) ||
         kind == StringRef(partita_rt::kServerError) ||
         state.getSymName() == par::OneBitClipOp::kState;
}

template <typename Op>
static LogicalResult compareSymbols(Comparison &comparison, Side &full, Side &partitioned,
                                    StringRef kind) {
  auto b = full.symbols<Op>(), a = partitioned.symbols<Op>();
  if (failed(a) || failed(b))
    return failure();
  return comparison.add(kind, *a, *b);
}

/// The whole program, in 32 bits, has no maxima of 8-bit numbers; nor states of sums that it does not compress.
static LogicalResult compareStates(Comparison &comparison, Side &full, Side &partitioned) {
  auto b = full.symbols<train::StateOp>(), a = partitioned.symbols<train::StateOp>();
  if (failed(a) || failed(b))
    return failure();
  std::string maxima = amp::AmpDialect::kMaxima.str();
  if (b->find(maxima) == b->end())
    a->erase(maxima);
  for (Interpreter &stage : partitioned.program.stages)
    for (train::StateOp state : stage.module().getOps<train::StateOp>())
      if (std::string name = state.getSymName().str(); isOfCompressedSum(state) && !b->count(name))
        a->erase(name);
  return comparison.add("state", *a, *b);
}

/// Without rounding a master is its parameter, which the whole program has in 32 bits.
static LogicalResult compareMasters(Comparison &comparison, Side &full, Side &partitioned) {
  auto masters = partitioned.masters();
  auto parameters = full.symbols<train::ParameterOp>();
  if (failed(masters) || failed(parameters))
    return failure();
  Named expected;
  for (auto &[name, value] : *masters)
    expected[name] = std::move((*parameters)[name]);
  return comparison.add("master", *masters, expected);
}

/// The functions of inference that both programs have.
static LogicalResult compareForward(Comparison &comparison, Side &full, Side &partitioned,
                                    uint64_t seed) {
  for (auto entry : {train::EntryPoint::Forward, train::EntryPoint::EvalStep})
    if (full.has(entry) && partitioned.has(entry) &&
        failed(compareCall(comparison, full, partitioned, entry, seed)))
      return failure();
  return success();
}

/// Optimizer steps: their losses, gradients, and what they leave behind.
static LogicalResult compareTraining(Comparison &comparison, Side &full, Side &partitioned,
                                     const VerifyOptions &options, Undecided &undecided,
                                     std::optional<double> &loss) {
  loss = 0;
  for (int64_t step = 0; step < options.steps; ++step) {
    full.setStep(step + 1);
    partitioned.setStep(step + 1);
    if (failed(compareCall(comparison, full, partitioned, train::EntryPoint::TrainStep,
                           options.seed + step, &*loss)))
      return failure();
    auto b = full.gradients(), a = partitioned.gradients();
    if (failed(a) || failed(b))
      return failure();
    if (b->empty())
      return full.module().emitError()
             << "the entry point '" << train::nameOf(train::EntryPoint::TrainStep)
             << "' updates no parameter";
    if (failed(comparison.add("gradient", *a, *b)) ||
        failed(undecided.settle(full.interpreter(), partitioned.program.stages)))
      return failure();
  }
  return success(
      succeeded(compareSymbols<train::ParameterOp>(comparison, full, partitioned, "parameter")) &&
      succeeded(compareStates(comparison, full, partitioned)) &&
      succeeded(compareMasters(comparison, full, partitioned)));
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
  FailureOr<Side> fullSide = Side::of(fullModule, options),
                  partitionedSide = Side::of(partitionedModule, options);
  if (failed(fullSide) || failed(partitionedSide))
    return failure();
  Side &full = *fullSide, &partitioned = *partitionedSide;
  bool trains =
      full.has(train::EntryPoint::TrainStep) || partitioned.has(train::EntryPoint::TrainStep);
  for (Side *side : {&full, &partitioned}) {
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
  std::optional<double> loss;
  if (failed(compareForward(comparison, full, partitioned, options.seed)) ||
      (trains && failed(compareTraining(comparison, full, partitioned, options, undecided, loss))))
    return failure();
  VerifyReport report = comparison.report(loss);
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
}
