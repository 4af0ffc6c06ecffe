//===- TxFused.cpp - see TxFused.td ---------------------------------------------------------------===//

#include "dialects/Tx/GradientBuilder.h"
#include "dialects/Tx/Scalar.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxFused.cpp.inc"

void FusedOp::build(OpBuilder &, OperationState &) {}

ParseResult FusionOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  auto pair = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, pair) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  for (auto [argument, input] : llvm::zip(arguments, type.getInputs()))
    argument.type = input;
  result.addTypes(type.getResults());
  if (parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  ensureTerminator(*result.regions.front(), parser.getBuilder(), result.location);
  return parser.parseOptionalAttrDict(result.attributes);
}

void FusionOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInputs()), printer, [&](auto pair) {
    printer << std::get<0>(pair) << " = " << std::get<1>(pair);
  });
  printer << ") : " << FunctionType::get(getContext(), getInputs().getTypes(), getOutputs().getTypes()) << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs());
}

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
    if (!splat && !isa<ScalarInterface>(op))
      return op.emitOpError() << "is neither elementwise nor a splat constant, in a fusion";
  }
  return success();
}
