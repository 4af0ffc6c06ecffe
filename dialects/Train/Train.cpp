//===- Train.cpp - parameters, states, updates ----------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Reasons.h"
#include "dialects/Train/Roles.h"
#include "dialects/Train/RunningSums.h"
#include "dialects/Train/Tensors.h"
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

LogicalResult LayerAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t number,
                                int64_t count) {
  if (isPlace(number) && count >= 0 && count <= kMostLayers)
    return success();
  return emitError() << "layer " << number << " of " << count << ", expected " << kOnce << " to "
                     << kMostLayers - 1 << " of 0 to " << kMostLayers;
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
  if (par::fullType(type) != declared)
    return op->emitOpError() << "of " << symbol << ", a " << declared << ", has type " << type;
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifySymbol(*this, getSymbolAttr(), getType(), tables)))
    return failure();
  if (!getInt8Block())
    return success();
  auto block = static_cast<int64_t>(*getInt8Block());
  par::MeshAttr mesh = par::MeshAttr::of(*this);
  if (isa<FloatType>(getElementTypeOrSelf(getType())) &&
      par::holdsWholeBlocks(getType(), block, mesh))
    return success();
  InFlightDiagnostic error = emitOpError() << "of " << getSymbolAttr() << " rounds blocks of "
                                           << block << " consecutive numbers, which a rank's "
                                           << getType() << " does not hold whole";
  for (int64_t fits = llvm::PowerOf2Ceil(block) / 2; fits >= 2; fits /= 2)
    if (par::holdsWholeBlocks(getType(), fits, mesh)) {
      error << "; give --quantization-block " << fits;
      break;
    }
  return error;
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

static LogicalResult verifyLayer(Operation *op, Attribute attribute) {
  auto layer = dyn_cast<LayerAttr>(attribute);
  if (layer && (layer.getNumber() < 0 || layer.getNumber() < layer.getCount()))
    return success();
  return op->emitError() << provenance::kLayer << " is " << attribute
                         << ", expected a #train.layer with a number below that of layers";
}

LogicalResult TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == provenance::kLayer)
    return verifyLayer(op, attribute.getValue());
  if (attribute.getName() == kLast)
    return verifyLastAttribute(op, attribute.getValue());
  if (attribute.getName() != kEntryPoint)
    return verifyTable(op, attribute);
  if (!isa<FunctionOpInterface, SymbolOpInterface>(op) ||
      !isa<EntryPointAttr>(attribute.getValue()))
    return op->emitError() << kEntryPoint << " is " << attribute.getValue()
                           << "; a function has a #train.entry_point there";
  return success();
}

LogicalResult TrainDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                     NamedAttribute attribute) {
  if (attribute.getName() != kRole)
    return success();
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (name && (findRole(name.getValue()) || name.getValue() == kUndecidedRole))
    return success();
  return op->emitError() << kRole << " of argument " << argument << " is " << attribute.getValue()
                         << "; there are: " << roleNames() << ", and \"" << kUndecidedRole
                         << "\" before the objective";
}

std::optional<EntryPoint> train::entryPointOf(Operation *function) {
  auto marked = function->getAttrOfType<EntryPointAttr>(TrainDialect::kEntryPoint);
  return marked ? std::optional(marked.getValue()) : std::nullopt;
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

std::string train::hintFor(ModuleOp module, EntryPoint missing) {
  Operation *named = SymbolTable::lookupSymbolIn(module, nameOf(missing));
  if (!isa_and_nonnull<FunctionOpInterface>(named) || entryPointOf(named))
    return "";
  StringRef name = nameOf(missing);
  return ("; @" + name + " has no " + TrainDialect::kEntryPoint + " = #train.entry_point<" + name +
          ">")
      .str();
}

LogicalResult train::expectFreeName(ModuleOp module, EntryPoint made) {
  Operation *named = SymbolTable::lookupSymbolIn(module, nameOf(made));
  if (!named)
    return success();
  return named->emitError()
         << "@" << nameOf(made)
         << " is the name of an entry point that is made here, and this is none; "
            "rename it, or give it its "
         << TrainDialect::kEntryPoint;
}

FlatSymbolRefAttr partita::train::parameterReadBy(Value value) {
  // Through ops on one tensor: a shard, a copy, or the wait for one (which also has a token).
  auto source = [](Operation *op) {
    SmallVector<Value> tensors = llvm::filter_to_vector(
        op->getOperands(), [](Value value) { return isa<RankedTensorType>(value.getType()); });
    return tensors.size() == 1 ? forwardOf(tensors.front()).getDefiningOp() : nullptr;
  };
  Operation *definer = forwardOf(value).getDefiningOp();
  while (definer && !isa<ReadOp, BarrierOp>(definer)) // after a barrier, it is a saved activation
    definer = source(definer);
  auto read = dyn_cast_or_null<ReadOp>(definer);
  return read ? read.getSymbolAttr() : FlatSymbolRefAttr();
}
