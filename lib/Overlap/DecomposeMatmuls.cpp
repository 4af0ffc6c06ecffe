//===- DecomposeMatmuls.cpp - matmuls in chunks, beside whose sums the next chunk is computed --===//
//
// For each all-reduce of a matmul's result, in each block: the matmul is cloned once per chunk of
// its rows, each clone with an all-reduce of its own, and the chunks are joined before the sum's
// first use. A matmul whose result only the next one adds to (cotangents of queries, keys and
// values) is part of the chunk. Which operands have the rows follows from the ops' shard rules.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Par/Placement.h"
#include "dialects/Tx/Tx.h"
#include "mlir/IR/IRMapping.h"
#include "partita/Analysis/Ahead.h"
#include "partita/Analysis/Flops.h"
#include "partita/Analysis/IdleOptions.h"
#include "partita/Analysis/Work.h"
#include "partita/Overlap/Passes.h"

namespace partita {
#define GEN_PASS_DEF_DECOMPOSEMATMULSPASS
#include "partita/Overlap/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns the outermost dimension with more than one element, so that chunks along it are
/// contiguous in memory; -1 if there is none but the last, which has no rows.
int64_t rowsOf(RankedTensorType type) {
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
    if (type.getDimSize(dim) > 1)
      return dim;
  return -1;
}

/// Adds the operands that have the rows of dimension `dim` of all results to `rows`. Returns false
/// if a result has other rows, or if an operand has them in another dimension.
bool traceRows(Operation *op, int64_t dim, llvm::SmallDenseSet<Value> &rows) {
  std::string error;
  const ShardRule *rule = isa<ShardInterface>(op) ? par::ruleOf(op, error) : nullptr;
  if (!rule || rule->results.size() != op->getNumResults() || rule->results.empty())
    return false;
  if (dim >= static_cast<int64_t>(rule->results[0].dims.size()))
    return false;
  const RuleDim &first = rule->results[0].dims[dim];
  if (first.letters.size() != 1 || first.isPart() || first.perShard)
    return false;
  unsigned letter = first.letters[0];
  auto isRows = [&](const RulePattern &pattern) {
    return pattern.dimOf(letter) == dim && pattern.dims[dim].letters.size() == 1 &&
           !pattern.dims[dim].isPart();
  };
  if (rule->letters[letter].never || !llvm::all_of(rule->results, isRows))
    return false;
  for (auto [pattern, operand] : llvm::zip(rule->operands, op->getOperands()))
    if (isRows(pattern))
      rows.insert(operand);
    else if (pattern.contains(letter))
      return false;
  return true;
}

/// Returns which values, of a matmul and of the ops that are fused to it, have the rows of its
/// results; none if its results have different rows, or if it is no matmul.
std::optional<llvm::SmallDenseSet<Value>> rowsOfMatmul(Operation *op, int64_t dim) {
  llvm::SmallDenseSet<Value> rows;
  auto fused = dyn_cast_or_null<tx::FusedMatmulOp>(op);
  if (!fused) {
    if (!op || op->getNumRegions() != 0 || !isMemoryEffectFree(op) ||
        flopsOf(op, FlopsOf::Shards).matmuls == 0 || !traceRows(op, dim, rows))
      return std::nullopt;
    return rows;
  }
  Block &body = fused.getBody().front();
  for (Value result : body.getTerminator()->getOperands())
    rows.insert(result);
  for (Operation &inner : llvm::reverse(body.without_terminator())) {
    bool has = llvm::any_of(inner.getResults(), [&](Value value) { return rows.contains(value); });
    if (has && !traceRows(&inner, dim, rows))
      return std::nullopt;
  }
  for (BlockArgument argument : body.getArguments())
    if (rows.contains(argument))
      rows.insert(fused->getOperand(argument.getArgNumber()));
  return rows;
}

/// Makes the chunks of one value.
class Chunks {
public:
  Chunks(int64_t count, int64_t dim) : count(count), dim(dim) {}

  /// Returns true if the value, and all that is computed with it, has such chunks.
  bool add(Value value) {
    if (!par::ChunkOp::typeOf(typeOf(value), count, dim))
      return false;
    Operation *op = value.getDefiningOp();
    std::optional<llvm::SmallDenseSet<Value>> rows = rowsOfMatmul(op, dim);
    if (!rows)
      return true; // its chunks are views
    for (Value row : *rows)
      if (!par::ChunkOp::typeOf(typeOf(row), count, dim))
        return false;
    ops.push_back(op);
    rowsOf[op] = *rows;
    cost += analysis::workOf(op).cost();
    for (Value operand : op->getOperands())
      if (rows->contains(operand) && isOnlyAddedTo(operand, op) && !add(operand))
        return false;
    return true;
  }

