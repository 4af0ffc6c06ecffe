//===- Differentiate.cpp - reverse-mode differentiation ---------------------------------------===//
//
// 1. Activity: a value is active if it depends on a trainable parameter other than through steps
//    (floor, sign, comparisons). Cotangents only flow through active values.
// 2. From train.minimize upward, each op with an active operand and a cotangent of its first result
//    builds its vector-Jacobian product. Contributions to one value are added in the order in which
//    they are built, which is the same on every rank.
// 3. train.accumulate is differentiated from the inside: the backward ops, seeded with the
//    cotangent of its sum, become a separate region, which sees only those values of the forward
//    region that are saved for it. It yields a value per active captured value, whose cotangent is
//    the sum.
//
// Placements: a value's cotangent has the dual placement (replicated <-> partial), so the gradient
// of f is an all-reduce and the gradient of g is the identity. This is where the collectives of the
// backward pass come from.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Autodiff/SavedValues.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Autodiff/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Marks new ops as part of the backward pass.
struct BackwardListener : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    provenance::set(op, provenance::kBackward, UnitAttr::get(op->getContext()));
  }
};

class Differentiation {
public:
  Differentiation(func::FuncOp function, ModuleOp module, FloatType sums)
      : function(function), module(module), sums(sums) {}

  /// Returns the cotangent of the loss: 1, or the loss scale at the start of the step.
  static Value firstCotangent(OpBuilder &builder, train::MinimizeOp minimize) {
    Type type = par::cotangentType(minimize.getLoss().getType());
    if (minimize->hasAttr(amp::AmpDialect::kScaled))
      return train::ReadOp::create(builder, minimize.getLoc(), type, amp::AmpDialect::kScale);
    return tx::createSplat(builder, minimize.getLoc(), type, 1.0);
  }

  FailureOr<unsigned> run(train::MinimizeOp minimize) {
    if (failed(mergeReads()))
      return failure();
    markActive();
    OpBuilder builder(minimize->getContext(), &listener);
    builder.setInsertionPoint(minimize);
    Value loss = minimize.getLoss();
    if (!active.contains(loss))
      return minimize.emitError() << "the loss depends on no trainable parameter", failure();
    accumulate(builder, loss, firstCotangent(builder, minimize));
    if (failed(block(builder, minimize->getBlock(), minimize)))
      return failure();
    unsigned updates = 0;
    SmallVector<train::ParameterOp> still;
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      auto read = reads.find(parameter.getSymNameAttr());
      if (read == reads.end() || parameter.getFrozen())
        continue;
      Value gradient = cotangents.lookup(read->second);
      if (!gradient) {
        if (active.contains(read->second))
          still.push_back(parameter);
        parameter.setFrozen(true);
        continue;
      }
      builder.setListener(nullptr);
      train::UpdateOp::create(builder, parameter.getLoc(), parameter.getSymName(),
                              storedValue(read->second), gradient);
      ++updates;
    }
    warnOf(still);
    if (updates == 0)
      return minimize.emitError() << "the loss depends on no trainable parameter", failure();
    if (Attribute scaled = minimize->getAttr(amp::AmpDialect::kScaled))
      module->setAttr(amp::AmpDialect::kScaled, scaled);
    minimize.erase();
    function->setAttr(par::ParDialect::kNoCotangents, UnitAttr::get(function.getContext()));
    return updates;
  }

