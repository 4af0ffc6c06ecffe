//===- OneBitReference.cpp - what 1-bit optimizers make of the ranks' gradients ---------------===//

#include "lib/Interp/OneBitReference.h"
#include "dialects/Par/Placement.h"
#include "lib/Interp/Undecided.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

OneBitReference::OneBitReference(ComparedProgram &full, ComparedProgram &partitioned)
    : full(full), partitioned(partitioned) {
  full.module().walk([&](train::OptimizerInterface update) {
    FlatSymbolRefAttr parameter = train::updatedParameter(update);
    if (parameter && !update.getSummedState().empty())
      updates.try_emplace(parameter.getValue().str(), update);
  });
  for (Interpreter &stage : partitioned.stages())
    stage.beforeOp = [this, &stage](Operation *op, ArrayRef<RankTensors> operands) {
      note(stage, op, operands);
    };
  full.interpreter().afterOp = [this](Operation *op, MutableArrayRef<RankTensors> results) {
    replace(op, results);
  };
}

OneBitReference::~OneBitReference() {
  for (Interpreter &stage : partitioned.stages())
    stage.beforeOp = nullptr;
  full.interpreter().afterOp = nullptr;
}

template <typename F> static void eachSum(ComparedProgram &program, F f) {
  for (Interpreter &stage : program.stages())
    stage.module().walk([&](par::OneBitAllReduceOp sum) {
      if (sum.getRankCount() > 1)
        f(sum);
    });
}

bool OneBitReference::compresses(int64_t t) const {
  bool any = false;
  eachSum(partitioned, [&](par::OneBitAllReduceOp sum) { any |= !sum.getExact().contains(t); });
  return any;
}

//===------------------------------------------------------------------------------------------===//
// What the programs compute
//===------------------------------------------------------------------------------------------===//

/// The state that keeps the errors of a worker of a value of the sum; null if the program does not read one there.
static train::StateOp workerState(par::OneBitAllReduceOp sum, unsigned number) {
  return train::stateReadBy(sum.getWorkers()[number]);
}
static train::StateOp serverState(par::OneBitAllReduceOp sum, unsigned number) {
  return train::stateReadBy(sum.getServers()[number]);
}

void OneBitReference::note(Interpreter &stage, Operation *op, ArrayRef<RankTensors> operands) {
  auto term = dyn_cast<par::OneBitTermOp>(op);
  if (!term)
    return;
  for (OpOperand &use : term->getUses()) {
    auto sum = dyn_cast<par::OneBitAllReduceOp>(use.getOwner());
    unsigned number = use.getOperandNumber();
    train::StateOp worker =
        sum && number < sum.getCount() ? workerState(sum, number) : train::StateOp();
    if (!worker || !worker.getOf())
      continue;
    std::scoped_lock lock(mutex);
    Summed &its = summed[worker.getOf()->str()];
    its.stage = &stage, its.sum = sum, its.number = number, its.terms = operands.front();
  }
}

void OneBitReference::replace(Operation *op, MutableArrayRef<RankTensors> results) {
  for (auto [value, ranks] : llvm::zip(op->getResults(), results)) {
    auto found = replacements.find(value);
    if (found == replacements.end())
      continue;
    if (auto parameter = gradientOf.find(value); parameter != gradientOf.end())
      theGradients[parameter->second] = *ranks.front();
    ranks.assign(ranks.size(), std::make_shared<Tensor>(std::move(found->second)));
    replacements.erase(found);
  }
}

//===------------------------------------------------------------------------------------------===//
// The algorithm
//===------------------------------------------------------------------------------------------===//

namespace {
/// Numbers that are sent as their signs times their root mean square, and what that leaves out.
struct Sent {
  std::vector<double> numbers, error;
  int64_t followed = 0; ///< signs that rounding decides, and that are not what they would be here
};
} // namespace

