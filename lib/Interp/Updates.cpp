//===- Updates.cpp - optimizers, by their arithmetic of one element, and norms ----------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "lib/Interp/Execution.h"

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
      update.evaluateElement(hyper, scalars, values, scale * inputs[1]->number(i));
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

/// LAMB's: the squares of a rank's shard of the value, and of the direction, which is what a step
/// of rate and ratio 1 takes away. Operands: value, gradient, m, v, t and perhaps a scale.
static std::pair<double, double> directionSquares(DictionaryAttr hyper, RankInputs in,
                                                  int64_t rank) {
  SmallVector<double> numbers;
  for (train::Hyperparameter each : train::LambOp::getHyperparameters())
    numbers.push_back(cast<FloatAttr>(hyper.get(each.name)).getValueAsDouble());
  double scale = in.size() > 5 ? in[5][rank]->number(0) : 1;
  double scalars[] = {1, in[4][rank]->number(0), 1};
  std::pair<double, double> sums(0, 0);
  for (int64_t i = 0; i < in[0][rank]->size(); ++i) {
    double before = in[0][rank]->number(i);
    double values[] = {before, in[2][rank]->number(i), in[3][rank]->number(i)};
    train::LambOp::evaluateElement(numbers, scalars, values, scale * in[1][rank]->number(i));
    sums.first += before * before;
    sums.second += (before - values[0]) * (before - values[0]);
  }
  return sums;
}

static LogicalResult localDirectionSquares(Execution &execution, train::DirectionSquaresOp op,
                                           RankInputs in, RankOutputs out) {
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    auto [value, direction] = directionSquares(op.getHyper(), in, rank);
    Tensor sums(ArrayRef<int64_t>{2}, /*isReal=*/true);
    sums.setNumber(0, value);
    sums.setNumber(1, direction);
    out[0].push_back(std::make_shared<Tensor>(std::move(sums)));
  }
  return success();
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
  auto total = [&](auto part) {
    RankTensors local = eachRank(
        execution, [&](int64_t rank) { return part(directionSquares(op.getHyper(), in, rank)); });
    return overShards(execution, op.getValues().front().getType(), std::move(local));
  };
  RankTensors values = total([](auto sums) { return sums.first; }),
              directions = total([](auto sums) { return sums.second; });
  out[0] = eachRank(execution, [&](int64_t rank) {
    return train::trustRatio(values[rank]->number(0), directions[rank]->number(0),
                             op.getLeast().convertToDouble(), op.getMost().convertToDouble());
  });
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
}