  /// Builds chunk number `index` of a value.
  Value build(OpBuilder &builder, Value value, int64_t index) const {
    Operation *op = value.getDefiningOp();
    auto found = rowsOf.find(op);
    if (found == rowsOf.end())
      return par::ChunkOp::create(builder, value.getLoc(), chunkOf(value), value, index, count,
                                  dim);
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (found->second.contains(operand) && !mapping.contains(operand))
        mapping.map(operand, build(builder, operand, index));
    Operation *clone = builder.clone(*op, mapping);
    for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
      to.setType(chunkOf(from));
    for (auto [from, to] : llvm::zip(op->getRegions(), clone->getRegions()))
      shrink(from, to, found->second);
    return clone->getResult(cast<OpResult>(value).getResultNumber());
  }

  /// What the ops in a chunk do, all chunks together.
  double cost = 0;
  /// The ops that chunks replace, users first.
  SmallVector<Operation *> ops;

private:
  RankedTensorType chunkOf(Value value) const {
    return par::ChunkOp::typeOf(typeOf(value), count, dim);
  }

  /// Returns true if the value is a matmul's that only `user` reads, in one block.
  bool isOnlyAddedTo(Value value, Operation *user) const {
    Operation *op = value.getDefiningOp();
    return op && value.hasOneUse() && op->getNumResults() == 1 &&
           op->getBlock() == user->getBlock() && rowsOfMatmul(op, dim).has_value();
  }

  /// Gives the values of a cloned region that have the rows the types of chunks.
  void shrink(Region &from, Region &to, const llvm::SmallDenseSet<Value> &rows) const {
    for (auto [before, after] : llvm::zip(from.getArguments(), to.getArguments()))
      if (rows.contains(before))
        after.setType(chunkOf(before));
    for (auto [before, after] : llvm::zip(from.getOps(), to.getOps()))
      for (auto [old, result] : llvm::zip(before.getResults(), after.getResults()))
        if (rows.contains(old))
          result.setType(chunkOf(old));
  }

  int64_t count, dim;
  llvm::DenseMap<Operation *, llvm::SmallDenseSet<Value>> rowsOf;
};

struct DecomposeMatmuls : partita::impl::DecomposeMatmulsPassBase<DecomposeMatmuls> {
  using DecomposeMatmulsPassBase::DecomposeMatmulsPassBase;

  void runOnOperation() override {
    if (chunks < 1) {
      getOperation().emitError() << "chunks=" << chunks.getValue() << ", expected at least 1";
      return signalPassFailure();
    }
    if (chunks == 1)
      return;
    SmallVector<par::AllReduceOp> sums;
    getOperation().walk([&](par::AllReduceOp op) { sums.push_back(op); });
    int64_t count = llvm::count_if(sums, [&](par::AllReduceOp op) { return decompose(op); });
    decomposed += count;
    if (count == 0 && failed(analysis::reportIdle(
                          getOperation(), "overlap-chunks",
                          "no matmul whose sum nothing else runs beside has as many equal "
                          "chunks of rows")))
      signalPassFailure();
  }

private:
  /// Returns what is computed after `op` and before `end`.
  static double workBetween(Operation *op, Operation *end) {
    double cost = 0;
    for (op = op->getNextNode(); op && op != end; op = op->getNextNode())
      cost += analysis::workOf(op).cost();
    return cost;
  }

  bool decompose(par::AllReduceOp sum) {
    Value value = sum->getNumOperands() == 1 ? sum->getOperand(0) : Value();
    Operation *matmul = value ? value.getDefiningOp() : nullptr;
    Operation *use = analysis::firstUse(sum);
    if (!matmul || !use || matmul->getBlock() != sum->getBlock() || !value.hasOneUse() ||
        matmul->getNumResults() != 1)
      return false;
    int64_t dim = rowsOf(typeOf(value));
    Chunks made(chunks, dim);
    // The sum of a matmul followed by as much work (the gradient of the weight) is hidden already.
    if (dim < 0 || !made.add(value) || made.ops.empty() || workBetween(matmul, use) >= made.cost)
      return false;
    OpBuilder builder(matmul);
    SmallVector<Value> reduced;
    for (int64_t i = 0; i < chunks; ++i) {
      IRMapping mapping;
      mapping.map(value, made.build(builder, value, i));
      Operation *part = builder.clone(*sum, mapping);
      part->getResult(0).setType(par::ChunkOp::typeOf(typeOf(sum->getResult(0)), chunks, dim));
      reduced.push_back(part->getResult(0));
    }
    builder.setInsertionPoint(use);
    Value joined =
        par::JoinOp::create(builder, sum.getLoc(), sum->getResult(0).getType(), reduced, dim);
    sum->getResult(0).replaceAllUsesWith(joined);
    sum->erase();
    for (Operation *op : made.ops)
      op->erase();
    return true;
  }
};

} // namespace
