//===- SimplifyCollectives.cpp - algebraic rewrites of collectives ----------------------------===//
//
// Runs the canonicalization patterns of the par dialect, and three that concern other ops:
//
//   - g(a) + g(b) = g(a + b), through any number of terms: one reduction for both branches of a
//     block with parallel residual branches. The same holds for reduce-scatters.
//   - f(op1(x)), f(op2(x)) = op1(f(x)), op2(f(x)), if operands have fewer bytes than results
//     (the norms of such a block): one reduction of x's cotangent for both.
//   - op(gather(x)) = gather(op(x)), if op's result has fewer bytes than its operand and its rule
//     lets it run on shards: less is gathered.
//
// Runs before differentiation, so that backward halves are only made for what remains.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Partition/Causes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_SIMPLIFYCOLLECTIVESPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Collects the leaves of a tree of additions whose inner nodes have no other use.
void collectTerms(Value value, SmallVectorImpl<Value> &terms, bool isRoot = true) {
  auto add = value.getDefiningOp<tx::AddOp>();
  if (!add || (!isRoot && !value.hasOneUse())) {
    terms.push_back(value);
    return;
  }
  collectTerms(add.getA(), terms, false);
  collectTerms(add.getB(), terms, false);
}

/// Returns true if the value is a sum over ranks with no other use.
bool isOwnSum(Value value) {
  return isa_and_nonnull<par::GOp, par::ReduceScatterOp>(value.getDefiningOp()) &&
         value.hasOneUse();
}

/// Returns true if both sum values of one type in the same way.
bool sumsAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getOperandTypes() == b->getOperandTypes() &&
         a->getResultTypes() == b->getResultTypes() &&
         a->getAttrOfType<StringAttr>("axis") == b->getAttrOfType<StringAttr>("axis");
}

struct SumOfSums : OpRewritePattern<tx::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tx::AddOp root, PatternRewriter &rewriter) const override {
    if (root->hasOneUse() && isa<tx::AddOp>(*root->user_begin()))
      return failure(); // part of a larger tree
    SmallVector<Value> terms;
    collectTerms(root.getResult(), terms);
    Value *first = llvm::find_if(terms, [&](Value term) {
      return isOwnSum(term) && llvm::any_of(terms, [&](Value other) {
               return other != term && isOwnSum(other) &&
                      sumsAlike(term.getDefiningOp(), other.getDefiningOp());
             });
    });
    if (first == terms.end())
      return failure();
    Operation *sum = first->getDefiningOp();
    SmallVector<Value> partial, rest;
    for (Value term : terms)
      isOwnSum(term) && sumsAlike(sum, term.getDefiningOp())
          ? partial.push_back(term.getDefiningOp()->getOperand(0))
          : rest.push_back(term);
    auto addUp = [&](Value a, Value b) -> Value {
      return tx::AddOp::create(rewriter, root.getLoc(), TypeRange{a.getType()}, ValueRange{a, b})
          ->getResult(0);
    };
    Value open = partial.front();
    for (Value other : ArrayRef(partial).drop_front())
      open = addUp(open, other);
    IRMapping mapping;
    mapping.map(sum->getOperand(0), open);
    Operation *joined = rewriter.clone(*sum, mapping);
    SmallVector<Location> locs{sum->getLoc()}; // the reasons of all sums
    for (Value term : terms)
      if (Operation *other = term.getDefiningOp();
          other && other != sum && isOwnSum(term) && sumsAlike(sum, other))
        locs.push_back(other->getLoc());
    joined->setLoc(rewriter.getFusedLoc(locs));
    Value total = joined->getResult(0);
    for (Value other : rest)
      total = addUp(total, other);
    rewriter.replaceOp(root, total);
    return success();
  }
};

int64_t bitsOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * tensor.getElementTypeBitWidth();
}

struct LessBeforeGather : RewritePattern {
  LessBeforeGather(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<ShardInterface>(op) || op->getNumOperands() != 1 || op->getNumResults() != 1)
      return failure();
    auto gather = op->getOperand(0).getDefiningOp<par::AllGatherOp>();
    Type after = op->getResult(0).getType();
    if (!gather || !gather->hasOneUse() || bitsOf(after) >= bitsOf(gather.getFullType()))
      return failure();
    std::string error;
    const ShardRule *rule = par::ruleOf(op, error);
    par::Layout shard(par::Layout::of(after).shape);
    par::RuleProblem problem;
    if (!rule ||
        !par::placeResults(*rule, par::Layout::of(gather.getShardType()), false, shard, problem))
      return failure();
    StringAttr axis = gather.getAxisAttr();
    int dim = shard.dimOf(axis);
    if (dim < 0 || shard.splits[dim].back().axis != axis || shard.unequalDim() >= 0)
      return failure();
    auto type = shard.localType(cast<RankedTensorType>(after).getElementType(),
                                par::MeshAttr::of(op), [](const Twine &) {});
    if (failed(type))
      return failure();
    IRMapping mapping;
    mapping.map(gather.getResult(), gather.getValue());
    Operation *less = rewriter.clone(*op, mapping);
    less->getResult(0).setType(*type);
    cast<ShardInterface>(less).localize();
    rewriter.replaceOp(
        op, par::AllGatherOp::create(rewriter, gather.getLoc(), after, less->getResult(0), axis,
                                     rewriter.getI64IntegerAttr(dim),
                                     rewriter.getI64IntegerAttr(shard.blocksOf(axis).count),
                                     gather.getReasonAttr(), gather.getAgainAttr()));
    rewriter.eraseOp(gather);
    return success();
  }
};

