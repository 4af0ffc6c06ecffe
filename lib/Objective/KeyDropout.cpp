//===- KeyDropout.cpp - keys dropout in training steps, removes it elsewhere ------------------===//
//
// Which elements a step drops depends on the step's key, the op, and the element's number in the
// global batch, hence on the number of the micro-batch, too. That number reaches the loop over
// micro-batches as the tokens do: as one more batch, 0, 1, 2, ... So passes that rearrange the loop
// need not know of it.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Objective/Passes.h"

namespace partita {
#define GEN_PASS_DEF_KEYDROPOUTPASS
#include "partita/Objective/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

/// Returns the number of the micro-batch, as an argument of the region of `loop`.
Value addNumber(train::AccumulateOp loop) {
  OpBuilder builder(loop);
  auto number = RankedTensorType::get({}, builder.getI64Type());
  auto numbers = RankedTensorType::get({loop.getCount()}, builder.getI64Type());
  loop.getBatchesMutable().append(
      tx::IotaOp::create(builder, loop.getLoc(), numbers, APFloat(0.0), APFloat(1.0)).getResult());
  return loop.getBody().addArgument(number, loop.getLoc());
}

void giveKeys(func::FuncOp function, ArrayRef<DropoutInterface> ops) {
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  auto number = RankedTensorType::get({}, builder.getI64Type());
  Value key = train::RandomKeyOp::create(builder, function.getLoc(), number);
  llvm::DenseMap<Operation *, Value> numbers;
  for (DropoutInterface op : ops) {
    auto loop = op->getParentOfType<train::AccumulateOp>();
    Value &micro = numbers[loop];
    if (!micro)
      micro = loop ? addNumber(loop) : tx::createSplat(builder, function.getLoc(), number, 0);
    op.giveKey(key, micro);
  }
}

struct KeyDropout : partita::impl::KeyDropoutPassBase<KeyDropout> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool training = false;
      SmallVector<DropoutInterface> ops;
      function.walk([&](Operation *op) {
        training |= isa<train::MinimizeOp>(op);
        if (auto dropout = dyn_cast<DropoutInterface>(op); dropout && dropout.drops())
          ops.push_back(dropout);
      });
      if (training && !ops.empty()) {
        giveKeys(function, ops);
        keyed += ops.size();
        continue;
      }
      for (DropoutInterface op : ops)
        op.dropNothing();
      removed += ops.size();
    }
  }
};

} // namespace
