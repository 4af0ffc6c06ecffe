//===- ParAttrs.cpp - #par.mesh, #par.place and the layouts they stand for --------------------===//

#include "dialects/Par/Placement.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

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
}

#include "dialects/Par/ParDialect.cpp.inc"

LogicalResult ParDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kMesh && !isa<MeshAttr>(attribute.getValue()))
    return op->emitError() << "'" << kMesh << "' must be a #par.mesh, it is "
                           << attribute.getValue();
  return success();
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
                                    ArrayRef<StringAttr> greatest) {
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
      if (auto number = dyn_cast<IntegerAttr>(entry)) {
        blocks = number.getInt();
        if (blocks < before || blocks % before != 0 || size % blocks != 0)
          return error() << "a dimension of " << size << " has no " << blocks << " blocks in "
                         << before << " equal parts";
        continue;
      }
      if (!isa<StringAttr>(entry) || failed(once(cast<StringAttr>(entry))))
        return failure();
      before = blocks;
    }
  }
  for (ArrayRef<StringAttr> list : {replicated, partial, greatest})
    for (StringAttr axis : list)
      if (failed(once(axis)))
        return failure();
  return success();
}

Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  SmallVector<int64_t> shape;
  SmallVector<Attribute> splits;
  SmallVector<StringAttr> replicated, partial, greatest;
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
      StringAttr name;
      for (bool first = true; succeeded(parser.parseOptionalSymbolName(name)); first = false) {
        if (first && size != 1)
          axes.push_back(builder.getI64IntegerAttr(size));
        axes.push_back(name);
      }
      if (factor < 0 || llvm::MulOverflow(size, factor, size))
        return parser.emitError(loc, "the size of a dimension is no number of elements");
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
    if (word != "replicated" && word != "partial" && word != "greatest")
      return parser.emitError(loc, "expected 'replicated', 'partial' or 'greatest', found '")
                 << word << "'",
             Attribute();
    SmallVector<StringAttr> &list = word == "partial"    ? partial
                                    : word == "greatest" ? greatest
                                                         : replicated;
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return axis(list); }))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, context, shape,
                    ArrayAttr::get(context, splits), replicated, partial, greatest);
}

