//===- ScaleFp8.cpp - matmuls in 8 bits, with scales from earlier steps -----------------------===//
//
// Delayed scaling: a tensor's scale follows from its max in the last steps, so nothing waits for a
// max of this step. A max is over all ranks, so the scales are those of the unpartitioned program.
// Runs on the program in its final order: what a micro-batch keeps for its backward pass is then
// the 8-bit operand itself, where nothing else reads the other.
//
// Scales: Micikevicius et al., arXiv 2209.05433. The history: NVIDIA's Transformer Engine.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Interfaces/Scalar.h"
#include "dialects/Par/Placement.h"
#include "dialects/Train/States.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Amp/StoredTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Amp/Passes.h"
#include "runtime/include/partita_rt/state_names.h"

namespace partita {
#define GEN_PASS_DEF_SCALEFP8PASS
#include "partita/Amp/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

static_assert(std::string_view(amp::AmpDialect::kMaxima) == partita_rt::kFp8Maxima,
              "reports about checkpoints tell fp8 by this state");

namespace {

/// The steps whose maxima count.
constexpr int64_t kHistory = 16;
/// Until a max is known: of activations and weights.
constexpr double kFirstMax = 16;
/// So that each scale is at an address of 16 bytes, which cuBLASLt needs.
constexpr int64_t kScaleCopies = 4;
/// 1.75 over the max of each format, 448 and 57344.
constexpr double kForwardUnit = 0x1p-8, kBackwardUnit = 0x1p-15;

Operation *outermostLoop(Operation *op) {
  Operation *found = nullptr;
  while ((op = op->getParentOp()) && !isa<func::FuncOp>(op))
    found = op;
  return found;
}

bool isMark(Operation *op) { return isa_and_nonnull<tx::ThroughFp8Op>(op); }

bool isMatmul(Operation *op) { return isa<tx::MatMulOp, tx::MatMulNTOp, tx::MatMulTNOp>(op); }

/// A value that is quantized.
struct Mark {
  Operation *op;
  Value x;
  IntegerAttr number;
  TypeAttr stored;

  static Mark of(Operation *op) {
    auto through = cast<tx::ThroughFp8Op>(op);
    return {op, through.getX(), through.getNumberAttr(), through.getStoredAttr()};
  }
  Value result() const { return op->getResult(0); }
};

class Scaling {
public:
  /// `numbers`: AmpDialect::kFp8, or null for a function without it, whose marks tell.
  Scaling(func::FuncOp function, DictionaryAttr numbers)
      : function(function), builder(function.getContext()) {
    auto get = [&](StringRef name) {
      auto value = numbers.getAs<IntegerAttr>(name);
      return value ? value.getInt() : 0;
    };
    if (numbers) {
      forward = get("forward"), count = forward + get("backward"), rows = get("rows");
      return;
    }
    for (Mark mark : findMarks()) {
      count = std::max(count, mark.number.getInt() + 1);
      if (isa<Float8E4M3FNType>(mark.stored.getValue()))
        forward = std::max(forward, mark.number.getInt() + 1);
    }
  }

  RankedTensorType historyType() {
    return RankedTensorType::get({kHistory, count}, builder.getF32Type());
  }

  bool isNeeded() { return !findMarks().empty(); }

  LogicalResult run() {
    if (forward < 0 || count < forward || count == 0 || rows <= 0)
      return function.emitError() << "the module's " << amp::AmpDialect::kFp8
                                  << " has no numbers of values to quantize";
    function.walk([](tx::CotangentThroughFp8Op mark) {
      mark.getResult().replaceAllUsesWith(mark.getX());
      mark.erase();
    });
    hoist();
    SmallVector<Mark> marks = findMarks();
    for (Mark mark : marks)
      if (failed(check(mark)))
        return failure();
    findAxes(marks);
    builder.setInsertionPointToStart(&function.getBody().front());
    Location loc = function.getLoc();
    Value history = train::ReadOp::create(builder, loc, historyType(), amp::AmpDialect::kMaxima);
    makeScales(loc, history);
    maxima = amp::NoMaximaOp::create(builder, loc, vectorType(axes));
    for (Mark mark : marks)
      quantize(mark);
    function.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      multiply(op);
    Location last = marks.back().op->getLoc(); // of the backward pass of the first layer
    for (Mark mark : marks)
      finish(mark);
    note(last, history);
    return success();
  }

  unsigned matmuls = 0;

private:
  SmallVector<Mark> findMarks() {
    SmallVector<Mark> marks;
    function.walk([&](Operation *op) {
      if (isMark(op))
        marks.push_back(Mark::of(op));
    });
    return marks;
  }

