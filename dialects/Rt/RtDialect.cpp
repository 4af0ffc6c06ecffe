//===- RtDialect.cpp - types and attributes -----------------------------------------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

#include "dialects/Rt/RtDialect.cpp.inc"
#include "dialects/Rt/RtEnums.cpp.inc"
#include "dialects/Rt/RtInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Rt/RtTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Rt/RtAttrs.cpp.inc"

void RtDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Rt/RtTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Rt/RtAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Rt/RtOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Rt/RtKernels.cpp.inc"
      >();
}

/// Checks that an op limited to one micro-batch has no results, as a branch makes no values, and is
/// in a pass, as only these run for one micro-batch after another.
static LogicalResult verifyLast(Operation *op, Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
    return op->emitError() << RtDialect::kLast << " is " << value
                           << ", and not a micro-batch's number";
  if (!isa<RtDialect>(op->getDialect()) || op->getNumResults() || op->getNumRegions())
    return op->emitError() << RtDialect::kLast << " is for calls of the runtime without results";
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (function && !function->hasAttr(RtDialect::kPassOf))
    return op->emitError() << RtDialect::kLast << " is for passes of a micro-batch and for layers";
  return success();
}

/// Checks a pass's function. An EmitC function takes the rank, and perhaps pendings, in addition to
/// the number.
static LogicalResult verifyPassOf(Operation *op, Attribute value) {
  if (!isa<train::EntryPointAttr, UnitAttr>(value))
    return op->emitError() << RtDialect::kPassOf << " is " << value
                           << ", expected a #train.entry_point or a unit";
  auto function = dyn_cast<FunctionOpInterface>(op);
  bool isPass = function && llvm::is_contained(function.getArgumentTypes(),
                                               IntegerType::get(op->getContext(), 64));
  if (!isPass || (isa<func::FuncOp>(op) && function.getNumArguments() != 1))
    return op->emitError() << RtDialect::kPassOf
                           << " is for functions of a micro-batch's number, an i64";
  return success();
}

/// Checks a number that bounds memory: of bytes on a module, of tokens on a classifier.
static LogicalResult verifyCount(Operation *op, NamedAttribute attribute) {
  bool isRows = attribute.getName() == RtDialect::kRows;
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!number || !number.getType().isInteger(64) || number.getInt() < 1)
    return op->emitError() << attribute.getName().getValue() << " is " << attribute.getValue()
                           << ", expected an i64 above 0";
  if (isRows ? isa<tx::ClassifierLossOp, tx::ClassifierLossGradOp>(op) : isa<ModuleOp>(op))
    return success();
  return op->emitError() << attribute.getName().getValue() << " is for "
                         << (isRows ? "a classifier's loss" : "modules");
}

static LogicalResult verifyPaddedRows(Operation *op, Attribute value) {
  auto parameter = dyn_cast<train::ParameterOp>(op);
  auto type = parameter ? dyn_cast<RankedTensorType>(parameter.getType()) : RankedTensorType();
  if (!type || type.getRank() != 2)
    return op->emitError() << RtDialect::kPaddedRows << " is for parameters that are matrices";
  auto number = dyn_cast<IntegerAttr>(value);
  if (number && number.getType().isInteger(64) && number.getInt() >= type.getDimSize(0))
    return success();
  return op->emitError() << RtDialect::kPaddedRows << " is " << value
                         << ", expected an i64 of at least the matrix's " << type.getDimSize(0)
                         << " rows";
}

LogicalResult RtDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kProgram) {
    auto module = dyn_cast<ModuleOp>(op);
    auto program = dyn_cast<ProgramAttr>(attribute.getValue());
    if (!module || !program)
      return op->emitError() << kProgram << " is " << attribute.getValue()
                             << ", expected a module's #rt.program";
    return verifyConnections(module, program);
  }
  if (attribute.getName() == kLedger) {
    auto ledgers = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!ledgers || !llvm::all_of(ledgers, llvm::IsaPred<LedgerAttr>))
      return op->emitError() << kLedger << " is " << attribute.getValue()
                             << ", expected a list of #rt.ledger";
  }
  if (attribute.getName() == kMemoryLimit || attribute.getName() == kRows)
    return verifyCount(op, attribute);
  if (attribute.getName() == kPaddedRows)
    return verifyPaddedRows(op, attribute.getValue());
  if (attribute.getName() == kLast)
    return verifyLast(op, attribute.getValue());
  if (attribute.getName() == kPassOf)
    return verifyPassOf(op, attribute.getValue());
  if (attribute.getName() != kTarget)
    return success();
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (name && Target::find(name.getValue()))
    return success();
  return op->emitError() << kTarget << " is " << attribute.getValue() << "; there are: "
                         << llvm::join(llvm::map_range(
                                           Target::all(),
                                           [](const Target *target) { return target->getName(); }),
                                       ", ");
}

//===------------------------------------------------------------------------------------------===//
// #rt.at<arena 4096, [1152, 1]>
//===------------------------------------------------------------------------------------------===//

static constexpr std::pair<Space, StringLiteral> kSpaces[] = {
    {Space::None, "none"},     {Space::Arena, "arena"},       {Space::Persistent, "persistent"},
    {Space::Input, "input"},   {Space::Control, "control"},   {Space::Host, "host"},
    {Space::Pinned, "pinned"}, {Space::InFlight, "in_flight"}};

