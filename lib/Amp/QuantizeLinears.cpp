//===- QuantizeLinears.cpp - marks the operands of linear layers that are read in 8 bits ------===//
//
// Marks on the forward program, like casts: partitioning sees them, the backward pass follows from
// their gradients, and each has a number by the order of the full program, whatever the layout. So
// the maxima of one run continue on any other mesh.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Amp/Amp.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Amp/StoredTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Iterators.h"
#include "partita/Amp/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace partita {
#define GEN_PASS_DEF_QUANTIZELINEARSPASS
#include "partita/Amp/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

bool isLow(Operation *op) {
  auto asked = dyn_cast<PrecisionInterface>(op);
  return asked && asked.getPrecision() == Precision::Low;
}

bool isParameter(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && isa<tx::ReshapeOp, tx::TransposeOp, tx::SliceOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op && isa<train::ReadOp>(op);
}

struct QuantizeLinears : partita::impl::QuantizeLinearsPassBase<QuantizeLinears> {
  using QuantizeLinearsPassBase::QuantizeLinearsPassBase;

  void runOnOperation() override {
    if (type != "fp8")
      return;
    ModuleOp module = getOperation();
    bool trains = false;
    unsigned marked = 0;
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](train::MinimizeOp minimize) {
        trains = true;
        marked += mark(minimize->getParentOfType<func::FuncOp>());
      });
    quantized += marked;
    if (marked > 0)
      return;
    InFlightDiagnostic error = module.emitError() << "precision fp8 has no effect, because ";
    if (trains)
      error << "no linear layer but the last has sizes that are multiples of " << amp::kFp8Multiple;
    else
      error << "the program does not train";
    error << "; use bfloat16";
    signalPassFailure();
  }

private:
  /// Returns the number of linear layers.
  unsigned mark(func::FuncOp function) {
    llvm::DenseSet<Operation *> feeds; // a matmul reads it, sooner or later
    function.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      if (llvm::any_of(op->getUsers(),
                       [&](Operation *user) { return isLow(user) || feeds.contains(user); }))
        feeds.insert(op);
    });
    SmallVector<Operation *> linears;
    llvm::SetVector<Value> operands;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isa<tx::MatMulOp, tx::MatMulNTOp>(op) || !feeds.contains(op) ||
          isParameter(op->getOperand(0)) || !isParameter(op->getOperand(1)) ||
          !llvm::all_of(op->getOperands(), amp::suitsFp8) ||
          !llvm::all_of(op->getOperandTypes(), amp::isNarrow))
        return;
      linears.push_back(op);
      operands.insert_range(op->getOperands());
    });
    if (linears.empty())
      return 0;
    noteNumbers(linears, operands.size());
    Builder b(&getContext());
    for (auto [number, each] : llvm::enumerate(operands)) {
      Value operand = each;
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(operand);
      Operation *first = nullptr; // beside it, where a gathered parameter is gathered for it
      for (Operation *linear : linears)
        if (!first && llvm::is_contained(linear->getOperands(), operand))
          first = linear;
      builder.setInsertionPoint(first);
      auto through =
          tx::ThroughFp8Op::create(builder, first->getLoc(), operand, static_cast<uint64_t>(number),
                                   b.getType<Float8E4M3FNType>());
      operand.replaceUsesWithIf(
          through, [&](OpOperand &use) { return llvm::is_contained(linears, use.getOwner()); });
    }
    for (auto [number, linear] : llvm::enumerate(linears)) {
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(linear);
      auto through =
          tx::CotangentThroughFp8Op::create(builder, linear->getLoc(), linear->getResult(0),
                                            operands.size() + number, b.getType<Float8E5M2Type>());
      linear->getResult(0).replaceAllUsesExcept(through, through);
    }
    return linears.size();
  }

  /// Notes how many numbers there are of each format, and the number of rows of a step, whose mean
  /// the loss is.
  void noteNumbers(ArrayRef<Operation *> linears, size_t forward) {
    Operation *first = linears.front();
    auto x = cast<RankedTensorType>(first->getOperand(0).getType());
    int64_t rows = x.getNumElements() / x.getShape().back();
    if (auto loop = first->getParentOfType<train::AccumulateOp>())
      rows *= loop.getCount();
    Builder b(&getContext());
    getOperation()->setAttr(
        amp::AmpDialect::kFp8,
        b.getDictionaryAttr(
            {b.getNamedAttr("forward", b.getI64IntegerAttr(static_cast<int64_t>(forward))),
             b.getNamedAttr("backward", b.getI64IntegerAttr(static_cast<int64_t>(linears.size()))),
             b.getNamedAttr("rows", b.getI64IntegerAttr(rows))}));
  }
};

} // namespace
