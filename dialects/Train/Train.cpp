//===- Train.cpp - parameters, states, accumulation, updates ----------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Interfaces/BoundRegion.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Reasons.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

static ParseResult parseStored(AsmParser &parser, Type &element, bool &varints) {
  if (parser.parseType(element))
    return failure();
  varints = succeeded(parser.parseOptionalKeyword("varints"));
  return success();
}

static void printStored(AsmPrinter &printer, Type element, bool varints) {
  printer << element << (varints ? " varints" : "");
}

#include "dialects/Train/TrainDialect.cpp.inc"
#include "dialects/Train/TrainEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Train/TrainAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Train/TrainOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Train/Optimizers.cpp.inc"
      >();
}

LayerAttr LayerAttr::of(Operation *op) {
  return dyn_cast_or_null<LayerAttr>(provenance::get(op, provenance::kLayer));
}

//===----------------------------------------------------------------------------------------------===//
// #train.fill<0.0, normal 0.02>, #train.fill<1.0>
//===----------------------------------------------------------------------------------------------===//

FillAttr FillAttr::get(MLIRContext *context, double mean, double std) {
  return get(context, APFloat(mean), APFloat(std));
}

Attribute FillAttr::parse(AsmParser &parser, Type) {
  double mean = 0, std = 0;
  if (parser.parseLess() || parser.parseFloat(mean))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("normal") || parser.parseFloat(std)))
    return {};
  if (parser.parseGreater())
    return {};
  return FillAttr::get(parser.getContext(), mean, std);
}

void FillAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printFloat(getMeanValue());
  if (getStd() != 0) {
    printer << ", normal ";
    printer.printFloat(getStdValue());
  }
  printer << ">";
}

//===----------------------------------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------------------------------===//

static LogicalResult verifySymbol(Operation *op, FlatSymbolRefAttr symbol, Type type,
                                  SymbolTableCollection &tables) {
  Operation *target = tables.lookupNearestSymbolFrom(op, symbol);
  Type declared;
  if (auto parameter = dyn_cast_or_null<ParameterOp>(target))
    declared = parameter.getType();
  else if (auto state = dyn_cast_or_null<StateOp>(target))
    declared = state.getType();
  else
    return op->emitOpError() << "names no parameter or state: " << symbol;
  if (par::wholeType(type) != declared)
    return op->emitOpError() << "of " << symbol << ", a " << declared << ", has type " << type;
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifySymbol(*this, getSymbolAttr(), getType(), tables);
}

LogicalResult InitialValueOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifySymbol(*this, getSymbolAttr(), getType(), tables);
}

LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifySymbol(*this, getSymbolAttr(), getValue().getType(), tables);
}

LogicalResult UpdateOp::verify() {
  par::Layout layout = par::Layout::of(getGradient().getType());
  if (layout.partial.empty())
    return success();
  StringAttr axis = layout.partial.front();
  InFlightDiagnostic error = emitOpError() << "of '" << getParameter()
                                           << "' by a gradient that is a partial sum over " << axis
                                           << ": every rank would update by its own share";
  par::attachReasons(error, "the gradient", axis, par::traceReasons(getGradient(), axis));
  return error;
}

//===----------------------------------------------------------------------------------------------===//
// Accumulate
//===----------------------------------------------------------------------------------------------===//

int64_t AccumulateOp::getCount() {
  return cast<RankedTensorType>(getBatches().front().getType()).getDimSize(0);
}

RankedTensorType AccumulateOp::microBatchType(Type batch) {
  auto type = cast<RankedTensorType>(batch);
  par::Layout layout = par::Layout::of(type);
  layout.shape.erase(layout.shape.begin());
  layout.splits.erase(layout.splits.begin());
  return RankedTensorType::get(type.getShape().drop_front(), type.getElementType(),
                               layout.encoding(type.getContext()));
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
  auto sumSoFar = [&](OpAsmParser::Argument &argument) -> ParseResult {
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseInteger(grown.emplace_back()))
      return failure();
    auto count = static_cast<int64_t>(result.types.size());
    if (grown.back() < 0 || grown.back() >= count)
      return parser.emitError(at, "there is no sum number ") << grown.back() << " of " << count;
    argument.type = result.types[grown.back()];
    return success();
  };
  auto onto = [&](SmallVectorImpl<OpAsmParser::Argument> &arguments) -> ParseResult {
    if (failed(parser.parseOptionalKeyword("onto")))
      return success();
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                          [&] { return sumSoFar(arguments.emplace_back()); });
  };
  if (parseBoundRegion(parser, result, microBatch, onto))
    return failure();
  if (!grown.empty())
    result.addAttribute(getGrownAttrName(result.name),
                        parser.getBuilder().getDenseI64ArrayAttr(grown));
  ensureTerminator(*result.regions.front(), parser.getBuilder(), result.location);
  return success();
}

