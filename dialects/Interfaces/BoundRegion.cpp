//===- BoundRegion.cpp - syntax of ops with one region argument per operand -------------------===//

#include "dialects/Interfaces/BoundRegion.h"

using namespace mlir;
using namespace partita;
using Arguments = SmallVectorImpl<OpAsmParser::Argument>;

ParseResult partita::parseBoundRegion(OpAsmParser &parser, OperationState &result,
                                      function_ref<Type(Type)> argumentType,
                                      function_ref<ParseResult(Arguments &)> more,
                                      function_ref<ParseResult()> behind) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  auto pair = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, pair) ||
      parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  for (auto [argument, input] : llvm::zip(arguments, type.getInputs()))
    if (!(argument.type = argumentType(input)))
      return failure();
  result.addTypes(type.getResults());
  if ((more && more(arguments)) || parser.parseRegion(*result.addRegion(), arguments) ||
      (behind && behind()))
    return failure();
  return parser.parseOptionalAttrDict(result.attributes);
}

void partita::printBoundRegion(OpAsmPrinter &printer, Operation *op, function_ref<void()> more,
                               function_ref<void()> behind, ArrayRef<StringRef> elided) {
  Region &region = op->getRegion(0);
  printer << " (";
  llvm::interleaveComma(
      llvm::zip(region.getArguments(), op->getOperands()), printer,
      [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
  printer << ") : "
          << FunctionType::get(op->getContext(), op->getOperandTypes(), op->getResultTypes())
          << " ";
  if (more)
    more();
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
  if (behind)
    behind();
  printer.printOptionalAttrDict(op->getAttrs(), elided);
}
