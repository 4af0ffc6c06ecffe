//===- DecomposeMatmuls.cpp - matmuls in chunks, beside which collectives of other chunks run ---===//
//
// For each all-reduce or reduce-scatter of a matmul's result, in each block: the matmul is cloned
// once per chunk of its rows, each clone with a collective of its own, and the chunks are joined before
// the first use. A matmul whose result only the next op adds to (cotangents of queries, keys and
// values, a residual sum that stays partial) is part of the chunk. For each all-gather of a matmul's
// operand: one per chunk, all of which begin before the first chunk is computed. Which operands have the
// rows follows from the ops' shard rules.
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

/// Returns the type of a chunk; null if the value has no such chunks.
RankedTensorType chunkType(Value value, int64_t count, int64_t dim) {
  auto mesh = par::MeshAttr::of(value.getParentRegion()->getParentOp());
  return par::ChunkOp::typeOf(typeOf(value), count, dim, mesh);
}

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
  const RuleLetter &rowLetter = rule->letters[letter];
  if (rowLetter.never || rowLetter.byForm || rowLetter.lacksFirstIndex ||
      !llvm::all_of(rule->results, isRows))
    return false;
  for (auto [pattern, operand] : llvm::zip(rule->operands, op->getOperands()))
    if (isRows(pattern))
      rows.insert(operand);
    else if (pattern.contains(letter) || pattern.firstIndexOf == static_cast<int>(letter))
      return false; // or if each chunk needed the number of its first row
  // A value that is also another operand has no chunk for that.
  return llvm::all_of(llvm::zip(rule->operands, op->getOperands()), [&](auto each) {
    return isRows(std::get<0>(each)) || !rows.contains(std::get<1>(each));
  });
}

bool isMatmul(Operation *op) {
  return isa<tx::FusedMatmulOp>(op) ||
         (op->getNumRegions() == 0 && flopsOf(op, FlopsOf::Shards).matmuls != 0);
}

/// The values that have the rows of an op's results: operands and, of fused ops, values inside.
struct Rows {
  llvm::SmallDenseSet<Value> values;
  int64_t dim; ///< of these values
};

/// Returns the rows of dimension `dim` of the results of a matmul, of the ops that are fused to it, of an
/// elementwise op or of a reshape; none if its results have different rows, or if it is another op.
std::optional<Rows> rowsOfOp(Operation *op, int64_t dim) {
  Rows rows{{}, dim};
  if (auto reshape = dyn_cast_or_null<tx::ReshapeOp>(op)) {
    rows.values.insert(reshape.getX());
    rows.dim = rowsOf(typeOf(reshape.getX()));
    bool isOutermost = dim == rowsOf(typeOf(reshape.getResult())) && rows.dim >= 0;
    return isOutermost ? std::optional(rows) : std::nullopt;
  }
  auto fused = dyn_cast_or_null<tx::FusedMatmulOp>(op);
  if (!fused) {
    if (!op || !(isMatmul(op) || tx::isElementwise(op)) || !isMemoryEffectFree(op) ||
        !traceRows(op, dim, rows.values))
      return std::nullopt;
    return rows;
  }
  Block &body = fused.getBody().front();
  for (Value result : body.getTerminator()->getOperands())
    rows.values.insert(result);
  for (Operation &inner : llvm::reverse(body.without_terminator())) {
    bool has =
        llvm::any_of(inner.getResults(), [&](Value value) { return rows.values.contains(value); });
    if (has && !traceRows(&inner, dim, rows.values))
      return std::nullopt;
  }
  for (BlockArgument argument : body.getArguments())
    if (rows.values.contains(argument))
      rows.values.insert(fused->getOperand(argument.getArgNumber()));
  for (BlockArgument argument : body.getArguments())
    if (!rows.values.contains(argument) &&
        rows.values.contains(fused->getOperand(argument.getArgNumber())))
      return std::nullopt;
  return rows;
}

/// Makes the chunks of one value.
class Chunks {
public:
  explicit Chunks(int64_t count) : count(count) {}

  /// Has the chunks of a value be others than views of it: those that `fill` sets later.
  void give(Value value) { given[value] = {}; }
  void fill(Value value, ArrayRef<Value> chunks) {
    given[value].assign(chunks.begin(), chunks.end());
  }

