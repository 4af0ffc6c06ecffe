//===- Updates.cpp - optimizers, by their arithmetic of one element, and norms ----------------===//

#include "dialects/Interfaces/Scalar.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "lib/Interp/Execution.h"
#include "runtime/include/partita_rt/frozen_ratio.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

/// Records the op and the gradient of the parameter that it updates.
static LogicalResult record(Execution &execution, train::OptimizerInterface update, RankInputs in) {
  FlatSymbolRefAttr parameter = train::updatedParameter(update);
  if (!parameter)
    return success();
  execution.recordUpdate(update, parameter.getValue(), in);
  return execution.recordGradient(update, parameter.getValue(), update.getUpdatingGradient());
}

/// All elements of one rank's value, gradient and states.
static void updateElements(train::OptimizerInterface update, Inputs inputs, Outputs outputs) {
  size_t states = update.getStateNames().size();
  SmallVector<double> hyper, scalars, values(1 + states);
  for (train::Hyperparameter each : update.getHyperparameters())
    hyper.push_back(update.getHyper(each.name));
  for (size_t i = 0; i < update.getScalarNames().size(); ++i)
    scalars.push_back(inputs[2 + states + i]->number(0));
  scalars.front() *= update.getHyper("rate_scale");
  size_t behind = 2 + states + scalars.size();
  double scale = update.getGradientScale() ? inputs[behind]->number(0) : 1;
  bool applies = !update.getPredicate() || inputs[behind + 1]->number(0) != 0;
  for (int64_t i = 0; i < inputs[0]->size(); ++i) {
    values[0] = inputs[0]->number(i);
    for (size_t state = 0; state < states; ++state)
      values[1 + state] = inputs[2 + state]->number(i);
    if (applies)
      update.evaluateElement(hyper, scalars, values, scale * inputs[1]->number(i), {});
    for (size_t result = 0; result <= states; ++result)
      outputs[result].setNumber(i, values[result]);
    if (update.getRounded())
      outputs[1 + states].setNumber(i, values[0]);
  }
}

SmallVector<Tensor> partita::interp::evaluateUpdate(Operation *op, Inputs inputs) {
  SmallVector<Tensor> outputs;
  for (Type type : op->getResultTypes())
    outputs.emplace_back(cast<RankedTensorType>(type));
  updateElements(cast<train::OptimizerInterface>(op), inputs, outputs);
  return outputs;
}

static LogicalResult updateByOptimizer(Execution &execution, Operation *op, RankInputs in,
                                       RankOutputs out) {
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()),
                                      SmallVector<Type>(op->getResultTypes())))
    if (!isa<FloatType>(getElementTypeOrSelf(type)))
      return op->emitError() << "works on floating-point numbers, not on " << type;
  if (failed(record(execution, cast<train::OptimizerInterface>(op), in)))
    return failure();
  return onDistinctRanks(in, out, execution.rankCount(),
                         [&](Inputs inputs, SmallVectorImpl<Tensor> &outputs) {
                           outputs = evaluateUpdate(op, inputs);
                           return success();
                         });
}

//===------------------------------------------------------------------------------------------===//
// Norms
//===------------------------------------------------------------------------------------------===//

static RankTensors eachRank(Execution &execution, llvm::function_ref<double(int64_t)> number) {
  RankTensors result;
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor value(ArrayRef<int64_t>(), /*isReal=*/true);
    value.setNumber(0, number(rank));
    result.push_back(std::make_shared<Tensor>(std::move(value)));
  }
  return result;
}

static double squareSumOf(const Tensor &tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    sum += tensor.number(i) * tensor.number(i);
  return sum;
}

static LogicalResult squareSum(Execution &execution, train::SquareSumOp, RankInputs in,
                               RankOutputs out) {
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor sums(ArrayRef<int64_t>{static_cast<int64_t>(in.size())}, /*isReal=*/true);
    for (auto [number, value] : llvm::enumerate(in))
      sums.setNumber(number, squareSumOf(*value[rank]));
    out[0].push_back(std::make_shared<Tensor>(std::move(sums)));
  }
  return success();
}

/// Sums of squares are added up over the ranks that have other shards of the same value.
static RankTensors overShards(Execution &execution, Type type, RankTensors sum) {
  for (StringAttr axis : par::splittingAxes(type))
    sum = sumOverGroups(execution.mesh(), axis, sum);
  return sum;
}