struct SharedEntry : OpRewritePattern<par::FOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(par::FOp f, PatternRewriter &rewriter) const override {
    Operation *op = f.getValue().getDefiningOp();
    StringAttr axis = f.getAxisAttr();
    if (!op || !isEntry(op, axis))
      return failure();
    for (Value x : op->getOperands()) {
      SmallVector<Operation *> entries = entriesOf(x, op->getBlock(), axis);
      int64_t others = bitsOf(x.getType()), results = 0;
      for (Operation *entry : entries) {
        for (Value operand : entry->getOperands())
          others += operand == x ? 0 : bitsOf(operand.getType());
        for (Operation *user : entry->getUsers())
          results += bitsOf(user->getResult(0).getType());
      }
      if (entries.size() < 2 || others >= results)
        continue;
      for (Operation *entry : entries)
        enterBefore(entry, axis, rewriter);
      return success();
    }
    return failure();
  }

private:
  static bool isFOver(Operation *op, StringAttr axis) {
    auto f = dyn_cast<par::FOp>(op);
    return f && f.getAxisAttr() == axis;
  }

  /// Returns true for an op that every rank computes alike, and whose results are all used through
  /// f.
  static bool isEntry(Operation *op, StringAttr axis) {
    return isa<ShardInterface>(op) && !op->use_empty() &&
           llvm::all_of(op->getUsers(), [&](Operation *user) { return isFOver(user, axis); }) &&
           llvm::all_of(op->getOperandTypes(), [&](Type type) {
             return par::isDifferentiable(type) &&
                    par::Layout::of(type).kind(axis) == par::Kind::Invariant;
           });
  }

  static SmallVector<Operation *> entriesOf(Value x, Block *block, StringAttr axis) {
    llvm::SetVector<Operation *> entries;
    for (Operation *user : x.getUsers())
      if (user->getBlock() == block && isEntry(user, axis))
        entries.insert(user);
    return entries.takeVector();
  }

  /// Returns true for a parameter, also through an f over another axis.
  static bool isParameter(Value value) {
    while (auto f = value.getDefiningOp<par::FOp>())
      value = f.getValue();
    return bool(value.getDefiningOp<train::ReadOp>());
  }

  /// Returns the value's f. It takes over the cause of the f after the entry, and keeps earlier
  /// causes.
  static Value entered(Value value, StringAttr axis, Location reason, PatternRewriter &rewriter) {
    Location loc = inLayerOf(value.getLoc(), reason);
    if (SmallVector<par::CauseAttr> causes = par::causesOf(reason); !causes.empty()) {
      par::CauseAttr cause = causes.front();
      if (isParameter(value))
        cause = par::CauseAttr::get(rewriter.getContext(), par::Role::Parameter, cause.getLetter(),
                                    cause.getRule(), cause.getOp(), cause.getNode(),
                                    cause.getLayer(), cause.getLayers(), cause.getSeed());
      loc = par::withCause(loc, cause);
    }
    for (Operation *user : value.getUsers())
      if (isFOver(user, axis) && user->getBlock() == value.getParentBlock()) {
        user->setLoc(rewriter.getFusedLoc({user->getLoc(), loc}));
        return user->getResult(0);
      }
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfterValue(value);
    par::Layout layout = par::Layout::of(value.getType());
    layout.set(axis, par::Kind::Replicated);
    return par::FOp::create(rewriter, loc, par::withLayout(value.getType(), layout), value, axis);
  }

  static void enterBefore(Operation *entry, StringAttr axis, PatternRewriter &rewriter) {
    SmallVector<Operation *> users(entry->user_begin(), entry->user_end());
    Location reason = users.front()->getLoc();
    rewriter.modifyOpInPlace(entry, [&] {
      for (OpOperand &operand : entry->getOpOperands())
        operand.set(entered(operand.get(), axis, reason, rewriter));
      for (Value result : entry->getResults()) {
        par::Layout layout = par::Layout::of(result.getType());
        layout.set(axis, par::Kind::Replicated);
        result.setType(par::withLayout(result.getType(), layout));
      }
    });
    for (Operation *user : users)
      rewriter.replaceOp(user, user->getOperand(0));
  }
};

struct SimplifyCollectives : partita::impl::SimplifyCollectivesPassBase<SimplifyCollectives> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      if (op.getDialectNamespace() == par::ParDialect::getDialectNamespace())
        op.getCanonicalizationPatterns(patterns, context);
    patterns.add<SumOfSums, SharedEntry, LessBeforeGather>(context);
    GreedyRewriteConfig config;
    config.enableFolding(false);
    int64_t before = countParOps();
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    removed += std::max<int64_t>(before - countParOps(), 0);
  }

private:
  int64_t countParOps() {
    int64_t count = 0;
    getOperation().walk([&](Operation *op) { count += isa<par::ParDialect>(op->getDialect()); });
    return count;
  }
};

} // namespace