private:
  /// Warns about parameters that the step reads but does not train.
  static void warnOf(ArrayRef<train::ParameterOp> still) {
    if (still.empty())
      return;
    train::ParameterOp first = still.front();
    InFlightDiagnostic warning = first.emitWarning() << "parameter '" << first.getSymName() << "'";
    if (still.size() > 1)
      warning << " and " << still.size() - 1 << " more get";
    else
      warning << " gets";
    warning << " no gradient and " << (still.size() > 1 ? "are" : "is")
            << " not trained: the loss depends on " << (still.size() > 1 ? "them" : "it")
            << " through steps alone (floor, round, sign, comparisons, indices), if at all; use "
            << "--freeze '" << first.getSymName() << "' if that is intended";
  }

  /// The value that an update changes: the parameter's own, where the forward pass reads it rounded.
  static Value storedValue(Value value) {
    auto read = value.getDefiningOp<train::ReadOp>();
    if (!read.getInt8Block())
      return value;
    OpBuilder after(read->getContext());
    after.setInsertionPointAfter(read);
    auto stored = cast<train::ReadOp>(after.clone(*read));
    stored.removeInt8BlockAttr();
    return stored;
  }

  /// Reads each parameter once, outside of the loop, so that all of its uses contribute to one
  /// gradient. A symbol is read before it is written, so every read has the first read's value.
  LogicalResult mergeReads() {
    SmallVector<train::ReadOp> all;
    function.walk([&](train::ReadOp read) { all.push_back(read); });
    for (train::ReadOp read : all) {
      auto [first, isFirst] = reads.try_emplace(read.getSymbolAttr().getAttr(), read.getResult());
      if (isFirst) {
        if (Operation *around = function.getBody().front().findAncestorOpInBlock(*read);
            around != read)
          read->moveBefore(around);
        continue;
      }
      if (first->second.getType() != read.getType())
        return read.emitError() << "reads '" << read.getSymbol() << "' as " << read.getType()
                                << ", and another read of the step as " << first->second.getType();
      read.getResult().replaceAllUsesWith(first->second);
      read.erase();
    }
    return success();
  }

  void markActive() {
    llvm::DenseSet<StringAttr> trainable;
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (!parameter.getFrozen())
        trainable.insert(parameter.getSymNameAttr());
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto read = dyn_cast<train::ReadOp>(op)) {
        if (trainable.contains(read.getSymbolAttr().getAttr()) &&
            par::isDifferentiable(read.getType()))
          active.insert(read.getResult());
        return;
      }
      // A region op is visited before its body: its sums are active if any value in it is.
      bool any = op->getNumRegions() != 0 && !isa<func::FuncOp>(op);
      any |=
          llvm::any_of(op->getOperands(), [&](Value operand) { return active.contains(operand); });
      auto differentiable = dyn_cast<DifferentiableInterface>(op);
      if (any && !(differentiable && differentiable.isStep()))
        for (Value result : op->getResults())
          if (par::isDifferentiable(result.getType()))
            active.insert(result);
    });
  }

  void accumulate(OpBuilder &builder, Value value, Value cotangent) {
    Value &known = cotangents[value];
    known =
        known
            ? tx::AddOp::create(builder, value.getLoc(), ValueRange{known, cotangent})->getResult(0)
            : cotangent;
  }

  /// Builds the backward ops of all ops of `block` before `end`, at the builder's insertion point.
  LogicalResult block(OpBuilder &builder, Block *block, Operation *end) {
    SmallVector<Operation *> forward;
    for (Operation &op : *block) {
      if (&op == end || (end && op.isBeforeInBlock(end) == false))
        break;
      forward.push_back(&op);
    }
    for (Operation *op : llvm::reverse(forward))
      if (failed(operation(builder, op)))
        return failure();
    return success();
  }

  LogicalResult operation(OpBuilder &builder, Operation *op) {
    SmallVector<Value> seeds;
    bool any = false;
    for (Value result : op->getResults()) {
      seeds.push_back(cotangents.lookup(result));
      any |= static_cast<bool>(seeds.back());
    }
    bool relevant =
        llvm::any_of(op->getOperands(), [&](Value operand) { return active.contains(operand); });
    if (!any || (!relevant && op->getNumRegions() == 0))
      return success();
    if (auto accumulateOp = dyn_cast<train::AccumulateOp>(op))
      return loop(builder, accumulateOp, seeds);
    auto differentiable = dyn_cast<DifferentiableInterface>(op);
    if (!differentiable)
      return op->emitError() << "op '" << op->getName()
                             << "' has no gradient, and the loss depends on it";
    for (auto [i, seed] : llvm::enumerate(seeds))
      if (i > 0 ? seed != nullptr : seed == nullptr)
        return op->emitError() << "a gradient through result " << i << " of '" << op->getName()
                               << "' is not known";
    SmallVector<Value> results = differentiable.buildGradient(builder, seeds);
    bool flowed = false;
    for (auto [operand, cotangent] : llvm::zip(op->getOperands(), results)) {
      if (!cotangent || !active.contains(operand))
        continue;
      flowed = true;
      RankedTensorType expected = par::cotangentType(operand.getType());
      if (cotangent.getType() != expected)
        return op->emitError() << "the gradient of '" << op->getName() << "' is "
                               << cotangent.getType() << " where the operand's cotangent is "
                               << expected;
      accumulate(builder, operand, cotangent);
    }
    if (!flowed)
      return op->emitError() << "op '" << op->getName()
                             << "' has no gradient, and the loss depends on it";
    return success();
  }

  /// Moves the computation of a loop's seed before the loop, where its region can use it. This
  /// fails for a seed that depends on the loop's own sums: the loss must be linear in them.
  LogicalResult hoist(Value value, Operation *loop) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop->getBlock() || op->isBeforeInBlock(loop))
      return success();
    if (op == loop)
      return loop->emitError() << "the loss is not linear in what the micro-batches add up to";
    for (Value operand : op->getOperands())
      if (failed(hoist(operand, loop)))
        return failure();
    op->moveBefore(loop);
    return success();
  }

  /// Returns the type in which the gradients of that many micro-batches are added up: for 16-bit
  /// gradients 32 bits, unless the option says otherwise.
  FailureOr<Type> sumType(Value gradient, int64_t count) const {
    Type own = getElementTypeOrSelf(gradient.getType());
    if (count < 2 || own == sums || !isShortFloat(own))
      return gradient.getType();
    if (isShortFloat(sums))
      return emitError(gradient.getLoc()) << "accumulate-type is " << sums << ", but gradients are "
                                          << own << ": they are added up in that, or in float32";
    return inSingleAtLeast(gradient.getType());
  }

  /// Moves the ops after `lastForward` into a separate region, which yields `gradients`.
  void separate(train::AccumulateOp op, Operation *lastForward, ArrayRef<Value> gradients) {
    Block &forward = op.getBody().front();
    Operation *yield = forward.getTerminator();
    SmallVector<Operation *> backward;
    for (Operation &each :
         lastForward ? llvm::make_range(std::next(lastForward->getIterator()), yield->getIterator())
                     : llvm::make_range(forward.begin(), yield->getIterator()))
      backward.push_back(&each);
    Block &block = op.getBackward().emplaceBlock();
    for (BlockArgument microBatch : forward.getArguments())
      block.addArgument(microBatch.getType(), microBatch.getLoc());
    OpBuilder end = OpBuilder::atBlockEnd(&block, &listener);
    Operation *last = train::YieldOp::create(end, op.getLoc(), gradients);
    for (Operation *each : backward)
      each->moveBefore(last);
    backward.push_back(last);
    IRMapping made;
    for (Operation *each : backward) {
      OpBuilder before(each);
      each->walk([&](Operation *inner) {
        for (OpOperand &operand : inner->getOpOperands())
          operand.set(autodiff::inBackward(before, op, operand.get(), made));
      });
    }
  }

  LogicalResult loop(OpBuilder &builder, train::AccumulateOp op, ArrayRef<Value> seeds) {
    if (op.hasBackward())
      return op.emitError() << "has a backward pass already";
    for (auto [number, batch] : llvm::enumerate(op.getBatches()))
      if (active.contains(batch))
        return op.emitError()
               << "batch #" << number
               << " depends on a trainable parameter; no gradient flows through batches";
    Block &body = op.getBody().front();
    Operation *yield = body.getTerminator(), *lastForward = yield->getPrevNode();
    llvm::SetVector<Value> captured;
    body.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (active.contains(operand) && operand.getParentRegion() != &op.getBody())
          captured.insert(operand);
    });
    // Cotangents of captured values accumulate separately inside the loop.
    llvm::DenseMap<Value, Value> outside;
    for (Value value : captured)
      if (Value known = cotangents.lookup(value)) {
        outside[value] = known;
        cotangents.erase(value);
      }
    for (Value seed : seeds)
      if (seed && failed(hoist(seed, op)))
        return failure();
    OpBuilder inside(op.getContext(), &listener);
    inside.setInsertionPoint(yield);
    for (auto [value, seed] : llvm::zip(yield->getOperands(), seeds))
      if (seed && active.contains(value))
        accumulate(inside, value, seed);
    if (failed(block(inside, &body, yield)))
      return failure();
    SmallVector<Value> gradients, sources;
    SmallVector<Type> types(op.getSums().getTypes());
    for (Value value : captured)
      if (Value gradient = cotangents.lookup(value)) {
        cotangents.erase(value);
        sources.push_back(value);
        gradients.push_back(gradient);
        FailureOr<Type> type = sumType(gradient, op.getCount());
        if (failed(type))
          return failure();
        types.push_back(*type);
      }
    OpBuilder plain(op);
    auto both = train::AccumulateOp::create(plain, op.getLoc(), types, op.getBatches(),
                                            train::PassName{train::PassKind::Backward});
    both.getBody().takeBody(op.getBody());
    separate(both, lastForward, gradients);
    size_t count = op.getSums().size();
    for (auto [before, after] : llvm::zip(op.getSums(), both.getSums())) {
      before.replaceAllUsesWith(after);
      if (Value known = cotangents.lookup(before))
        cotangents[after] = known;
    }
    for (auto [value, known] : outside)
      cotangents[value] = known;
    for (auto [i, source] : llvm::enumerate(sources)) {
      Value sum = both.getSums()[count + i];
      RankedTensorType type = par::cotangentType(source.getType());
      if (sum.getType() != type)
        sum = tx::CastOp::create(builder, source.getLoc(), type, sum);
      accumulate(builder, source, sum);
    }
    op.erase();
    return success();
  }

  func::FuncOp function;
  ModuleOp module;
  FloatType sums; // the type in which 16-bit gradients of several micro-batches are added up
  BackwardListener listener;
  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, Value> cotangents;
  llvm::MapVector<StringAttr, Value> reads;
};

struct Differentiate : partita::impl::DifferentiatePassBase<Differentiate> {
  using DifferentiatePassBase::DifferentiatePassBase;

  void runOnOperation() override {
    Builder b(&getContext());
    auto sums = llvm::StringSwitch<FloatType>(accumulateType)
                    .Case("float32", b.getF32Type())
                    .Case("bfloat16", b.getBF16Type())
                    .Case("float16", b.getF16Type())
                    .Default(FloatType());
    if (!sums) {
      getOperation().emitError() << "accumulate-type '" << accumulateType
                                 << "' is unknown; known: float32, bfloat16, float16";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<train::MinimizeOp> losses;
      function.walk([&](train::MinimizeOp op) { losses.push_back(op); });
      if (losses.empty())
        continue;
      if (losses.size() > 1 || losses.front()->getParentOp() != function) {
        losses.back().emitError() << "expected one train.minimize, at the function's top level";
        return signalPassFailure();
      }
      auto count = Differentiation(function, getOperation(), sums).run(losses.front());
      if (failed(count))
        return signalPassFailure();
      updates += *count;
    }
  }
};

} // namespace