StringRef rt::toString(Space space) {
  for (auto [value, name] : kSpaces)
    if (value == space)
      return name;
  return "none";
}

Attribute AtAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  const auto *found = llvm::find_if(kSpaces, [&](auto &entry) { return entry.second == keyword; });
  if (found == std::end(kSpaces))
    return parser.emitError(loc, "unknown memory space '") << keyword << "'", Attribute();
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  if (parser.parseOptionalInteger(offset).has_value() && succeeded(parser.parseOptionalComma()) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&] { return parser.parseInteger(strides.emplace_back()); }))
    return {};
  if (parser.parseGreater())
    return {};
  return AtAttr::get(parser.getContext(), found->first, offset, strides);
}

void AtAttr::print(AsmPrinter &printer) const {
  printer << "<" << toString(getSpace());
  if (getSpace() != Space::None && getSpace() != Space::Control)
    printer << " " << getOffset();
  if (!getStrides().empty()) {
    printer << ", [";
    llvm::interleaveComma(getStrides(), printer);
    printer << "]";
  }
  printer << ">";
}

//===------------------------------------------------------------------------------------------===//
// #rt.pendings<"begun" x 4>
//===------------------------------------------------------------------------------------------===//

StringAttr PendingsAttr::at(int64_t number) const {
  return StringAttr::get(getContext(), getName() + "[" + Twine(number) + "]");
}

SmallVector<StringAttr> PendingsAttr::all() const {
  return llvm::map_to_vector(llvm::seq(getCount()), [&](int64_t number) { return at(number); });
}

SmallVector<StringAttr> PendingsAttr::of(Operation *function) {
  auto pendings = function->getAttrOfType<PendingsAttr>(RtDialect::kPendings);
  return pendings ? pendings.all() : SmallVector<StringAttr>();
}

LogicalResult PendingsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                   StringRef name, int64_t count) {
  if (count >= 1 && identifier(name) == name)
    return success();
  return emitError() << "'" << name << "' x " << count << " is no array of variables";
}

//===------------------------------------------------------------------------------------------===//
// #rt.in_flight<4 x 65536 at 1024, 1 x 4096 at 263168 pinned>
//===------------------------------------------------------------------------------------------===//

InFlightAttr InFlightAttr::get(MLIRContext *context, ArrayRef<Ring> rings) {
  SmallVector<int64_t> numbers;
  for (const Ring &ring : rings)
    numbers.append({ring.blocks, ring.bytes, ring.offset, ring.isPinned});
  return get(context, ArrayRef<int64_t>(numbers));
}

SmallVector<InFlightAttr::Ring> InFlightAttr::getRings() const {
  SmallVector<Ring> rings;
  for (ArrayRef<int64_t> rest = getNumbers(); !rest.empty(); rest = rest.drop_front(4))
    rings.push_back({rest[0], rest[1], rest[2], rest[3] != 0});
  return rings;
}

std::pair<unsigned, int64_t> InFlightAttr::locate(int64_t offset) const {
  unsigned number = 0;
  for (const Ring &ring : getRings()) {
    if (offset < ring.bytes)
      return {number, offset};
    offset -= ring.bytes;
    ++number;
  }
  return {number ? number - 1 : 0, offset}; // past the last block: none
}

LogicalResult InFlightAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> numbers) {
  for (; numbers.size() >= 4; numbers = numbers.drop_front(4))
    if (numbers[0] < 1 || numbers[1] < 0 || numbers[2] < 0 || numbers[3] < 0 || numbers[3] > 1)
      return emitError()
             << "a ring has at least one block, of no fewer than 0 bytes, at an offset from 0 "
                "on, and not "
             << numbers[0] << " of " << numbers[1] << " bytes at " << numbers[2];
  return numbers.empty()
             ? success()
             : emitError() << "a ring is its blocks, their bytes, their offset, and where";
}

Attribute InFlightAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> numbers;
  SMLoc loc = parser.getCurrentLocation();
  auto ring = [&]() -> ParseResult {
    if (parser.parseInteger(numbers.emplace_back()) || parser.parseKeyword("x") ||
        parser.parseInteger(numbers.emplace_back()) || parser.parseKeyword("at") ||
        parser.parseInteger(numbers.emplace_back()))
      return failure();
    numbers.push_back(succeeded(parser.parseOptionalKeyword("pinned")));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, ring))
    return {};
  return InFlightAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                  ArrayRef<int64_t>(numbers));
}

void InFlightAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getRings(), printer, [&](const Ring &ring) {
    printer << ring.blocks << " x " << ring.bytes << " at " << ring.offset
            << (ring.isPinned ? " pinned" : "");
  });
  printer << ">";
}

int64_t rt::elementBytes(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

int64_t rt::bytesInMemory(Operation *symbol, RankedTensorType local) {
  int64_t bytes = local.getNumElements() * elementBytes(local.getElementType());
  auto padded = symbol->getAttrOfType<IntegerAttr>(RtDialect::kPaddedRows);
  return padded && bytes ? bytes / local.getDimSize(0) * padded.getInt() : bytes;
}

View rt::viewOf(AtAttr at, RankedTensorType type) {
  View view = View::dense(type.getShape());
  if (!at.getStrides().empty())
    view.strides.assign(at.getStrides().begin(), at.getStrides().end());
  if (hasOffsets(at.getSpace()))
    view.offset = at.getOffset() / elementBytes(type.getElementType());
  return view;
}
