//===- OneBit.cpp - sums that send a bit per element ------------------------------------------===//
//
// The arithmetic of the runtime's oneBitAllReduce (partita_rt/one_bit.h), in double precision, of programs that are
// verified; what they are compared with is computed in OneBitReference.cpp.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Interp/OneBit.h"
#include "dialects/Par/OneBit.h"
#include "lib/Interp/Execution.h"
#include "runtime/include/partita_rt/clip_factors.h"
#include "runtime/include/partita_rt/one_bit_momentum.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

namespace {

/// Some elements as their signs, +1 for 0, times their scale.
std::vector<double> compressed(ArrayRef<double> x) {
  double squares = 0;
  for (double each : x)
    squares += each * each;
  double scale = x.empty() ? 0 : std::sqrt(squares / static_cast<double>(x.size()));
  std::vector<double> result;
  for (double each : x)
    result.push_back(each >= 0 ? scale : -scale);
  return result;
}

bool areFinite(ArrayRef<double> values) {
  return llvm::all_of(values, [](double each) { return std::isfinite(each); });
}

/// The same of the first elements; what is behind them is padding, and 0.
std::vector<double> compressed(ArrayRef<double> x, int64_t valid) {
  std::vector<double> result = compressed(x.take_front(valid));
  result.resize(x.size(), 0);
  return result;
}

/// One value of a group of ranks: what these send, and what comes of it.
struct OneBitExchange {
  SmallVector<Tensor> workers, servers; ///< the new errors, by rank
  SmallVector<std::vector<double>> sent;
  Tensor sum;
  int64_t valid; ///< elements before the padding, of which nothing is sent

  OneBitExchange(ArrayRef<int64_t> group, const RankTensors &values,
                 const RankTensors &workerErrors, const RankTensors &serverErrors, int64_t valid)
      : valid(valid) {
    for (int64_t rank : group) {
      std::vector<double> x = values[rank]->reals;
      std::fill(x.begin() + valid, x.end(), 0);
      for (auto [element, error] : llvm::zip_equal(x, workerErrors[rank]->reals))
        element += error;
      sent.push_back(compressed(x, valid));
      workers.push_back(*workerErrors[rank]);
      servers.push_back(*serverErrors[rank]);
      for (auto [error, element, out] : llvm::zip_equal(workers.back().reals, x, sent.back()))
        error = element - out;
    }
    sum = *values[group.front()];
  }

  /// Sums up each rank's chunk, the last ones of which are shorter or all padding, and compresses it.
  void serve() {
    for (auto [rank, server] : llvm::enumerate(servers)) {
      int64_t first = std::min<int64_t>(static_cast<int64_t>(rank) * server.size(), sum.size()),
              count = std::min<int64_t>(server.size(), sum.size() - first);
      std::vector<double> y(server.reals.begin(), server.reals.begin() + count);
      for (const std::vector<double> &each : sent)
        for (int64_t i = 0; i < count; ++i)
          y[i] += each[first + i];
      std::vector<double> total = compressed(y, std::clamp<int64_t>(valid - first, 0, count));
      for (int64_t i = 0; i < count; ++i) {
        server.reals[i] = y[i] - total[i];
        sum.reals[first + i] = total[i];
      }
    }
  }