  /// Returns true if the value, and all that is computed with it, has such chunks along `dim`.
  bool add(Value value, int64_t dim) {
    if (!chunkType(value, count, dim))
      return false;
    Operation *op = value.getDefiningOp();
    std::optional<Rows> rows = rowsOfOp(op, dim);
    auto isPartOf = [&](Value operand) {
      return rows->values.contains(operand) && isPart(operand, op, rows->dim);
    };
    if (!rows || !(isMatmul(op) || llvm::any_of(op->getOperands(), isPartOf)))
      return true; // its chunks are views
    for (Value row : rows->values)
      if (!chunkType(row, count, rows->dim) ||
          (given.contains(row) && rows->dim != rowsOf(typeOf(row))))
        return false;
    ops.push_back(op);
    cost += analysis::workOf(op).cost();
    for (Value operand : op->getOperands())
      if (given.contains(operand))
        usesGiven |= rows->values.contains(operand);
      else if (isPartOf(operand) && !add(operand, rows->dim))
        return false;
    computed[op] = std::move(*rows);
    return true;
  }

  /// Builds chunk number `index` of a value.
  Value build(OpBuilder &builder, Value value, int64_t dim, int64_t index) const {
    if (auto known = given.find(value); known != given.end())
      return known->second[index];
    Operation *op = value.getDefiningOp();
    auto found = computed.find(op);
    if (found == computed.end())
      return par::ChunkOp::create(builder, value.getLoc(), chunkOf(value, dim), value, index, count,
                                  dim);
    const Rows &rows = found->second;
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (rows.values.contains(operand) && !mapping.contains(operand))
        mapping.map(operand, build(builder, operand, rows.dim, index));
    Operation *clone = builder.clone(*op, mapping);
    for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
      to.setType(chunkOf(from, dim));
    for (auto [from, to] : llvm::zip(op->getRegions(), clone->getRegions()))
      shrink(from, to, rows);
    return clone->getResult(cast<OpResult>(value).getResultNumber());
  }

  /// What the ops in a chunk do, all chunks together.
  double cost = 0;
  /// The ops that chunks replace, users first.
  SmallVector<Operation *> ops;
  /// Is a given value among what they read?
  bool usesGiven = false;

private:
  RankedTensorType chunkOf(Value value, int64_t dim) const { return chunkType(value, count, dim); }

