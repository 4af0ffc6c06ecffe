//===- TxFused.cpp - see TxFused.td -----------------------------------------------------------===//

#include "dialects/Interfaces/BoundRegion.h"
#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxFused.cpp.inc"

void FusedOp::build(OpBuilder &, OperationState &) {}

ParseResult FusionOp::parse(OpAsmParser &parser, OperationState &result) {
  if (parseBoundRegion(parser, result, [](Type input) { return input; }))
    return failure();
  ensureTerminator(*result.regions.front(), parser.getBuilder(), result.location);
  return success();
}

void FusionOp::print(OpAsmPrinter &printer) { printBoundRegion(printer, *this); }

LogicalResult FusionOp::verify() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError() << "the region's arguments differ from the inputs";
  if (block.getTerminator()->getOperandTypes() != getOutputs().getTypes())
    return emitOpError() << "the region's values differ from the outputs";
  if (getOutputs().empty())
    return emitOpError() << "has no output";
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getOutputs().front().getType()).getShape();
  auto fits = [&](Type type) { return cast<RankedTensorType>(type).getShape() == shape; };
  if (!llvm::all_of(getInputs().getTypes(), fits) || !llvm::all_of(getOutputs().getTypes(), fits))
    return emitOpError() << "all tensors must have one shape";
  for (Operation &op : block.without_terminator()) {
    bool splat = false;
    if (auto constant = dyn_cast<ConstantOp>(op))
      splat = constant.getValue().isSplat();
    if (!splat && !isa<ScalarInterface, CastOp>(op))
      return op.emitOpError() << "is neither elementwise nor a splat constant, in a fusion";
  }
  return success();
}
