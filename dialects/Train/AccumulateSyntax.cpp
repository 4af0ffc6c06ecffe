//===- AccumulateSyntax.cpp - builds, parses and prints train.accumulate ------------------------===//

#include "dialects/Interfaces/BoundRegion.h"
#include "dialects/Train/PassKinds.h"
#include "dialects/Train/RunningSums.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

static ArrayAttr arrayOf(Builder builder, ArrayRef<PassName> passes) {
  return builder.getArrayAttr(llvm::map_to_vector(passes, [&](PassName name) -> Attribute {
    return PassAttr::get(builder.getContext(), name);
  }));
}

/// Sets how many of the results are sums, and how many last values.
static void addSegments(Builder builder, OperationState &state, size_t sums, size_t last) {
  state.addAttribute(
      AccumulateOp::getResultSegmentSizeAttr(),
      builder.getDenseI32ArrayAttr({static_cast<int32_t>(sums), static_cast<int32_t>(last)}));
}

void AccumulateOp::build(OpBuilder &builder, OperationState &state, TypeRange sums,
                         ValueRange batches, ArrayRef<PassName> later, TypeRange last) {
  state.addTypes(sums);
  state.addTypes(last);
  addSegments(builder, state, sums.size(), last.size());
  state.addOperands(batches);
  for (unsigned i = 0; i <= later.size(); ++i)
    (void)state.addRegion();
  if (!later.empty())
    state.addAttribute(getLaterPassesAttrName(state.name), arrayOf(builder, later));
}

using Arguments = SmallVectorImpl<OpAsmParser::Argument>;

/// Parses `onto (%so_far = 1)`: arguments that are running sums, and the sums' numbers.
static ParseResult parseOnto(OpAsmParser &parser, OperationState &result, Arguments &arguments,
                             SmallVectorImpl<int64_t> &grown) {
  if (failed(parser.parseOptionalKeyword("onto")))
    return success();
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
    OpAsmParser::Argument &argument = arguments.emplace_back();
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseInteger(grown.emplace_back()))
      return failure();
    auto count = static_cast<int64_t>(result.types.size());
    if (grown.back() < 0 || grown.back() >= count)
      return parser.emitError(at, "there is no sum number ") << grown.back() << " of " << count;
    argument.type = result.types[grown.back()];
    return success();
  });
}

/// Returns the yield of a region that is parsed but not verified; null if it has another
/// terminator.
static YieldOp parsedYield(Region &region) {
  return region.empty() || region.front().empty() ? YieldOp()
                                                  : dyn_cast<YieldOp>(region.front().back());
}

static ValueRange savedIn(Region &region) {
  YieldOp yield = parsedYield(region);
  return yield ? ValueRange(yield.getSaved()) : ValueRange();
}

/// Parses `backward (%ids, %h) { ... }`: the arguments' types are those of the micro-batches and of
/// what earlier regions save.
static ParseResult parseLater(OpAsmParser &parser, OperationState &result,
                              SmallVectorImpl<PassName> &passes, SmallVectorImpl<int64_t> &grown) {
  StringRef keyword;
  auto words = llvm::map_to_vector(kPassKinds, [](const PassKindRow &row) { return row.word(); });
  while (true) {
    SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseOptionalKeyword(&keyword, words)))
      return success();
    PassName &pass = passes.emplace_back();
    pass.kind = *symbolizePassKind(keyword);
    if (auto chunk = parser.parseOptionalInteger(pass.chunk); chunk.has_value() && failed(*chunk))
      return failure();
    SmallVector<OpAsmParser::Argument> arguments;
    if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
      return failure();
    SmallVector<Type> types;
    for (Value batch : result.operands)
      types.push_back(AccumulateOp::microBatchType(batch.getType()));
    for (auto &region : result.regions)
      llvm::append_range(types, savedIn(*region).getTypes());
    if (types.size() != arguments.size())
      return parser.emitError(loc, "expects ")
             << types.size() << " arguments of the " << pass.text() << " region ("
             << result.operands.size() << " micro-batches, "
             << types.size() - result.operands.size() << " saved values), found "
             << arguments.size();
    for (auto [argument, type] : llvm::zip(arguments, types))
      argument.type = type;
    if (parseOnto(parser, result, arguments, grown) ||
        parser.parseRegion(*result.addRegion(), arguments))
      return failure();
  }
}

ParseResult AccumulateOp::parse(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  auto microBatch = [&](Type batch) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(batch);
    if (tensor && tensor.getRank() > 0)
      return microBatchType(batch);
    parser.emitError(loc, "a batch needs a first dimension to run over, it is ") << batch;
    return {};
  };
  SmallVector<int64_t> grown;
  auto onto = [&](Arguments &arguments) { return parseOnto(parser, result, arguments, grown); };
  SmallVector<PassName> passes;
  auto later = [&] { return parseLater(parser, result, passes, grown); };
  if (parseBoundRegion(parser, result, microBatch, onto, later))
    return failure();
  if (!passes.empty())
    result.addAttribute(getLaterPassesAttrName(result.name), arrayOf(parser.getBuilder(), passes));
  if (!grown.empty())
    result.addAttribute(getGrownAttrName(result.name),
                        parser.getBuilder().getDenseI64ArrayAttr(grown));
  size_t last = 0;
  for (auto &region : result.regions) {
    ensureTerminator(*region, parser.getBuilder(), result.location);
    if (YieldOp yield = parsedYield(*region))
      last += yield.getLast().size();
  }
  last = std::min(last, result.types.size());
  addSegments(parser.getBuilder(), result, result.types.size() - last, last);
  return success();
}

void AccumulateOp::print(OpAsmPrinter &printer) {
  auto onto = [&](Region &region) {
    SmallVector<int64_t> grown = grownIn(*this, region);
    if (grown.empty())
      return;
    printer << "onto (";
    llvm::interleaveComma(
        llvm::zip(region.getArguments().take_back(grown.size()), grown), printer,
        [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
    printer << ") ";
  };
  auto later = [&] {
    for (Region &region : getLater()) {
      printer << " " << getPass(numberOf(region)).text() << " (";
      llvm::interleaveComma(region.getArguments().drop_back(grownIn(*this, region).size()), printer,
                            [&](Value argument) { printer << argument; });
      printer << ") ";
      onto(region);
      printer.printRegion(region, /*printEntryBlockArgs=*/false);
    }
  };
  printBoundRegion(printer, *this, [&] { onto(getBody()); }, later,
                   {getGrownAttrName(), getLaterPassesAttrName(), getResultSegmentSizeAttr()});
}