/// A dimension as its factors: `8 @dp x 16 @tp`.
static void printDimension(AsmPrinter &printer, int64_t size, ArrayAttr axes) {
  SmallVector<std::pair<int64_t, SmallVector<StringAttr>>> factors; // where it begins, its axes
  factors.push_back({1, {}});
  for (Attribute entry : axes)
    if (auto number = dyn_cast<IntegerAttr>(entry)) {
      if (number.getInt() != factors.back().first)
        factors.push_back({number.getInt(), {}});
    } else {
      factors.back().second.push_back(cast<StringAttr>(entry));
    }
  for (auto [i, factor] : llvm::enumerate(factors)) {
    int64_t end = i + 1 < factors.size() ? factors[i + 1].first : size;
    printer << (i == 0 ? "" : " x ") << end / factor.first;
    for (StringAttr axis : factor.second) {
      printer << " ";
      printer.printSymbolName(axis.getValue());
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
  list("greatest", getGreatest());
  printer << ">";
}

//===----------------------------------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------------------------------===//

StringRef partita::par::toString(Kind kind) {
  switch (kind) {
  case Kind::Invariant:
    return "invariant";
  case Kind::Replicated:
    return "replicated";
  case Kind::Sharded:
    return "sharded";
  case Kind::Partial:
    return "partial";
  case Kind::Greatest:
    return "greatest";
  }
  return "";
}

Layout Layout::of(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return Layout();
  auto placement = dyn_cast_or_null<PlacementAttr>(tensor.getEncoding());
  if (!placement)
    return Layout(tensor.getShape());
  Layout layout(placement.getShape());
  for (auto [axes, list] : llvm::zip(placement.getSplits(), layout.splits)) {
    int64_t blocks = 1;
    for (Attribute entry : cast<ArrayAttr>(axes))
      if (auto number = dyn_cast<IntegerAttr>(entry))
        blocks = number.getInt();
      else
        list.push_back({cast<StringAttr>(entry), blocks});
  }
  layout.replicated.assign(placement.getReplicated().begin(), placement.getReplicated().end());
  layout.partial.assign(placement.getPartial().begin(), placement.getPartial().end());
  layout.greatest.assign(placement.getGreatest().begin(), placement.getGreatest().end());
  return layout;
}

int Layout::dimOf(StringAttr axis) const {
  for (auto [i, axes] : llvm::enumerate(splits))
    if (llvm::any_of(axes, [&](const AxisSplit &split) { return split.axis == axis; }))
      return static_cast<int>(i);
  return -1;
}

int64_t Layout::blocksOf(StringAttr axis) const {
  for (const DimSplit &axes : splits)
    for (const AxisSplit &split : axes)
      if (split.axis == axis)
        return split.blocks;
  return 0;
}

Kind Layout::kind(StringAttr axis) const {
  if (llvm::is_contained(replicated, axis))
    return Kind::Replicated;
  if (llvm::is_contained(partial, axis))
    return Kind::Partial;
  if (llvm::is_contained(greatest, axis))
    return Kind::Greatest;
  return dimOf(axis) >= 0 ? Kind::Sharded : Kind::Invariant;
}

void Layout::set(StringAttr axis, Kind kind) {
  llvm::erase(replicated, axis);
  llvm::erase(partial, axis);
  llvm::erase(greatest, axis);
  for (DimSplit &axes : splits)
    llvm::erase_if(axes, [&](const AxisSplit &split) { return split.axis == axis; });
  auto add = [&](SmallVector<StringAttr> &list) {
    list.push_back(axis);
    llvm::sort(list, [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
  };
  if (kind == Kind::Replicated)
    add(replicated);
  else if (kind == Kind::Partial)
    add(partial);
  else if (kind == Kind::Greatest)
    add(greatest);
}

void Layout::shard(StringAttr axis, unsigned dim, int64_t blocks) {
  clear(axis);
  auto *at =
      llvm::find_if(splits[dim], [&](const AxisSplit &split) { return split.blocks > blocks; });
  splits[dim].insert(at, {axis, blocks});
}

void Layout::axes(llvm::SetVector<StringAttr> &result) const {
  for (const DimSplit &list : splits)
    for (const AxisSplit &split : list)
      result.insert(split.axis);
  for (const auto *list : {&replicated, &partial, &greatest})
    result.insert(list->begin(), list->end());
}

Layout Layout::factored() const {
  Layout result;
  result.replicated = replicated;
  result.partial = partial;
  result.greatest = greatest;
  for (auto [size, list] : llvm::zip(shape, splits)) {
    int64_t begin = 1;
    result.shape.push_back(size);
    result.splits.emplace_back();
    for (const AxisSplit &split : list) {
      if (split.blocks != begin) {
        int64_t front = split.blocks / begin;
        result.shape.back() /= front;
        result.shape.insert(result.shape.end() - 1, front);
        result.splits.emplace_back();
        begin = split.blocks;
      }
      result.splits.back().push_back({split.axis, 1});
    }
  }
  return result;
}

Layout Layout::dual() const {
  Layout result = *this;
  std::swap(result.replicated, result.partial);
  result.replicated.clear();
  result.greatest.clear();
  return result;
}

Layout Layout::valueOnly() const {
  Layout result = *this;
  result.replicated.clear();
  return result;
}

bool Layout::operator==(const Layout &other) const {
  return shape == other.shape && splits == other.splits && replicated == other.replicated &&
         partial == other.partial && greatest == other.greatest;
}

Attribute Layout::encoding(MLIRContext *context) const {
  if (replicated.empty() && partial.empty() && greatest.empty() &&
      llvm::all_of(splits, [](const DimSplit &axes) { return axes.empty(); }))
    return {};
  Builder builder(context);
  SmallVector<Attribute> lists;
  for (const DimSplit &axes : splits) {
    SmallVector<Attribute> entries;
    int64_t blocks = 1;
    for (const AxisSplit &split : axes) {
      if (split.blocks != blocks)
        entries.push_back(builder.getI64IntegerAttr(blocks = split.blocks));
      entries.push_back(split.axis);
    }
    lists.push_back(builder.getArrayAttr(entries));
  }
  return PlacementAttr::get(context, shape, builder.getArrayAttr(lists), replicated, partial,
                            greatest);
}

std::optional<int64_t> partita::par::pieceSize(int64_t size, int64_t parts) {
  auto piece = static_cast<int64_t>(llvm::divideCeil(size, parts));
  if (piece * parts == size || piece * (parts - 1) < size)
    return piece;
  return std::nullopt;
}

FailureOr<RankedTensorType> Layout::localType(Type element, MeshAttr mesh,
                                              function_ref<void(const Twine &)> error) const {
  SmallVector<int64_t> local(shape);
  for (auto [i, axes] : llvm::enumerate(splits)) {
    int64_t left = shape[i]; // of the factor that the axis splits
    for (const AxisSplit &split : axes) {
      if (&split == axes.begin() || split.blocks != (&split)[-1].blocks) {
        const AxisSplit *next = std::find_if(&split, axes.end(), [&](const AxisSplit &other) {
          return other.blocks != split.blocks;
        });
        left = (next == axes.end() ? shape[i] : next->blocks) / split.blocks;
      }
      int64_t size = mesh.sizeOf(split.axis.getValue());
      if (auto piece = pieceSize(left, size); axes.size() == 1 && split.blocks == 1 && piece) {
        local[i] = *piece;
        continue;
      }
      if (left % size != 0) {
        error(llvm::formatv(
                  "dimension {0} of size {1} does not divide over mesh axis {2} of size {3}", i,
                  left, split.axis.getValue(), size)
                  .str());
        return failure();
      }
      left /= size;
      local[i] /= size;
    }
  }
  return RankedTensorType::get(local, element, encoding(element.getContext()));
}

RankedTensorType partita::par::wholeType(Type type) {
  return RankedTensorType::get(Layout::of(type).shape,
                               cast<RankedTensorType>(type).getElementType());
}

RankedTensorType partita::par::withLayout(Type type, const Layout &layout) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                               layout.encoding(type.getContext()));
}

RankedTensorType partita::par::cotangentType(Type type) {
  return withLayout(type, Layout::of(type).dual());
}

bool partita::par::sameValues(TypeRange a, TypeRange b) {
  auto value = [](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? withLayout(tensor, Layout::of(tensor).valueOnly()) : type;
  };
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [&](auto pair) {
           return value(std::get<0>(pair)) == value(std::get<1>(pair));
         });
}

bool partita::par::isDifferentiable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}