  /// Quantizes what a loop over micro-batches does not change once, before it.
  void hoist() {
    llvm::DenseMap<std::pair<Value, int64_t>, Operation *> known;
    for (Mark mark : findMarks()) {
      Operation *loop = outermostLoop(mark.op);
      if (loop && !loop->isAncestor(mark.x.getParentRegion()->getParentOp()))
        mark.op->moveBefore(loop);
      Operation *&first = known[{mark.x, mark.number.getInt()}];
      if (!first || first->getBlock() != mark.op->getBlock()) {
        first = mark.op;
        continue;
      }
      mark.result().replaceAllUsesWith(first->getResult(0));
      mark.op->erase();
    }
  }

  LogicalResult check(Mark mark) {
    if (mark.number.getInt() < 0 || mark.number.getInt() >= count)
      return mark.op->emitOpError()
             << "has number " << mark.number.getInt() << ", and the module has "
             << amp::AmpDialect::kFp8 << " for " << count;
    Type element = getElementTypeOrSelf(mark.x);
    if (!element.isF32() && !element.isBF16())
      return mark.op->emitOpError() << "quantizes float32 and bfloat16, not " << element;
    for (Operation *user : mark.op->getUsers())
      if (isMatmul(user) && failed(checkOperands(user)))
        return failure();
    return success();
  }

  /// A cotangent that is still a sum over ranks has not been marked (tx.cotangent_through_fp8).
  static LogicalResult checkOperands(Operation *matmul) {
    for (Value operand : matmul->getOperands()) {
      par::Layout layout = par::Layout::of(operand.getType());
      if (!isMark(operand.getDefiningOp()) && !layout.partial.empty())
        return matmul->emitError() << "precision fp8 cannot round a sum over mesh axis "
                                   << layout.partial.front().getValue()
                                   << " before it is complete; use bfloat16, or a mesh on which "
                                      "each rank has heads of its own";
    }
    return success();
  }

  void findAxes(ArrayRef<Mark> marks) {
    llvm::SetVector<StringAttr> found;
    for (Mark mark : marks)
      if (!outermostLoop(mark.op))
        found.insert_range(par::splittingAxes(mark.x.getType()));
    axes = found.takeVector();
  }

  RankedTensorType vectorType(ArrayRef<StringAttr> maxOver) {
    par::Layout layout{ArrayRef<int64_t>{count}};
    for (StringAttr axis : maxOver)
      layout.set(axis, par::Kind::Max);
    return RankedTensorType::get({count}, builder.getF32Type(),
                                 layout.encoding(builder.getContext()));
  }

  /// Makes the scales of one format: those from `first` on.
  Value scalesOf(Location loc, Value max, int64_t first, int64_t size, double unit,
                 double initial) {
    auto type = RankedTensorType::get({size}, builder.getF32Type());
    if (size != count)
      max = tx::SliceOp::create(builder, loc, type, max, ArrayRef<int64_t>{first},
                                ArrayRef<int64_t>{1});
    return tx::Fp8ScaleOp::create(builder, loc, max, tx::createSplat(builder, loc, type, unit),
                                  tx::createSplat(builder, loc, type, initial));
  }

  void makeScales(Location loc, Value history) {
    auto type = RankedTensorType::get({count}, builder.getF32Type());
    Value max =
        tx::ReduceMaxOp::create(builder, loc, type, history, ArrayRef<int64_t>{0}).getResult();
    SmallVector<Value> parts;
    if (forward > 0)
      parts.push_back(scalesOf(loc, max, 0, forward, kForwardUnit,
                               scalar::fp8_scale(kFirstMax, kForwardUnit, 0)));
    // The loss is a mean over rows, so that cotangents begin at 1 / rows.
    if (forward < count)
      parts.push_back(
          scalesOf(loc, max, forward, count - forward, kBackwardUnit,
                   scalar::fp8_scale(1.0 / static_cast<double>(rows), kBackwardUnit, 0)));
    Value all = parts.size() == 1 ? parts.front()
                                  : Value(tx::ConcatOp::create(builder, loc, type, parts, 0));
    auto column = RankedTensorType::get({count, 1}, builder.getF32Type());
    all = tx::ReshapeOp::create(builder, loc, column, all);
    auto rows = RankedTensorType::get({count, kScaleCopies}, builder.getF32Type());
    scales = tx::BroadcastOp::create(builder, loc, rows, all);
  }

  /// Does an 8-bit matmul read the value? It must have both operands in 8 bits, and a rank's sizes
  /// must suit the instructions.
  static bool isEligible(Operation *op) {
    if (!isMatmul(op))
      return false;
    auto isCotangent = [](Value operand) {
      return isa<Float8E5M2Type>(Mark::of(operand.getDefiningOp()).stored.getValue());
    };
    return llvm::all_of(op->getOperands(),
                        [](Value operand) {
                          return isMark(operand.getDefiningOp()) && amp::suitsFp8(operand);
                        }) &&
           !llvm::all_of(op->getOperands(), isCotangent);
  }