/// `noise` is how far another order of additions may change each number. Where that decides its sign, the program's counts, which what it has left out tells.
static Sent asSigns(ArrayRef<double> x, ArrayRef<double> noise, ArrayRef<double> programsError) {
  double squares = 0;
  for (double each : x)
    squares += each * each;
  double scale = x.empty() ? 0 : std::sqrt(squares / static_cast<double>(x.size()));
  Sent sent;
  for (auto [i, each] : llvm::enumerate(x)) {
    bool isPositive = each >= 0;
    if (scale > 0 && std::abs(each) <= noise[i] && isPositive != (programsError[i] < 0)) {
      isPositive = !isPositive;
      ++sent.followed;
    }
    sent.numbers.push_back(isPositive ? scale : -scale);
    sent.error.push_back(each - sent.numbers.back());
  }
  return sent;
}

/// What the type's placement says of a value that all ranks of `axis` have in full.
static Type inFullOver(Type type, StringAttr axis) {
  par::Layout layout = par::Layout::of(type);
  layout.set(axis, par::Kind::Invariant);
  return par::withLayout(type, layout);
}

namespace {
/// The errors of the partitioned program after its step, by rank.
struct ProgramsErrors {
  RankTensors workers, servers;
};
} // namespace

static FailureOr<ProgramsErrors> errorsOf(Interpreter &stage, par::OneBitAllReduceOp sum,
                                          unsigned number) {
  auto cutState = [&](train::StateOp state, Type type) -> FailureOr<RankTensors> {
    FailureOr<Tensor> value = stage.parameter(state.getSymName());
    if (failed(value))
      return failure();
    return cut(*value, type, stage.mesh(), 0,
               [&](const Twine &text) { state.emitError() << text; });
  };
  auto workers = cutState(workerState(sum, number), sum.getWorkers()[number].getType());
  auto servers = cutState(serverState(sum, number), sum.getServers()[number].getType());
  if (failed(workers) || failed(servers))
    return failure();
  return ProgramsErrors{std::move(*workers), std::move(*servers)};
}

namespace {
/// What the ranks of a group make of a tensor's momentum.
struct Group {
  SmallVector<int64_t> ranks;
  const Tensor &momentum; ///< before the step, the same on all
  ArrayRef<int64_t> held; ///< the elements that are no padding
  double beta, clip;
  int64_t followed = 0;
  SmallVector<std::vector<double>> sent; ///< by the workers
  Tensor average;

  Group(SmallVector<int64_t> ranks, const Tensor &momentum, ArrayRef<int64_t> held, double beta,
        double clip)
      : ranks(std::move(ranks)), momentum(momentum), held(held), beta(beta), clip(clip),
        average(momentum) {
    average.reals.assign(average.reals.size(), 0);
  }

  /// A worker compresses its part of the momentum. `error`: none in the first step. Takes the program's error after the step, and makes it its own.
  void work(const Tensor &term, const Tensor *error, Tensor &newError) {
    auto count = static_cast<double>(ranks.size());
    std::vector<double> x, noise, programsError;
    for (int64_t i : held) {
      double m = momentum.number(i), e = error ? error->number(i) : 0;
      x.push_back(beta * m / count + (1 - beta) * clip * term.number(i) + e);
      noise.push_back(kNoise * (std::abs(m) + std::abs(e) + std::abs(clip * term.number(i))));
      programsError.push_back(newError.number(i));
    }
    Sent own = asSigns(x, noise, programsError);
    followed += own.followed;
    newError.reals.assign(newError.reals.size(), 0);
    std::vector<double> numbers(newError.reals.size(), 0);
    for (auto [i, number, left] : llvm::zip_equal(held, own.numbers, own.error))
      numbers[i] = number, newError.reals[i] = left;
    sent.push_back(std::move(numbers));
  }