void AccumulateOp::print(OpAsmPrinter &printer) {
  auto onto = [&] {
    if (!getGrown())
      return;
    printer << "onto (";
    llvm::interleaveComma(
        llvm::zip(getBody().getArguments().drop_front(getBatches().size()), *getGrown()), printer,
        [&](auto pair) { printer << std::get<0>(pair) << " = " << std::get<1>(pair); });
    printer << ") ";
  };
  printBoundRegion(printer, *this, onto, {getGrownAttrName()});
}

//===----------------------------------------------------------------------------------------------===//
// Sums that the region makes
//===----------------------------------------------------------------------------------------------===//

static ArrayRef<int64_t> grownOf(AccumulateOp op) {
  return op.getGrown().value_or(ArrayRef<int64_t>());
}

Value AccumulateOp::getBatchOf(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  return number < getBatches().size() ? getBatches()[number] : Value();
}

Value AccumulateOp::getSumOf(BlockArgument argument) {
  size_t number = argument.getArgNumber(), batches = getBatches().size();
  return number < batches ? Value() : getSums()[grownOf(*this)[number - batches]];
}

BlockArgument AccumulateOp::getSoFar(unsigned sum) {
  ArrayRef<int64_t> grown = grownOf(*this);
  const int64_t *found = llvm::find(grown, static_cast<int64_t>(sum));
  return found == grown.end()
             ? BlockArgument()
             : getBody().getArgument(getBatches().size() + (found - grown.begin()));
}

BlockArgument AccumulateOp::growSum(unsigned sum) {
  SmallVector<int64_t> grown(grownOf(*this));
  grown.push_back(sum);
  setGrown(grown);
  return getBody().addArgument(getSums()[sum].getType(), getLoc());
}

/// Each once, an argument of its type, and yielded in that type.
static LogicalResult verifyGrown(AccumulateOp op) {
  ArrayRef<int64_t> grown = grownOf(op);
  Block &block = op.getBody().front();
  size_t batches = op.getBatches().size();
  if (block.getNumArguments() != batches + grown.size())
    return op.emitOpError() << "has " << batches << " batches and " << grown.size()
                            << " sums that its region makes, but the region "
                            << block.getNumArguments() << " arguments";
  llvm::SmallDenseSet<int64_t> seen;
  for (auto [i, sum] : llvm::enumerate(grown)) {
    if (sum < 0 || sum >= static_cast<int64_t>(op.getSums().size()))
      return op.emitOpError() << "has " << op.getSums().size() << " sums; there is no number "
                              << sum << " for its region to make";
    if (!seen.insert(sum).second)
      return op.emitOpError() << "has a region that makes sum number " << sum << " twice";
    Type type = op.getSums()[sum].getType(), given = block.getArgument(batches + i).getType(),
         made = block.getTerminator()->getOperand(sum).getType();
    if (given != type || made != type)
      return op.emitOpError() << "makes sum number " << sum << ", a " << type << ", a " << made
                              << " out of a " << given;
  }
  return success();
}