  Value make(Mark mark, Type element, bool notes) {
    auto type = cast<RankedTensorType>(mark.x.getType());
    auto rows = RankedTensorType::get(type.getShape(), element, type.getEncoding());
    auto made = amp::QuantizeOp::create(builder, mark.op->getLoc(), rows, /*columns=*/Type(),
                                        notes ? maxima.getType() : Type(), /*sums=*/Type(), mark.x,
                                        scales, notes ? maxima : Value(), mark.number, mark.stored);
    if (notes)
      maxima = made.getRaised();
    return made.getRows();
  }

  /// Quantizes for the matmuls in 8 bits, and in the own type for whatever else reads the value.
  void quantize(Mark mark) {
    builder.setInsertionPoint(mark.op);
    bool notes = !outermostLoop(mark.op); // the last micro-batch
    if (llvm::any_of(mark.op->getUsers(), isEligible)) {
      stored[mark.op] = make(mark, mark.stored.getValue(), notes);
      notes = false;
    }
    if (!llvm::all_of(mark.op->getUsers(), isEligible))
      wide[mark.op] = make(mark, getElementTypeOrSelf(mark.x.getType()), notes);
  }

  void multiply(Operation *op) {
    if (!isEligible(op))
      return;
    Mark a = Mark::of(op->getOperand(0).getDefiningOp()),
         b = Mark::of(op->getOperand(1).getDefiningOp());
    builder.setInsertionPoint(op);
    auto create = [&](auto kind) -> Value {
      return decltype(kind)::create(builder, op->getLoc(), op->getResult(0).getType(), stored[a.op],
                                    stored[b.op], scales, a.number, b.number);
    };
    Value made = isa<tx::MatMulOp>(op)     ? create(tx::ScaledMatMulOp())
                 : isa<tx::MatMulNTOp>(op) ? create(tx::ScaledMatMulNTOp())
                                           : create(tx::ScaledMatMulTNOp());
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
    ++matmuls;
  }

  void finish(Mark mark) {
    if (Value value = wide.lookup(mark.op))
      mark.result().replaceAllUsesWith(value);
    mark.op->erase();
  }

  /// Completes the maxima over the ranks, and puts them in the place of the oldest ones.
  void note(Location loc, Value history) {
    builder.setInsertionPoint(function.getBody().front().getTerminator());
    auto none = builder.getStringAttr("");
    Location cause =
        par::withCause(loc, par::CauseAttr::get(builder.getContext(), par::Role::Scale, none, none,
                                                none, none, par::CauseAttr::kOnce, 0, {}));
    Value complete = maxima;
    for (size_t done = 1; done <= axes.size(); ++done)
      complete = par::AllReduceMaxOp::create(
          builder, cause, vectorType(ArrayRef(axes).drop_front(done)), complete, axes[done - 1],
          builder.getStringAttr("maxima of FP8 tensors"));
    Type element = builder.getF32Type();
    Value newest =
        tx::ReshapeOp::create(builder, loc, RankedTensorType::get({1, count}, element), complete);
    Value others =
        tx::SliceOp::create(builder, loc, RankedTensorType::get({kHistory - 1, count}, element),
                            history, ArrayRef<int64_t>{1, 0}, ArrayRef<int64_t>{1, 1});
    Value next =
        tx::ConcatOp::create(builder, loc, history.getType(), ValueRange{others, newest}, 0);
    train::WriteOp::create(builder, loc, amp::AmpDialect::kMaxima, next);
  }

  func::FuncOp function;
  OpBuilder builder;
  int64_t forward = 0, count = 0, rows = 1;
  SmallVector<StringAttr> axes; // over which ranks have other shards of a quantized tensor
  Value scales, maxima;         // of all numbers; a scale is a row
  llvm::DenseMap<Operation *, Value> stored, wide;
  SmallVector<Operation *> ops;
};

struct ScaleFp8 : partita::impl::ScaleFp8PassBase<ScaleFp8> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto numbers = module->getAttrOfType<DictionaryAttr>(amp::AmpDialect::kFp8);
    for (auto function : module.getOps<func::FuncOp>()) {
      Scaling scaling(function, numbers);
      if (!scaling.isNeeded())
        continue;
      if (failed(train::checkStateNames(module, {amp::AmpDialect::kMaxima}, "--precision fp8",
                                        "with --precision bfloat16")))
        return signalPassFailure();
      train::makeState(module, amp::AmpDialect::kMaxima, scaling.historyType(), 0);
      if (failed(scaling.run()))
        return signalPassFailure();
      matmuls += scaling.matmuls;
    }
    module->removeAttr(amp::AmpDialect::kFp8);
  }
};

} // namespace