  /// A server sums up its chunk, and compresses the sum. The last chunks are shorter.
  void serve(size_t position, const Tensor *error, Tensor &newError) {
    int64_t begin = static_cast<int64_t>(position) * newError.size();
    std::vector<double> y, noise, programsError;
    SmallVector<int64_t> chunk;
    for (int64_t i : held) {
      if (i < begin || i >= begin + newError.size())
        continue;
      double sum = error ? error->number(i - begin) : 0, sizes = std::abs(sum);
      for (const std::vector<double> &each : sent) {
        sum += each[i];
        sizes += std::abs(each[i]);
      }
      chunk.push_back(i);
      y.push_back(sum);
      noise.push_back(kNoise * sizes);
      programsError.push_back(newError.number(i - begin));
    }
    Sent own = asSigns(y, noise, programsError);
    followed += own.followed;
    newError.reals.assign(newError.reals.size(), 0);
    for (auto [i, number, left] : llvm::zip_equal(chunk, own.numbers, own.error)) {
      average.setNumber(i, number);
      newError.setNumber(i - begin, left);
    }
  }
};
} // namespace

/// The elements of each rank's shard that a full tensor has: what is left of one without zeros is not 0. All others are padding.
static FailureOr<std::vector<std::vector<int64_t>>>
heldElements(Tensor full, Type type, par::MeshAttr mesh,
             llvm::function_ref<void(const Twine &)> complain) {
  full.reals.assign(full.reals.size(), 1);
  FailureOr<RankTensors> shards = cut(full, type, mesh, 0, complain);
  if (failed(shards))
    return failure();
  std::vector<std::vector<int64_t>> held;
  for (const auto &shard : *shards) {
    auto &own = held.emplace_back();
    for (int64_t i = 0; i < shard->size(); ++i)
      if (shard->number(i) != 0)
        own.push_back(i);
  }
  return held;
}

FailureOr<double> OneBitReference::clipFactor(train::OptimizerInterface update) {
  StringRef factor = par::OneBitClipOp::kState;
  if (!update.getGradientScale() || !SymbolTable::lookupSymbolIn(full.module(), factor))
    return 1.0;
  FailureOr<Tensor> typical = full.interpreter().parameter(factor);
  return failed(typical) ? FailureOr<double>() : typical->number(0);
}

LogicalResult OneBitReference::average(const std::string &parameter, Summed &its) {
  auto complain = [&](const Twine &text) {
    its.sum->emitError() << "the sum of '" << parameter << "' " << text;
  };
  train::OptimizerInterface update = updates.at(parameter);
  par::MeshAttr mesh = its.stage->mesh();
  Type type = its.sum.getValues()[its.number].getType(),
       averaged = inFullOver(type, its.sum.getAxisAttr());
  train::StateOp momentum = train::stateReadBy(update.getStateNamed(update.getSummedState()));
  FailureOr<Tensor> mean = full.interpreter().parameter(momentum.getSymName());
  FailureOr<double> clip = clipFactor(update);
  FailureOr<ProgramsErrors> programs = errorsOf(*its.stage, its.sum, its.number);
  if (failed(mean) || failed(clip) || failed(programs))
    return failure();
  auto means = cut(*mean, averaged, mesh, 0, complain);
  auto held = heldElements(*mean, averaged, mesh, complain);
  if (failed(means) || failed(held))
    return failure();
  double beta = update.getSummedDecay();
  RankTensors averages(mesh.rankCount()), workers(mesh.rankCount()), servers(mesh.rankCount());
  auto errorOf = [](const RankTensors &errors, int64_t rank) {
    return errors.empty() ? nullptr : errors[rank].get();
  };
  for (int64_t first = 0; first < mesh.rankCount(); ++first) {
    SmallVector<int64_t> ranks = mesh.group(first, its.sum.getAxis());
    if (ranks.front() != first)
      continue;
    Group group(ranks, *(*means)[first], (*held)[first], beta, *clip);
    for (int64_t rank : ranks) {
      auto error = std::make_shared<Tensor>(*programs->workers[rank]);
      group.work(*its.terms[rank], errorOf(its.workers, rank), *error);
      workers[rank] = std::move(error);
    }
    for (auto [position, rank] : llvm::enumerate(ranks)) {
      auto error = std::make_shared<Tensor>(*programs->servers[rank]);
      group.serve(position, errorOf(its.servers, rank), *error);
      servers[rank] = std::move(error);
    }
    auto shared = std::make_shared<Tensor>(std::move(group.average));
    for (int64_t rank : ranks)
      averages[rank] = shared;
    elements += group.followed;
    if (group.followed > 0)
      parameters.insert(parameter);
  }
  its.workers = std::move(workers), its.servers = std::move(servers);
  FailureOr<Tensor> average = assemble(averages, averaged, mesh, complain),
                    sum = assemble(its.terms, type, mesh, complain);
  if (failed(average) || failed(sum))
    return failure();
  // The gradient of which the whole program's update makes this momentum.
  Tensor gradient = *average;
  for (int64_t i = 0; i < gradient.size(); ++i)
    gradient.setNumber(i, (average->number(i) - beta * mean->number(i)) / ((1 - beta) * *clip));
  theTerms[parameter] = std::move(*sum);
  theMomenta[parameter] = std::move(*average);
  return replaceGradient(update, parameter, std::move(gradient), *clip);
}