  /// What comes of values that are not finite.
  void spoil() {
    std::fill_n(sum.reals.begin(), valid, NAN);
    std::fill(sum.reals.begin() + valid, sum.reals.end(), 0);
  }
};

/// Of the elements of a shard, how many are no padding on this rank.
int64_t validOf(Execution &execution, Value value, int64_t rank) {
  auto type = cast<RankedTensorType>(value.getType());
  auto padding = par::OneBitAllReduceOp::paddingOf(type, execution.mesh()); // verified
  bool isPadded = padding && padding->axis;
  return isPadded ? padding->validOf(type.getNumElements(),
                                     execution.mesh().coordinate(rank, padding->axis))
                  : type.getNumElements();
}

/// Is this step, the number of which rank 0 has too, one that sums exactly?
template <typename Op> bool isExact(Op op, const Tensor &t) {
  return op.getExact().contains(static_cast<int64_t>(t.number(0)));
}

LogicalResult oneBitAllReduce(Execution &execution, par::OneBitAllReduceOp op, RankInputs in,
                              RankOutputs out) {
  size_t count = op.getCount();
  int64_t ranks = execution.rankCount();
  for (RankTensors &result : out)
    result.resize(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<int64_t> group = execution.mesh().group(rank, op.getAxis());
    if (group.front() != rank)
      continue;
    if (group.size() == 1 || isExact(op, *in.back()[rank]))
      continue; // below
    std::vector<OneBitExchange> exchanges;
    bool finite = true;
    for (size_t i = 0; i < count; ++i) {
      exchanges.emplace_back(group, in[i], in[count + i], in[2 * count + i],
                             validOf(execution, op.getValues()[i], rank));
      for (const std::vector<double> &each : exchanges.back().sent)
        finite &= areFinite(each);
    }
    for (auto [i, exchange] : llvm::enumerate(exchanges)) {
      if (finite)
        exchange.serve();
      else
        exchange.spoil();
      auto sum = std::make_shared<Tensor>(std::move(exchange.sum));
      for (auto [position, member] : llvm::enumerate(group)) {
        out[i][member] = sum;
        out[count + i][member] =
            finite ? std::make_shared<const Tensor>(std::move(exchange.workers[position]))
                   : in[count + i][member];
        out[2 * count + i][member] =
            finite ? std::make_shared<const Tensor>(std::move(exchange.servers[position]))
                   : in[2 * count + i][member];
      }
    }
  }
  // Groups that have not compressed: an exact sum, and the errors as they were.
  for (size_t i = 0; i < count; ++i) {
    RankTensors exact = sumOverGroups(execution.mesh(), op.getAxis(), in[i]);
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (!out[i][rank]) {
        out[i][rank] = exact[rank];
        out[count + i][rank] = in[count + i][rank];
        out[2 * count + i][rank] = in[2 * count + i][rank];
      }
  }
  return success();
}

LogicalResult oneBitTerm(Execution &execution, par::OneBitTermOp op, RankInputs in,
                         RankOutputs out) {
  if (isExact(op, *in[2].front())) {
    out[0] = in[0];
    return success();
  }
  auto ranks = static_cast<double>(execution.mesh().sizeOf(op.getAxis()));
  double change = 1 - op.getBeta().convertToDouble();
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor term = *in[0][rank];
    double scale = op.getScale() ? in[3][rank]->number(0) : 1;
    for (int64_t i = 0; i < term.size(); ++i)
      term.setNumber(i, partita_rt::termOfMean(in[1][rank]->number(i), ranks, term.number(i),
                                               change, scale, std::multiplies<>()));
    out[0].push_back(std::make_shared<Tensor>(std::move(term)));
  }
  return success();
}

LogicalResult oneBitMean(Execution &execution, par::OneBitMeanOp op, RankInputs in,
                         RankOutputs out) {
  if (!isExact(op, *in[2].front())) {
    out[0] = in[0];
    return success();
  }
  double change = 1 - op.getBeta().convertToDouble();
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    Tensor mean = *in[1][rank];
    double scale = op.getScale() ? in[3][rank]->number(0) : 1;
    for (int64_t i = 0; i < mean.size(); ++i)
      mean.setNumber(i, partita_rt::nextMean(mean.number(i), in[0][rank]->number(i), change, scale,
                                             std::multiplies<>()));
    out[0].push_back(std::make_shared<Tensor>(std::move(mean)));
  }
  return success();
}

LogicalResult oneBitClip(Execution &execution, par::OneBitClipOp op, RankInputs in,
                         RankOutputs out) {
  for (int64_t rank = 0; rank < execution.rankCount(); ++rank) {
    partita_rt::ClipFactors next = partita_rt::clipFactorsOf(
        in[0][rank]->number(0), in[1][rank]->number(0), in[2][rank]->number(0),
        op.getBeta().convertToDouble(), op.getExact());
    double numbers[] = {next.ofSums, next.ofGradients, next.typical};
    for (auto [result, number] : llvm::enumerate(numbers)) {
      Tensor value = *in[0][rank];
      value.setNumber(0, number);
      out[result].push_back(std::make_shared<Tensor>(std::move(value)));
    }
  }
  return success();
}

} // namespace

void partita::interp::addOneBitKernels(KernelTable &table) {
  table.addRanks<par::OneBitAllReduceOp>(oneBitAllReduce);
  table.addRanks<par::OneBitTermOp>(oneBitTerm);
  table.addRanks<par::OneBitMeanOp>(oneBitMean);
  table.addRanks<par::OneBitClipOp>(oneBitClip);
}