  /// Returns true for a value whose chunks are given, and for a matmul's that only `user` reads, in one
  /// block; also if it is reshaped.
  bool isPart(Value value, Operation *user, int64_t dim) const {
    if (given.contains(value))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || !value.hasOneUse() || op->getNumResults() != 1 || op->getBlock() != user->getBlock())
      return false;
    std::optional<Rows> rows = rowsOfOp(op, dim);
    if (auto reshape = dyn_cast<tx::ReshapeOp>(op))
      return rows && isPart(reshape.getX(), op, rows->dim);
    return rows && isMatmul(op);
  }

  /// Gives the values of a cloned region that have the rows the types of chunks.
  void shrink(Region &from, Region &to, const Rows &rows) const {
    for (auto [before, after] : llvm::zip(from.getArguments(), to.getArguments()))
      if (rows.values.contains(before))
        after.setType(chunkOf(before, rows.dim));
    for (auto [before, after] : llvm::zip(from.getOps(), to.getOps()))
      for (auto [old, result] : llvm::zip(before.getResults(), after.getResults()))
        if (rows.values.contains(old))
          result.setType(chunkOf(old, rows.dim));
  }

  int64_t count;
  llvm::DenseMap<Operation *, Rows> computed;
  llvm::DenseMap<Value, SmallVector<Value>> given;
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
    SmallVector<Operation *> collectives;
    getOperation().walk([&](Operation *op) {
      if (isa<par::AllReduceOp, par::ReduceScatterOp, par::AllGatherOp>(op))
        collectives.push_back(op);
    });
    int64_t count = llvm::count_if(collectives, [&](Operation *op) {
      return isa<par::AllGatherOp>(op) ? decomposeGather(op) : decomposeSum(op);
    });
    decomposed += count;
    if (count == 0 && failed(analysis::reportIdle(
                          getOperation(), "overlap-chunks",
                          "no matmul whose collective nothing else overlaps has as many equal "
                          "chunks of rows, or of samples where the sequence is split")))
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

  /// Returns false for a collective that moves shards along the dimension of the rows, whose chunks would
  /// be other elements, unless each chunk has blocks of its own.
  bool keepsRows(Operation *collective, int64_t dim) const {
    auto move = dyn_cast<par::ReshardInterface>(collective);
    if (!move || move.getDim() != static_cast<uint64_t>(dim))
      return true;
    int64_t blocks = static_cast<int64_t>(move.getBlocks());
    RankedTensorType shard = chunkType(move.getShard(), chunks, dim);
    return shard && blocks % chunks == 0 &&
           par::Layout::of(shard).blocksOf(move.getAxisAttr()) == blocks / chunks;
  }

  /// Clones the collective for chunk number `index` of its operand.
  Value buildFor(OpBuilder &builder, Operation *collective, Value chunk, int64_t dim) const {
    IRMapping mapping;
    mapping.map(collective->getOperand(0), chunk);
    Operation *clone = builder.clone(*collective, mapping);
    clone->getResult(0).setType(chunkType(collective->getResult(0), chunks, dim));
    if (auto move = dyn_cast<par::ReshardInterface>(clone);
        move && move.getDim() == static_cast<uint64_t>(dim))
      move.setBlocks(move.getBlocks() / static_cast<uint64_t>(chunks));
    return clone->getResult(0);
  }

  /// Replaces the uses of a value that its chunks do not replace.
  static void join(Value value, ArrayRef<Value> chunks, int64_t dim) {
    Operation *use = analysis::firstUseOf(value);
    if (!use)
      return;
    OpBuilder builder(use);
    value.replaceAllUsesWith(
        par::JoinOp::create(builder, value.getLoc(), value.getType(), chunks, dim));
  }

  static void erase(ArrayRef<Operation *> users) {
    for (Operation *op : users)
      op->erase();
  }

  bool decomposeSum(Operation *sum) {
    Value value = sum->getNumOperands() == 1 ? sum->getOperand(0) : Value();
    Operation *matmul = value ? value.getDefiningOp() : nullptr;
    Operation *use = analysis::firstUse(sum);
    if (!matmul || !use || matmul->getBlock() != sum->getBlock() || matmul->getNumResults() != 1 ||
        analysis::firstUseOf(value) != sum)
      return false;
    int64_t dim = rowsOf(typeOf(value));
    Chunks made(chunks);
    // The sum of a matmul followed by as much work (the gradient of the weight) is hidden already.
    if (dim < 0 || !keepsRows(sum, dim) || !made.add(value, dim) || made.ops.empty() ||
        workBetween(matmul, use) >= made.cost)
      return false;
    OpBuilder builder(matmul);
    SmallVector<Value> partial, reduced;
    for (int64_t i = 0; i < chunks; ++i) {
      partial.push_back(made.build(builder, value, dim, i));
      reduced.push_back(buildFor(builder, sum, partial.back(), dim));
    }
    join(sum->getResult(0), reduced, dim);
    sum->erase();
    join(value, partial, dim);
    erase(made.ops);
    return true;
  }

  bool decomposeGather(Operation *gather) {
    Value full = gather->getResult(0), shard = gather->getOperand(0);
    int64_t dim = rowsOf(typeOf(full));
    Chunks made(chunks);
    made.give(full);
    llvm::SmallPtrSet<Operation *, 4> reshapes;
    Operation *matmul = analysis::firstUseOf(full);
    for (; matmul && isa<tx::ReshapeOp>(matmul);
         matmul = analysis::firstUseOf(matmul->getResult(0)))
      reshapes.insert(matmul);
    auto isInTheWay = [&](Operation *user) { // reads the full value before its chunks are joined
      Operation *here = gather->getBlock()->findAncestorOpInBlock(*user);
      return !reshapes.contains(here) && here->isBeforeInBlock(matmul);
    };
    if (!matmul || matmul->getNumResults() != 1 || llvm::any_of(gather->getUsers(), isInTheWay))
      return false;
    Value result = matmul->getResult(0);
    if (!isMatmul(matmul) || dim < 0 || !keepsRows(gather, dim) || !chunkType(shard, chunks, dim))
      return false;
    int64_t resultDim = rowsOf(typeOf(result));
    if (resultDim < 0 || !made.add(result, resultDim) || !made.usesGiven ||
        workBetween(gather, matmul) >= made.cost)
      return false;
    OpBuilder builder(matmul);
    SmallVector<Value> gathered, results;
    for (int64_t i = 0; i < chunks; ++i) {
      Value chunk = par::ChunkOp::create(builder, gather->getLoc(), chunkType(shard, chunks, dim),
                                         shard, i, chunks, dim);
      gathered.push_back(buildFor(builder, gather, chunk, dim));
    }
    made.fill(full, gathered);
    for (int64_t i = 0; i < chunks; ++i)
      results.push_back(made.build(builder, result, resultDim, i));
    join(result, results, resultDim);
    erase(made.ops);
    join(full, gathered, dim);
    gather->erase();
    return true;
  }
};

} // namespace
