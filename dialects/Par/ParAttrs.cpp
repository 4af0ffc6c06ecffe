//===- ParAttrs.cpp - #par.mesh and #par.place ------------------------------------------------===//

#include "dialects/Par/OneBit.h"
#include "dialects/Par/Placement.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

#include "dialects/Par/ParEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Par/ParAttrs.cpp.inc"

void ParDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Par/ParAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Par/ParOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Par/OneBit.cpp.inc"
      >();
}

#include "dialects/Par/ParDialect.cpp.inc"

LogicalResult ParDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kMesh && !isa<MeshAttr>(attribute.getValue()))
    return op->emitError() << "'" << kMesh << "' must be a #par.mesh, it is "
                           << attribute.getValue();
  if (attribute.getName() == kInOrder && !isa<StringAttr>(attribute.getValue()))
    return op->emitError() << "'" << kInOrder << "' must be a text, it is " << attribute.getValue();
  return success();
}

//===----------------------------------------------------------------------------------------------===//
// Stream
//===----------------------------------------------------------------------------------------------===//

Attribute StreamAttr::parse(AsmParser &parser, Type) {
  StringAttr axis;
  if (parser.parseLess() || parser.parseAttribute(axis))
    return {};
  bool ahead = succeeded(parser.parseOptionalKeyword("ahead"));
  if (parser.parseGreater())
    return {};
  return StreamAttr::get(parser.getContext(), axis, ahead);
}

void StreamAttr::print(AsmPrinter &printer) const {
  printer << "<" << getAxis() << (getAhead() ? " ahead>" : ">");
}

//===----------------------------------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------------------------------===//

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> error, ArrayRef<StringAttr> axes,
                               ArrayRef<int64_t> sizes) {
  if (axes.size() != sizes.size())
    return error() << "a mesh needs one size per axis";
  for (auto [i, axis, size] : llvm::enumerate(axes, sizes)) {
    if (size < 1)
      return error() << "mesh axis " << axis << " has size " << size << ", expected at least 1";
    if (llvm::is_contained(axes.take_front(i), axis))
      return error() << "mesh axis " << axis << " is given twice";
  }
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes;
  SmallVector<int64_t> sizes;
  auto element = [&]() -> ParseResult {
    std::string axis;
    if (parser.parseKeywordOrString(&axis) || parser.parseEqual() ||
        parser.parseInteger(sizes.emplace_back()))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), axis));
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, element))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), axes, sizes);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::zip(getAxes(), getSizes()), printer, [&](auto pair) {
    printer.printKeywordOrString(std::get<0>(pair).getValue());
    printer << " = " << std::get<1>(pair);
  });
  printer << ">";
}

int64_t MeshAttr::sizeOf(StringRef axis) const {
  for (auto [name, size] : llvm::zip(getAxes(), getSizes()))
    if (name.getValue() == axis)
      return size;
  return 1;
}

bool MeshAttr::hasAxis(StringRef axis) const {
  return llvm::any_of(getAxes(), [&](StringAttr name) { return name.getValue() == axis; });
}

int64_t MeshAttr::rankCount() const {
  int64_t count = 1;
  for (int64_t size : getSizes())
    count *= size;
  return count;
}

int64_t MeshAttr::coordinate(int64_t rank, StringRef axis) const {
  for (auto [name, size] : llvm::reverse(llvm::zip(getAxes(), getSizes()))) {
    if (name.getValue() == axis)
      return rank % size;
    rank /= size;
  }
  return 0;
}

SmallVector<int64_t> MeshAttr::group(int64_t rank, StringRef axis) const {
  int64_t stride = 1, size = 1;
  for (auto [name, n] : llvm::reverse(llvm::zip(getAxes(), getSizes()))) {
    if (name.getValue() == axis) {
      size = n;
      break;
    }
    stride *= n;
  }
  if (!hasAxis(axis))
    return {rank};
  SmallVector<int64_t> ranks;
  int64_t first = rank - coordinate(rank, axis) * stride;
  for (int64_t i = 0; i < size; ++i)
    ranks.push_back(first + i * stride);
  return ranks;
}

MeshAttr MeshAttr::of(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  if (module)
    if (auto mesh = module->getAttrOfType<MeshAttr>(ParDialect::kMesh))
      return mesh;
  return MeshAttr::get(op->getContext(), ArrayRef<StringAttr>(), ArrayRef<int64_t>());
}

//===----------------------------------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------------------------------===//

