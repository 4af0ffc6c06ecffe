//===- TypeGradients.cpp - types in which gradients are reduced and updates read them ---------===//
//
// Updates and norms take gradients of any type, so a 32-bit sum, or a gradient reduced in a type of
// its own, reaches them without rounding.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/OneBit.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "dialects/Zero/Zero.h"
#include "lib/Amp/StoredTypes.h"
#include "partita/Amp/Passes.h"
#include "llvm/ADT/StringSwitch.h"

namespace partita {
#define GEN_PASS_DEF_TYPEGRADIENTSPASS
#include "partita/Amp/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns true for an op that only sums one value over ranks, or takes a shard of it.
bool passesOn(Operation *op) {
  return isa_and_nonnull<par::AllReduceOp, zero::ReduceScatterOp, zero::ShardOp>(op) &&
         op->getNumOperands() == 1;
}
bool reduces(Operation *op) { return isa<par::AllReduceOp, zero::ReduceScatterOp>(op); }

/// Returns true if the value is summed over ranks.
bool isExchanged(Value value) {
  for (Operation *op = value.getDefiningOp(); passesOn(op); op = op->getOperand(0).getDefiningOp())
    if (reduces(op))
      return true;
  return false;
}

/// Returns the value with another element type, computed in it from its source if the ops in
/// between allow that.
Value inType(Value value, FloatType element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  Operation *op = value.getDefiningOp();
  auto cast = dyn_cast_or_null<tx::CastOp>(op);
  if (cast && cast.getX().getType().getElementType() == element)
    return cast.getX();
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  if (!passesOn(op)) // also of what a loop adds up, which is of no pass itself
    return tx::CastOp::create(builder, provenance::backward(value.getLoc()), type.clone(element),
                              value);
  Value source = inType(op->getOperand(0), element);
  Operation *made = builder.clone(*op);
  made->setOperand(0, source);
  made->getResult(0).setType(type.clone(element));
  return made->getResult(0);
}

/// Erases the value, and all that was only needed for it.
void erase(Value value) {
  while (Operation *op = value.use_empty() ? value.getDefiningOp() : nullptr) {
    if (!passesOn(op) && !isa<tx::CastOp>(op))
      return;
    value = op->getOperand(0);
    op->erase();
  }
}

struct TypeGradients : partita::impl::TypeGradientsPassBase<TypeGradients> {
  using TypeGradientsPassBase::TypeGradientsPassBase;

  void runOnOperation() override {
    if (failed(parse()))
      return signalPassFailure();
    anyReduced = false;
    SmallVector<train::OptimizerInterface> updates;
    getOperation().walk([&](train::OptimizerInterface update) { updates.push_back(update); });
    for (train::OptimizerInterface update : updates)
      settle(update.getUpdatingGradient());
    getOperation().walk([&](par::OneBitTermOp term) { settleTerm(term); });
    if (wire && !anyReduced) {
      bool isOfStages = getOperation()->hasAttr(pipe::PipeDialect::kStages);
      getOperation().emitError()
          << "--reduce-type: has no effect, because "
          << (par::hasOneBitSums(getOperation())
                  ? "all sums over ranks are those of momenta, of float32: a bit per "
                    "element, and in exact steps 32"
              : isOfStages ? "no gradient is reduced over the ranks of a stage"
                           : "no gradient is reduced over ranks")
          << "; leave it out";
      signalPassFailure();
    }
  }

private:
  LogicalResult parse() {
    Builder b(&getContext());
    wire = llvm::StringSwitch<FloatType>(reduceType)
               .Case("float32", b.getF32Type())
               .Case("bfloat16", b.getBF16Type())
               .Case("float16", b.getF16Type())
               .Default(FloatType());
    if (wire || reduceType == "auto")
      return success();
    return getOperation().emitError() << "reduce-type '" << reduceType
                                      << "' is unknown; known: auto, float32, bfloat16, float16";
  }

  static bool isUpdate(Operation *op) { return isa<train::TrainDialect>(op->getDialect()); }

  void settle(Value gradient) {
    FloatType element = typeFor(gradient);
    if (element && llvm::all_of(gradient.getUsers(), isUpdate)) {
      Value made = inType(gradient, element);
      if (made != gradient)
        ++changed;
      gradient.replaceUsesWithIf(made, [](OpOperand &use) { return isUpdate(use.getOwner()); });
      erase(gradient);
      gradient = made;
    }
    if (auto loop = gradient.getDefiningOp<train::AccumulateOp>())
      settleYield(loop, cast<OpResult>(gradient).getResultNumber());
  }

  /// What ranks add to a momentum with a bit per element is float32, widened from a gradient that other axes have summed.
  void settleTerm(par::OneBitTermOp term) {
    auto widened = term.getTerm().getDefiningOp<tx::CastOp>();
    Value gradient = widened ? Value(widened.getX()) : Value(term.getTerm());
    FloatType element = typeFor(gradient);
    if (element && term.getTerm().hasOneUse() && gradient.hasOneUse()) {
      Value before = term.getTerm(), made = inType(gradient, element);
      if (made != gradient) {
        ++changed;
        OpBuilder builder(term);
        Type type = before.getType();
        term.getTermMutable().assign(
            made.getType() == type
                ? made
                : Value(tx::CastOp::create(builder, provenance::backward(term.getLoc()), type,
                                           made)));
        erase(before);
        gradient = made;
      }
    }
    if (auto loop = gradient.getDefiningOp<train::AccumulateOp>())
      settleYield(loop, cast<OpResult>(gradient).getResultNumber());
  }

  /// Returns the type in which a gradient should reach its update; null to keep its own.
  FloatType typeFor(Value gradient) {
    if (isExchanged(gradient)) {
      anyReduced = true;
      return wire;
    }
    auto rounded = gradient.getDefiningOp<tx::CastOp>();
    return rounded && amp::isNarrow(gradient.getType()) && amp::isWide(rounded.getX().getType())
               ? FloatType(Float32Type::get(&getContext()))
               : FloatType();
  }

  /// Sets the type in which each micro-batch communicates before it is added up.
  void settleYield(train::AccumulateOp loop, unsigned number) {
    OpOperand &part = loop.getPart(number);
    Value before = part.get();
    if (!wire || !isExchanged(before))
      return;
    anyReduced = true;
    if (!before.hasOneUse())
      return;
    Value exchanged = inType(before, wire);
    bool tooWide =
        amp::isWide(exchanged.getType()) && amp::isNarrow(loop.getResult(number).getType());
    part.set(tooWide ? inType(exchanged, cast<FloatType>(getElementTypeOrSelf(before.getType())))
                     : exchanged);
    changed += exchanged != before;
    erase(before);
  }

  FloatType wire; // null: the gradients' own
  bool anyReduced = false;
};

} // namespace