LogicalResult AccumulateOp::verify() {
  if (getBatches().empty())
    return emitOpError() << "needs a batch to run over";
  Block &block = getBody().front();
  for (auto [batch, argument] : llvm::zip(getBatches(), block.getArguments())) {
    auto type = cast<RankedTensorType>(batch.getType());
    if (type.getRank() == 0 || type.getDimSize(0) != getCount())
      return emitOpError() << "all batches need the same number of micro-batches, " << getCount()
                           << " and " << type;
    if (!par::Layout::of(type).splits[0].empty())
      return emitOpError() << "the dimension of micro-batches cannot be split: " << type;
    if (argument.getType() != microBatchType(type))
      return emitOpError() << "one micro-batch of " << type << " is " << microBatchType(type)
                           << ", not " << argument.getType();
  }
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  auto addsUp = [](auto pair) { // in 32 bits what is yielded in 16
    auto part = cast<RankedTensorType>(std::get<0>(pair).getType()),
         sum = cast<RankedTensorType>(std::get<1>(pair).getType());
    return part == sum || inSingleAtLeast(part) == sum;
  };
  if (!yield || yield.getValues().size() != getSums().size() ||
      !llvm::all_of(llvm::zip(yield.getValues(), getSums()), addsUp))
    return emitOpError() << "yields other types than its sums'";
  return verifyGrown(*this);
}

void YieldOp::build(OpBuilder &, OperationState &) {}

//===----------------------------------------------------------------------------------------------===//
// #train.sharding
//===----------------------------------------------------------------------------------------------===//

LogicalResult ShardingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringAttr,
                                   StringAttr, ArrayAttr dims, ArrayAttr blocks, ArrayAttr shards,
                                   ArrayAttr devices) {
  if (dims.size() != blocks.size() || dims.size() != shards.size())
    return emitError() << "has " << dims.size() << " dims, " << blocks.size() << " blocks and "
                       << shards.size() << " shards; every split has one of each";
  auto hasLess = [](ArrayAttr numbers, int64_t least) {
    return llvm::any_of(numbers, [&](Attribute each) {
      auto number = dyn_cast<IntegerAttr>(each);
      return !number || !number.getType().isInteger(64) || number.getInt() < least;
    });
  };
  if (hasLess(dims, 0) || hasLess(blocks, 1) || hasLess(shards, 2))
    return emitError() << "has a dimension below 0, less than one block or less than two shards";
  int64_t count = 1;
  for (auto shard : shards.getAsRange<IntegerAttr>())
    if (__builtin_mul_overflow(count, shard.getInt(), &count))
      count = -1;
  if (count != static_cast<int64_t>(devices.size()) ||
      !llvm::all_of(devices, llvm::IsaPred<DenseI64ArrayAttr>))
    return emitError() << "has " << devices.size()
                       << " groups of devices, which is not one array for each shard";
  return success();
}

LogicalResult TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kEntryPoint)
    return success();
  if (!isa<FunctionOpInterface, SymbolOpInterface>(op) ||
      !isa<EntryPointAttr>(attribute.getValue()))
    return op->emitError() << kEntryPoint << " is " << attribute.getValue()
                           << "; a function has a #train.entry_point there";
  return success();
}

std::optional<EntryPoint> train::entryPointOf(Operation *function) {
  if (auto marked = function->getAttrOfType<EntryPointAttr>(TrainDialect::kEntryPoint))
    return marked.getValue();
  auto name = function->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
  return name ? symbolizeEntryPoint(name.getValue()) : std::nullopt;
}

Operation *train::lookup(ModuleOp module, EntryPoint what) {
  for (Operation &op : *module.getBody())
    if (isa<SymbolOpInterface>(op) && is(&op, what))
      return &op;
  return nullptr;
}

void train::set(Operation *function, EntryPoint what) {
  function->setAttr(TrainDialect::kEntryPoint, EntryPointAttr::get(function->getContext(), what));
}

FlatSymbolRefAttr partita::train::parameterReadBy(Value value) {
  // Through ops of one tensor: a piece that is taken, a copy, the wait for one (beside its token).
  auto source = [](Operation *op) {
    SmallVector<Value> tensors = llvm::filter_to_vector(
        op->getOperands(), [](Value value) { return isa<RankedTensorType>(value.getType()); });
    return tensors.size() == 1 ? tensors.front().getDefiningOp() : nullptr;
  };
  Operation *definer = value.getDefiningOp();
  while (definer &&
         !isa<ReadOp, BarrierOp>(definer)) // behind one is what was kept of an activation
    definer = source(definer);
  auto read = dyn_cast_or_null<ReadOp>(definer);
  return read ? read.getSymbolAttr() : FlatSymbolRefAttr();
}
