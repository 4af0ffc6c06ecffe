//===- Dropout.cpp - dropout, and where a rank's shard begins ---------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Tx/Tx.h"
#include "partita/Lower/Lowering.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

struct Dropout : KernelInterface::ExternalModel<Dropout, tx::DropoutOp> {
  SmallVector<unsigned> inPlaceOperands(Operation *, unsigned) const { return {0}; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    auto dropout = cast<tx::DropoutOp>(op);
    if (!dropout.getKey())
      return op->emitOpError() << "has no key; run key-dropout first";
    ArrayRef<int64_t> shape = l.type(dropout.getResult()).getShape();
    l.create<rt::DropoutOp>(
        l.result(0), l.operand(0), l.buffer(dropout.getKey()), l.buffer(dropout.getMicro()),
        dropout.getFirst() ? l.buffer(dropout.getFirst()) : Value(), shape,
        dropout.getFullShape().value_or(shape), dropout.getRatio(), dropout.getId());
    return success();
  }
};

struct FirstElement : KernelInterface::ExternalModel<FirstElement, par::FirstElementOp> {
  StringRef resultName(Operation *, unsigned) const { return "first"; }
  LogicalResult lower(Operation *op, Lowering &l) const {
    ArrayRef<StringAttr> mesh = par::MeshAttr::of(op).getAxes();
    SmallVector<int64_t> axes, strides;
    for (auto [axis, stride] : cast<par::FirstElementOp>(op).strides()) {
      axes.push_back(pipe::axisNumber(op, llvm::find(mesh, axis) - mesh.begin()));
      strides.push_back(stride);
    }
    l.create<rt::FirstElementOp>(l.result(0), axes, strides);
    return success();
  }
};

} // namespace

void rt::attachDropoutKernels(MLIRContext *context) {
  tx::DropoutOp::attachInterface<Dropout>(*context);
  par::FirstElementOp::attachInterface<FirstElement>(*context);
}