LogicalResult OneBitReference::replaceGradient(train::OptimizerInterface update,
                                               const std::string &parameter, Tensor gradient,
                                               double clip) {
  Value replaced = update.getUpdatingGradient();
  if (!gradientOf.try_emplace(replaced, parameter).second)
    return update->emitError() << "'" << parameter << "' has the gradient of '"
                               << gradientOf[replaced] << "' too: their sums cannot be verified";
  replacements[replaced] = std::move(gradient);
  if (Value scale = update.getGradientScale()) {
    Tensor number(ArrayRef<int64_t>(), /*isReal=*/true);
    number.setNumber(0, clip);
    replacements[scale] = std::move(number);
  }
  return success();
}

LogicalResult OneBitReference::prepare(int64_t t) {
  replacements.clear(), gradientOf.clear();
  theTerms.clear(), theGradients.clear(), theMomenta.clear();
  LogicalResult found = success();
  eachSum(partitioned, [&](par::OneBitAllReduceOp sum) {
    for (unsigned number = 0; number < sum.getCount(); ++number) {
      train::StateOp worker = workerState(sum, number), server = serverState(sum, number);
      auto its = summed.find(worker && worker.getOf() ? worker.getOf()->str() : "");
      if (!server || its == summed.end() || !updates.count(its->first))
        found = sum.emitError() << "value " << number
                                << " is not what a rank adds to the momentum of a parameter that "
                                   "the unpartitioned program updates likewise, with errors that "
                                   "are states: its sum cannot be verified";
    }
  });
  if (failed(found) || !compresses(t))
    return found;
  for (auto &[parameter, its] : summed)
    if (failed(average(parameter, its)))
      return failure();
  return success();
}

LogicalResult OneBitReference::adoptErrors() {
  for (auto &[parameter, its] : summed) {
    FailureOr<ProgramsErrors> programs = errorsOf(*its.stage, its.sum, its.number);
    if (failed(programs))
      return failure();
    its.workers = std::move(programs->workers), its.servers = std::move(programs->servers);
  }
  return success();
}

FailureOr<Named> OneBitReference::errors() const {
  Named errors;
  for (const auto &entry : summed) {
    const Summed &its = entry.second;
    par::OneBitAllReduceOp sum = its.sum;
    if (its.workers.empty())
      continue;
    auto add = [&](train::StateOp state, const RankTensors &shards, Type type) {
      FailureOr<Tensor> value = assemble(shards, type, its.stage->mesh(),
                                         [&](const Twine &text) { state.emitError() << text; });
      if (succeeded(value))
        errors[state.getSymName().str()] = std::move(*value);
      return success(succeeded(value));
    };
    if (failed(add(workerState(sum, its.number), its.workers,
                   sum.getWorkers()[its.number].getType())) ||
        failed(
            add(serverState(sum, its.number), its.servers, sum.getServers()[its.number].getType())))
      return failure();
  }
  return errors;
}