static LogicalResult globalNorm(Execution &execution, train::GlobalNormOp op, RankInputs in,
                                RankOutputs out) {
  SmallVector<RankTensors> totals;
  for (auto [value, ranks] : llvm::zip(op.getValues(), in)) {
    const RankTensors &shards = ranks;
    totals.push_back(overShards(execution, value.getType(), eachRank(execution, [&](int64_t rank) {
                                  return squareSumOf(*shards[rank]);
                                })));
  }
  out[0] = eachRank(execution, [&](int64_t rank) {
    double sum = 0;
    for (const RankTensors &total : totals)
      sum += total[rank]->number(0);
    return std::sqrt(sum);
  });
  return success();
}

static LogicalResult norm(Execution &execution, train::NormOp, RankInputs in, RankOutputs out) {
  out[0] = eachRank(execution, [&](int64_t rank) {
    double sum = 0;
    for (const RankTensors &squares : in)
      for (int64_t i = 0; i < squares[rank]->size(); ++i)
        sum += squares[rank]->number(i);
    return std::sqrt(sum);
  });
  return success();
}

static LogicalResult clip(Execution &execution, train::ClipOp op, RankInputs in, RankOutputs out) {
  double most = op.getMaxNorm().convertToDouble();
  out[0] = eachRank(execution,
                    [&](int64_t rank) { return train::clipScale(in[0][rank]->number(0), most); });
  return success();
}

/// Of a rank's shard of a value: the sums of squares, and the largest numbers, that an optimizer's ratio is of. Operands: value, gradient, the
/// states, t and perhaps a scale.
static std::pair<Tensor, Tensor> measuresOf(MLIRContext *context, StringRef kind,
                                            DictionaryAttr hyper, RankInputs in, int64_t rank) {
  std::optional<RegisteredOperationName> name = train::findOptimizer(context, kind);
  auto *optimizer = name->getInterface<train::OptimizerInterface>();
  size_t states = optimizer->getStateNames().size(), squared = optimizer->getSquared().size(),
         largest = optimizer->getLargest().size();
  SmallVector<double> numbers, values(1 + states), measured(squared + largest);
  for (train::Hyperparameter each : optimizer->getHyperparameters())
    numbers.push_back(cast<FloatAttr>(hyper.get(each.name)).getValueAsDouble());
  double scale = in.size() > 3 + states ? in[3 + states][rank]->number(0) : 1;
  double scalars[] = {1, in[2 + states][rank]->number(0), 1};
  std::pair<Tensor, Tensor> result(Tensor(ArrayRef(int64_t(squared)), /*isReal=*/true),
                                   Tensor(ArrayRef(int64_t(largest)), /*isReal=*/true));
  for (int64_t i = 0; i < in[0][rank]->size(); ++i) {
    values[0] = in[0][rank]->number(i);
    for (size_t state = 0; state < states; ++state)
      values[1 + state] = in[2 + state][rank]->number(i);
    optimizer->evaluateElement(numbers, scalars, values, scale * in[1][rank]->number(i), measured);
    for (size_t each = 0; each < squared; ++each)
      result.first.setNumber(each, result.first.number(each) + measured[each] * measured[each]);
    for (size_t each = 0; each < largest; ++each)
      result.second.setNumber(each,
                              scalar::max(result.second.number(each), measured[squared + each]));
  }
  return result;
}

static LogicalResult localDirectionSquares(Execution &execution, train::DirectionSquaresOp op,
                                           RankInputs in, RankOutputs out) {
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    auto [sums, largest] = measuresOf(op.getContext(), op.getOptimizer(), op.getHyper(), in, rank);
    out[0].push_back(std::make_shared<Tensor>(std::move(sums)));
    if (op.getLargest())
      out[1].push_back(std::make_shared<Tensor>(std::move(largest)));
  }
  return success();
}

/// The same of all ranks' shards.
static std::pair<RankTensors, RankTensors> totalMeasures(Execution &execution, StringRef kind,
                                                         DictionaryAttr hyper, Type type,
                                                         RankInputs in) {
  RankTensors sums, largest;
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    auto own = measuresOf(hyper.getContext(), kind, hyper, in, rank);
    sums.push_back(std::make_shared<Tensor>(std::move(own.first)));
    largest.push_back(std::make_shared<Tensor>(std::move(own.second)));
  }
  for (StringAttr axis : par::splittingAxes(type)) {
    sums = sumOverGroups(execution.mesh(), axis, sums);
    largest = maxOverGroups(execution.mesh(), axis, largest);
  }
  return {std::move(sums), std::move(largest)};
}