LogicalResult PlacementAttr::verify(function_ref<InFlightDiagnostic()> error,
                                    ArrayRef<int64_t> shape, ArrayAttr splits,
                                    ArrayRef<StringAttr> replicated, ArrayRef<StringAttr> partial,
                                    ArrayRef<StringAttr> max, ArrayRef<StringAttr> flat) {
  if (splits.size() != shape.size())
    return error() << "a placement needs one list of axes per dimension";
  llvm::SmallDenseSet<StringAttr> seen;
  auto once = [&](StringAttr axis) -> LogicalResult {
    if (seen.insert(axis).second)
      return success();
    return error() << "mesh axis " << axis << " is used twice in one placement";
  };
  for (auto [size, dim] : llvm::zip(shape, splits)) {
    auto axes = dyn_cast<ArrayAttr>(dim);
    if (!axes)
      return error() << "a dimension's axes must be a list";
    int64_t blocks = 1, before = 1;
    for (Attribute entry : axes) {
      if (auto sizes = dyn_cast<DenseI64ArrayAttr>(entry)) {
        bool wrong = llvm::any_of(sizes.asArrayRef(), [](int64_t each) { return each < 1; }) ||
                     llvm::sum_of(sizes.asArrayRef()) != size;
        if (wrong || axes.size() != 2 || entry != axes[0])
          return error() << "a dimension of " << size
                         << " that is split in unequal blocks has an "
                            "axis of its own and blocks of that size together";
        continue;
      }
      if (auto number = dyn_cast<IntegerAttr>(entry)) {
        blocks = number.getInt();
        if (blocks < before || blocks % before != 0 || size % blocks != 0)
          return error() << "a dimension of " << size << " has no " << blocks << " blocks in "
                         << before << " equal parts";
        continue;
      }
      if (isa<UnitAttr>(entry)) {
        if (blocks % 2 != 0 || entry == axes[0])
          return error() << "a dimension in " << blocks
                         << " blocks cannot be mirrored, which deals every second block backwards";
        continue;
      }
      if (!isa<StringAttr>(entry) || failed(once(cast<StringAttr>(entry))))
        return failure();
      before = blocks;
    }
  }
  for (ArrayRef<StringAttr> list : {replicated, partial, max, flat})
    for (StringAttr axis : list)
      if (failed(once(axis)))
        return failure();
  return success();
}

Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  SmallVector<int64_t> shape;
  SmallVector<Attribute> splits;
  SmallVector<StringAttr> replicated, partial, max, flat;
  SMLoc loc = parser.getCurrentLocation();
  auto axis = [&](SmallVectorImpl<StringAttr> &list) -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    list.push_back(StringAttr::get(context, name));
    return success();
  };
  auto dimension = [&]() -> ParseResult {
    SmallVector<Attribute> axes;
    int64_t size = 1;
    Builder builder(context);
    do {
      int64_t factor = 0;
      if (parser.parseInteger(factor))
        return failure();
      SmallVector<int64_t> unequal{factor};
      while (succeeded(parser.parseOptionalPlus()))
        if (parser.parseInteger(unequal.emplace_back()) ||
            llvm::AddOverflow(factor, unequal.back(), factor))
          return failure();
      if (unequal.size() > 1)
        axes.push_back(builder.getDenseI64ArrayAttr(unequal));
      StringAttr name;
      for (bool first = true; succeeded(parser.parseOptionalSymbolName(name)); first = false) {
        if (first && size != 1)
          axes.push_back(builder.getI64IntegerAttr(size));
        axes.push_back(name);
        if (succeeded(parser.parseOptionalKeyword("mirrored")))
          axes.push_back(builder.getUnitAttr());
      }
      if (factor < 0 || llvm::MulOverflow(size, factor, size))
        return parser.emitError(loc, "the size of a dimension is not a number of elements");
    } while (succeeded(parser.parseOptionalKeyword("x")));
    shape.push_back(size);
    splits.push_back(ArrayAttr::get(context, axes));
    return success();
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, dimension))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    if (parser.parseKeyword(&word))
      return {};
    auto *list = llvm::StringSwitch<SmallVector<StringAttr> *>(word)
                     .Case("replicated", &replicated)
                     .Case("partial", &partial)
                     .Case("max", &max)
                     .Case("flat", &flat)
                     .Default(nullptr);
    if (!list)
      return parser.emitError(loc, "expected 'replicated', 'partial', 'max' or 'flat', found '")
                 << word << "'",
             Attribute();
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return axis(*list); }))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, context, shape,
                    ArrayAttr::get(context, splits), replicated, partial, max, flat);
}

/// Prints a dimension as its factors, `8 @dp x 16 @tp`, or as its unequal blocks, `32 + 16 + 16
/// @tp`.
static void printDimension(AsmPrinter &printer, int64_t size, ArrayAttr axes) {
  if (auto sizes = axes.empty() ? DenseI64ArrayAttr() : dyn_cast<DenseI64ArrayAttr>(axes[0])) {
    llvm::interleave(sizes.asArrayRef(), printer.getStream(), " + ");
    printer << " ";
    return printer.printSymbolName(cast<StringAttr>(axes[1]).getValue());
  }
  SmallVector<std::pair<int64_t, SmallVector<Attribute>>> factors; // where each begins, its axes
  factors.push_back({1, {}});
  for (Attribute entry : axes)
    if (auto number = dyn_cast<IntegerAttr>(entry)) {
      if (number.getInt() != factors.back().first)
        factors.push_back({number.getInt(), {}});
    } else {
      factors.back().second.push_back(entry);
    }
  for (auto [i, factor] : llvm::enumerate(factors)) {
    int64_t end = i + 1 < factors.size() ? factors[i + 1].first : size;
    printer << (i == 0 ? "" : " x ") << end / factor.first;
    for (Attribute entry : factor.second) {
      printer << " ";
      if (auto axis = dyn_cast<StringAttr>(entry))
        printer.printSymbolName(axis.getValue());
      else
        printer << "mirrored";
    }
  }
}

void PlacementAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(llvm::zip(getShape(), getSplits()), printer, [&](auto pair) {
    printDimension(printer, std::get<0>(pair), cast<ArrayAttr>(std::get<1>(pair)));
  });
  printer << "]";
  auto list = [&](StringRef word, ArrayRef<StringAttr> axes) {
    if (axes.empty())
      return;
    printer << ", " << word << " [";
    llvm::interleaveComma(axes, printer,
                          [&](StringAttr axis) { printer.printKeywordOrString(axis.getValue()); });
    printer << "]";
  };
  list("replicated", getReplicated());
  list("partial", getPartial());
  list("max", getMax());
  list("flat", getFlat());
  printer << ">";
}
