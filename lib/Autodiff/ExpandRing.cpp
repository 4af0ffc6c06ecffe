//===- ExpandRing.cpp - writes attention in a ring out as steps -----------------------------------===//
//
// Of c ranks in a ring, each begins with its own keys and values, and passes on those that it has worked
// with: in step j it has those of the rank j places before it. The next ones travel during a step: their
// shift stands before it. The forward pass carries the state of an online softmax in 32 bits (Liu et al.,
// arXiv 2310.01889); the backward pass sends the gradients of the keys along with them, and home at last.
// In the backward pass a rank computes with its own keys last, while the gradients travel home, and the first
// shift starts when the layer's backward pass does. Otherwise neither transfer would have work to hide behind.
// Steps in which no rank sees a key are omitted; behind the last of the others, so are their shifts.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "partita/Autodiff/Passes.h"

namespace partita {
#define GEN_PASS_DEF_EXPANDRINGPASS
#include "partita/Autodiff/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// The full length of a sequence of queries or keys.
int64_t lengthOf(Value value) { return par::Layout::of(value.getType()).shape[1]; }

/// In which order the ranks have the sequences, if it matters.
template <typename Op> std::string orderOf(Op op, const par::Blocks &dealt) {
  if (dealt.mirrored)
    return "dealt in mirrored order";
  if (op.getBias() && !op.getCausal())
    return "in order: masks are part of a bias, so all scores are computed";
  auto why = op->template getParentOfType<ModuleOp>()->template getAttrOfType<StringAttr>(
      par::ParDialect::kInOrder);
  return why ? "in order, so ranks have unequal work: " + why.str() : std::string();
}

/// Why the ranks pass their keys on: the axis splits the letter of both sequences, into these blocks.
template <typename Op> Location passedBecause(Op op, const par::Blocks &dealt) {
  MLIRContext *context = op.getContext();
  auto string = [&](StringRef text) { return StringAttr::get(context, text); };
  train::LayerAttr layer = train::LayerAttr::of(op);
  auto seed = par::SeedAttr::get(context, string("ring"), string(orderOf(op, dealt)),
                                 ArrayAttr::get(context, {}));
  return par::withCause(
      op.getLoc(),
      par::CauseAttr::get(context, par::Role::Passed, string("r"), string(op.getShardRule()),
                          string(op->getName().getStringRef()), string(provenance::nameOf(op)),
                          layer ? layer.getNumber() : par::CauseAttr::kBefore,
                          layer ? layer.getCount() : 0, seed));
}

/// The steps of one attention, forward or backward.
template <typename Op> class Ring {
public:
  /// `passed`: the name of what goes round. The backward pass uses another name than the forward
  /// pass, so that nothing merges the two and saves the keys of all ranks between them.
  Ring(Op op, StringRef passed)
      : op(op), passed(passed), builder(op), loc(op.getLoc()), axis(op.getRingAttr()),
        ranks(par::ranksOver(op, axis)), dealt(par::Layout::of(op.getQ().getType()).blocksOf(axis)),
        queries(lengthOf(op.getQ())), keys(lengthOf(op.getK())), k(op.getK()), v(op.getV()),
        withWork(
            tx::stepsWithWork({queries, ranks, dealt.count}, {keys, ranks, dealt.count},
                              {op.getCausal(), static_cast<int64_t>(op.getWindow().value_or(0))},
                              op.getBlocksAttr())),
        last(std::max(withWork.find_last(), 0)) {}

  /// Calls work(step, k, v) for every step with keys that a rank sees. The first shift stands before `place`.
  template <typename F> void steps(Operation *place, F work) {
    for (int64_t step = 0; step <= last; ++step) {
      Value ownK = k, ownV = v;
      if (step < last) {
        OpBuilder::InsertionGuard guard(builder);
        if (step == 0)
          builder.setInsertionPoint(place);
        auto next = shift({k, v}, /*back=*/false, passed);
        k = next[0];
        v = next[1];
      }
      if (withWork.test(step))
        work(step, ownK, ownV);
    }
  }

  SmallVector<Value> shift(ValueRange values, bool back, StringRef what) {
    return SmallVector<Value>(
        par::ShiftOp::create(builder, passedBecause(op, dealt), values.getTypes(), values, axis,
                             back ? builder.getUnitAttr() : UnitAttr(), builder.getStringAttr(what))
            .getResults());
  }

  /// Where the shard of a sequence begins that the rank so many places before has.
  Value firstOf(int64_t length, int64_t behind) {
    par::Layout layout(dealt.count * ranks);
    layout.shard(axis, 0, dealt);
    auto type = RankedTensorType::get({dealt.count}, builder.getI64Type(),
                                      layout.encoding(op.getContext()));
    return par::FirstIndexOp::create(builder, loc, type, length, behind);
  }

  /// What a step with blocks says of its keys.
  IntegerAttr behind(int64_t step) {
    return op.getBlocksAttr() ? builder.getI64IntegerAttr(step) : IntegerAttr();
  }

  /// The type of a sum of such values.
  static RankedTensorType sumType(Value like) {
    auto type = cast<RankedTensorType>(like.getType());
    return type.getElementType().isF64() ? type : type.clone(Float32Type::get(type.getContext()));
  }

  Value add(Value a, Value b) {
    return a && b ? tx::AddOp::create(builder, loc, ValueRange{a, b})->getResult(0) : a ? a : b;
  }

  void replace(OpResult result, Value with) {
    if (with.getType() != result.getType())
      with = tx::CastOp::create(builder, loc, result.getType(), with);
    result.replaceAllUsesWith(with);
  }

  Op op;
  StringRef passed;
  OpBuilder builder;
  Location loc;
  StringAttr axis;
  int64_t ranks;
  par::Blocks dealt;     ///< in which the axis splits both sequences
  int64_t queries, keys; ///< the full lengths
  Value k, v;
  llvm::SmallBitVector withWork;
  int64_t last; ///< step with work
};

void expand(tx::AttentionOp op) {
  Ring<tx::AttentionOp> ring(op, "keys and values");
  Value out, lse, firstQuery = ring.firstOf(ring.queries, 0);
  ring.steps(op, [&](int64_t step, Value k, Value v) {
    // A query that has seen no key so far may see one in a later step.
    UnitAttr zeroHidden = step < ring.last ? ring.builder.getUnitAttr() : op.getZeroHiddenAttr();
    auto made = tx::AttentionStepOp::create(
        ring.builder, ring.loc, TypeRange{ring.sumType(op.getOut()), op.getLse().getType()},
        op.getQ(), k, v, out, lse, op.getBias(), op.getFirstKeys(), op.getFirstHead(), op.getKey(),
        op.getMicro(), op.getFirst(), firstQuery, ring.firstOf(ring.keys, step), op.getScaleAttr(),
        op.getCausalAttr(), op.getWindowAttr(), zeroHidden, op.getRatioAttr(), op.getIdAttr(),
        op.getFullShapeAttr(), op.getBlocksAttr(), ring.behind(step), op.getRingAttr());
    out = made.getOut();
    lse = made.getLse();
  });
  ring.replace(cast<OpResult>(op.getOut()), out);
  ring.replace(cast<OpResult>(op.getLse()), lse);
  op.erase();
}

/// Returns the chain of pure ops of one operand (reshapes, transposes, casts) in `block` that ends in the value, last op
/// first.
SmallVector<Operation *> formsOf(Value value, Block *block) {
  SmallVector<Operation *> forms;
  for (Operation *op = value.getDefiningOp();
       op && op->getBlock() == block && op->getNumOperands() == 1 && isPure(op);
       op = op->getOperand(0).getDefiningOp())
    forms.push_back(op);
  return forms;
}

/// Returns the op before which keys and values can start their way in the backward pass: the first one of the layer,
/// whose matmuls are work beside it.
Operation *beginOfBackward(tx::AttentionGradOp op) {
  Block *block = op->getBlock();
  Operation *place = op;
  train::LayerAttr layer = train::LayerAttr::of(op);
  while (Operation *before = place->getPrevNode()) {
    // A layer may have two attentions, of which the earlier one is written out already.
    if (!layer || train::LayerAttr::of(before) != layer ||
        isa<tx::AttentionGradOp, tx::AttentionStepGradOp>(before))
      break;
    place = before;
  }
  for (Value passing : {op.getK(), op.getV()}) {
    SmallVector<Operation *> forms = formsOf(passing, block);
    Value source = forms.empty() ? passing : forms.back()->getOperand(0);
    if (Operation *definer = source.getDefiningOp();
        definer && definer->getBlock() == block && !definer->isBeforeInBlock(place))
      place = definer->getNextNode();
    for (Operation *form : llvm::reverse(forms))
      if (place->isBeforeInBlock(form))
        form->moveBefore(place);
      else if (place == form)
        place = form->getNextNode();
  }
  return place;
}

/// One step of the backward pass, added to dq.
tx::AttentionStepGradOp stepGrad(Ring<tx::AttentionGradOp> &ring, int64_t step, Value k, Value v,
                                 Value dq) {
  tx::AttentionGradOp op = ring.op;
  SmallVector<Type> types{ring.sumType(op.getDq()), ring.sumType(op.getDk()),
                          ring.sumType(op.getDv())};
  if (op.getDbias())
    types.push_back(ring.sumType(op.getDbias()));
  return tx::AttentionStepGradOp::create(
      ring.builder, ring.loc, types, op.getQ(), k, v, op.getOut(), op.getLse(), op.getDout(), dq,
      op.getBias(), op.getFirstKeys(), op.getFirstHead(), op.getKey(), op.getMicro(), op.getFirst(),
      ring.firstOf(ring.queries, 0), ring.firstOf(ring.keys, step), op.getScaleAttr(),
      op.getCausalAttr(), op.getWindowAttr(), op.getZeroHiddenAttr(), op.getRatioAttr(),
      op.getIdAttr(), op.getFullShapeAttr(), op.getBlocksAttr(), ring.behind(step),
      op.getRingAttr());
}

void expand(tx::AttentionGradOp op) {
  Ring<tx::AttentionGradOp> ring(op, "keys and values again");
  Value dq, dbias;
  SmallVector<Value> passing(2); // gradients of the keys and values that pass by
  int64_t at = 0;                // the places that they have travelled
  bool sees = ring.withWork.test(0);
  auto work = [&](int64_t step, Value k, Value v) {
    auto made = stepGrad(ring, step, k, v, dq);
    dq = made.getDq();
    dbias = ring.add(dbias, made.getDbias());
    return made;
  };
  ring.steps(beginOfBackward(op), [&](int64_t step, Value k, Value v) {
    if (step == 0)
      return; // the last one, below
    // The sums so far travel beside this step, which is added to them.
    for (; passing[0] && at < step; ++at)
      passing = ring.shift(passing, /*back=*/false, "gradients of keys and values");
    at = step;
    auto made = work(step, k, v);
    passing = {ring.add(passing[0], made.getDk()), ring.add(passing[1], made.getDv())};
  });
  if (passing[0]) {
    bool back = at < ring.ranks - at; // the shorter way home
    for (int64_t left = back ? at : ring.ranks - at; left > 0; --left)
      passing = ring.shift(passing, back, "gradients of keys and values");
  }
  if (sees || !passing[0]) {
    auto own = work(0, op.getK(), op.getV());
    passing = {ring.add(passing[0], own.getDk()), ring.add(passing[1], own.getDv())};
  }
  ring.replace(cast<OpResult>(op.getDq()), dq);
  ring.replace(cast<OpResult>(op.getDk()), passing[0]);
  ring.replace(cast<OpResult>(op.getDv()), passing[1]);
  if (op.getDbias())
    ring.replace(cast<OpResult>(op.getDbias()), dbias);
  op.erase();
}

struct ExpandRing : partita::impl::ExpandRingPassBase<ExpandRing> {
  void runOnOperation() override {
    WalkResult walked = getOperation().walk([&](Operation *op) -> WalkResult {
      if (auto attention = dyn_cast<tx::AttentionOp>(op))
        return visit(attention);
      if (auto grad = dyn_cast<tx::AttentionGradOp>(op))
        return visit(grad);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

private:
  template <typename Op> WalkResult visit(Op op) {
    if (!op.getRingAttr())
      return WalkResult::advance();
    if (auto function = op->template getParentOfType<func::FuncOp>();
        !function->hasAttr(par::ParDialect::kNoCotangents))
      return op.emitError() << "is not differentiated yet, and its steps have no gradient";
    if (par::Layout::of(op.getQ().getType()).splits[1].empty()) {
      op.removeRingAttr(); // every rank has the full sequences
      return WalkResult::skip();
    }
    ++expanded;
    expand(op);
    return WalkResult::skip();
  }
};

} // namespace