static LogicalResult ratio(Execution &execution, train::RatioOp op, RankInputs in,
                           RankOutputs out) {
  out[0] = eachRank(execution, [&](int64_t rank) {
    return train::trustRatio(in[0][rank]->number(0), in[0][rank]->number(1),
                             op.getLeast().convertToDouble(), op.getMost().convertToDouble());
  });
  return success();
}

static LogicalResult totalRatio(Execution &execution, train::TrustRatioOp op, RankInputs in,
                                RankOutputs out) {
  StringRef kind = train::LambOp::getOperationName().split('.').second;
  Type type = op.getValues().front().getType();
  RankTensors sums = totalMeasures(execution, kind, op.getHyper(), type, in).first;
  out[0] = eachRank(execution, [&](int64_t rank) {
    return train::trustRatio(sums[rank]->number(0), sums[rank]->number(1),
                             op.getLeast().convertToDouble(), op.getMost().convertToDouble());
  });
  return success();
}

//===------------------------------------------------------------------------------------------===//
// 1-bit LAMB's ratio
//===------------------------------------------------------------------------------------------===//

/// Both of a ratio's forms have bounds and states of these names.
template <typename Op>
static void frozenRatios(Execution &execution, Op op, double freeze, const RankTensors &sums,
                         const RankTensors &largest, RankInputs scalars, RankOutputs out) {
  partita_rt::FrozenRatioOptions options = {freeze,
                                            op.getLeast().convertToDouble(),
                                            op.getMost().convertToDouble(),
                                            op.getCoeffBeta().convertToDouble(),
                                            op.getFactorMin().convertToDouble(),
                                            op.getFactorMax().convertToDouble(),
                                            op.getFactorThreshold().convertToDouble()};
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    double squares[] = {sums[rank]->number(0), sums[rank]->number(1), sums[rank]->number(2)},
           t = scalars[0][rank]->number(0), coefficient = scalars[1][rank]->number(0),
           factor = scalars[2][rank]->number(0);
    partita_rt::FrozenRatio next = partita_rt::frozenRatioOf(squares, largest[rank]->number(0), t,
                                                             coefficient, factor, options);
    if (scalars.size() > 3 && scalars[3][rank]->number(0) == 0)
      next = {next.ratio, coefficient, factor};
    double numbers[] = {next.ratio, next.coefficient, next.factor};
    for (auto [result, number] : llvm::enumerate(numbers)) {
      Tensor value(ArrayRef<int64_t>(), /*isReal=*/true);
      value.setNumber(0, number);
      out[result].push_back(std::make_shared<Tensor>(std::move(value)));
    }
  }
}

static LogicalResult frozenRatio(Execution &execution, train::FrozenRatioOp op, RankInputs in,
                                 RankOutputs out) {
  frozenRatios(execution, op, op.getFreeze().convertToDouble(), in[0], in[1], in.drop_front(2),
               out);
  return success();
}

static LogicalResult totalFrozenRatio(Execution &execution, train::FrozenTrustRatioOp op,
                                      RankInputs in, RankOutputs out) {
  size_t count = op.getValues().size();
  auto [sums, largest] = totalMeasures(execution, op.kOptimizer, op.getHyper(),
                                       op.getValues().front().getType(), in.take_front(count));
  SmallVector<RankTensors> scalars = {in[op.getStepNumberIndex()]};
  llvm::append_range(scalars, in.drop_front(count));
  double freeze = op.getFreeze().getValueAsDouble();
  frozenRatios(execution, op, freeze, sums, largest, scalars, out);
  return success();
}

template <typename... Ops> static void addUpdates(KernelTable &table) {
  ((table.ranks[Ops::getOperationName()] = updateByOptimizer), ...);
}

void partita::interp::addUpdateKernels(KernelTable &table) {
  addUpdates<
#define GET_OP_LIST
#include "dialects/Train/Optimizers.cpp.inc"
      >(table);
  table.addRanks<train::GlobalNormOp>(globalNorm);
  table.addRanks<train::SquareSumOp>(squareSum);
  table.addRanks<train::NormOp>(norm);
  table.addRanks<train::ClipOp>(clip);
  table.addRanks<train::TrustRatioOp>(totalRatio);
  table.addRanks<train::DirectionSquaresOp>(localDirectionSquares);
  table.addRanks<train::RatioOp>(ratio);
  table.addRanks<train::FrozenTrustRatioOp>(totalFrozenRatio);
  table.addRanks<train::FrozenRatioOp>(frozenRatio);
}
