//===- LayerFunction.cpp - steps of several layers as one function ----------------------------===//
//
// Works position by position: the steps there become one op of the function. Its operands become
// one pointer for each distinct tuple of pointers, its data one column for each distinct tuple of
// values. Tuples of numbers that differ by a constant share a column: a layer's parameters are
// contiguous, so the address of the first one locates them all. Equal values need no column. The
// variable of a collective that starts and is waited for in every occurrence is local to the
// function.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Outline/LayerFunction.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Rt/Names.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>

using namespace mlir;
using namespace partita;
using namespace partita::rt;

//===------------------------------------------------------------------------------------------===//
// Keys
//===------------------------------------------------------------------------------------------===//

bool rt::isPlace(Value pointer) {
  Operation *op = pointer.getDefiningOp();
  if (auto input = dyn_cast_or_null<InputOp>(op))
    return !input.getMicro();
  if (auto offset = dyn_cast_or_null<OffsetOp>(op))
    return isPlace(offset.getBase());
  return isa_and_nonnull<ArenaOp, NullOp, InFlightOp, PersistentOp, HostOp, PinnedOp, ControlOp>(
      op);
}

/// Returns an op's attributes without the data, and without the layer that it comes from.
static DictionaryAttr fixedAttributes(Operation *op) {
  Attribute any = UnitAttr::get(op->getContext());
  NamedAttrList fixed(provenance::attributesWithout(op));
  if (auto data = dyn_cast<DataInterface>(op))
    for (StringRef name : data.getDataAttributes())
      if (fixed.get(name))
        fixed.set(name, any);
  if (pendingName(op))
    fixed.set("pending", any);
  if (isPointer(op))
    fixed.erase("shape"); // informs the reader only
  return fixed.getDictionary(op->getContext());
}

/// Returns how a pointer is made, without the numbers.
static Attribute keyOf(Value pointer) {
  MLIRContext *context = pointer.getContext();
  SmallVector<Attribute> parts = {TypeAttr::get(pointer.getType())};
  if (pointer.getDefiningOp<NullOp>()) { // like a place in the arena
    NamedAttribute offset("offset", UnitAttr::get(context));
    parts.push_back(StringAttr::get(context, ArenaOp::getOperationName()));
    parts.push_back(DictionaryAttr::get(context, offset));
    return ArrayAttr::get(context, parts);
  }
  if (Operation *op = pointer.getDefiningOp())
    parts.push_back(StringAttr::get(context, op->getName().getStringRef()));
  if (isPlace(pointer)) {
    parts.push_back(fixedAttributes(pointer.getDefiningOp()));
    for (Value base : pointer.getDefiningOp()->getOperands())
      parts.push_back(keyOf(base));
  }
  return ArrayAttr::get(context, parts);
}

Attribute rt::keyOf(Operation *op) {
  if (!isa<RtDialect>(op->getDialect()) || op->getNumResults() || op->getNumRegions() ||
      op->hasTrait<OpTrait::IsTerminator>() ||
      isa<rt::CallOp, PendingsOp, PendingOp, RunPassOp, AwaitSentOp>(op))
    return {};
  Builder b(op->getContext());
  SmallVector<Attribute> parts = {b.getStringAttr(op->getName().getStringRef()),
                                  fixedAttributes(op)};
  for (Value operand : op->getOperands()) {
    if (!isa<BufferType>(operand.getType()))
      return {};
    parts.push_back(::keyOf(operand));
  }
  return b.getArrayAttr(parts);
}

//===------------------------------------------------------------------------------------------===//
// Columns
//===------------------------------------------------------------------------------------------===//

namespace {

/// The table, built up step by step.
class Columns {
public:
  explicit Columns(Builder &b) : b(b) {}

  /// `attribute` of the function's op is these values, one per row. A column is called like its first
  /// tensor, or `shared` if it is all that persists.
  void add(Operation *op, StringRef attribute, ArrayRef<Attribute> values, StringRef name,
           StringRef shared);
  /// Notes in every op which columns it reads.
  void finish(SmallVector<Attribute> &names, SmallVector<Attribute> &values);

private:
  struct Reader {
    Operation *op;
    StringAttr attribute;
    int64_t first; ///< the first row's number
    std::string name;
  };
  struct Column {
    std::string shared;
    SmallVector<Reader> readers;
    SmallVector<Attribute> texts;
    SmallVector<int64_t> steps; ///< differences from the first row's number
  };
  /// The reader with the lowest number, which says where the others' tensors begin.
  static const Reader &leastOf(const Column &column) {
    return *llvm::min_element(column.readers, [](auto &a, auto &b) { return a.first < b.first; });
  }
  static std::string nameOf(const Column &column);
  std::string unique(StringRef name);

  Builder &b;
  llvm::MapVector<Attribute, Column> columns;
  llvm::StringSet<> taken;
};

void Columns::add(Operation *op, StringRef attribute, ArrayRef<Attribute> values, StringRef name,
                  StringRef shared) {
  if (llvm::all_equal(values))
    return;
  bool isText = isa<StringAttr>(values[0]);
  int64_t first = isText ? 0 : cast<IntegerAttr>(values[0]).getInt();
  SmallVector<int64_t> steps;
  for (Attribute value : values)
    steps.push_back(isText ? 0 : cast<IntegerAttr>(value).getInt() - first);
  Attribute tuple = isText ? Attribute(b.getArrayAttr(values)) : b.getDenseI64ArrayAttr(steps);
  Column &column = columns[b.getArrayAttr({b.getStringAttr(shared), tuple})];
  if (column.readers.empty()) {
    column.shared = shared.str();
    column.steps = steps;
    if (isText)
      column.texts.assign(values.begin(), values.end());
  }
  column.readers.push_back({op, b.getStringAttr(attribute), first, name.str()});
}

std::string Columns::nameOf(const Column &column) {
  // What persists for a layer is all of its parameters and states.
  const Reader &least = leastOf(column);
  return isa<PersistentOp>(least.op) && least.name != column.readers.back().name ? column.shared
                                                                                 : least.name;
}

std::string Columns::unique(StringRef name) {
  std::string base = identifier(name), result = base;
  for (unsigned i = 2; !taken.insert(result).second; ++i)
    result = base + "_" + std::to_string(i);
  return result;
}

void Columns::finish(SmallVector<Attribute> &names, SmallVector<Attribute> &values) {
  std::map<Operation *, NamedAttrList> read;
  for (auto &[key, column] : columns) {
    const Reader &least = leastOf(column);
    int64_t base = least.first;
    std::string name = unique(nameOf(column));
    names.push_back(b.getStringAttr(name));
    if (!column.texts.empty()) {
      values.push_back(b.getArrayAttr(column.texts));
    } else {
      SmallVector<int64_t> numbers;
      for (int64_t step : column.steps)
        numbers.push_back(base + step);
      values.push_back(b.getDenseI64ArrayAttr(numbers));
    }
    for (Reader &reader : column.readers)
      read[reader.op].set(reader.attribute,
                          ColumnAttr::get(b.getContext(), name, reader.first - base));
  }
  for (auto &[op, attributes] : read)
    op->setAttr(RtDialect::kColumns, attributes.getDictionary(b.getContext()));
}

//===------------------------------------------------------------------------------------------===//
// The function
//===------------------------------------------------------------------------------------------===//

class FunctionMaker {
public:
  FunctionMaker(ArrayRef<ArrayRef<Step>> occurrences, const PendingUses &uses, SymbolTable &symbols)
      : occurrences(occurrences), uses(uses), symbols(symbols),
        b(occurrences[0][0].op->getContext()), columns(b) {}

  LayerFunction run();

private:
  /// Returns the values of `get` for every occurrence's step at one position.
  template <typename T, typename F> SmallVector<T> tuple(size_t position, F get) {
    return llvm::map_to_vector(occurrences,
                               [&](ArrayRef<Step> steps) -> T { return get(steps[position]); });
  }

  void nameLayers();
  std::string functionName();
  void addComment(size_t position);
  void addStep(size_t position);
  Value pointer(ArrayRef<Value> tuple);
  Value place(ArrayRef<Value> tuple, StringRef name);
  void namePending(size_t position, PendingInterface made);
  bool isLocal(ArrayRef<Attribute> names);
  std::string commonNameOf(ArrayRef<Value> tuple);

  ArrayRef<ArrayRef<Step>> occurrences;
  const PendingUses &uses;
  SymbolTable &symbols;
  OpBuilder b;
  Columns columns;
  LayerFunction result;
  std::vector<LayerLabel> layers; ///< per occurrence
  std::map<SmallVector<void *>, Value> pointers;
  llvm::MapVector<Attribute, StringAttr> variables; ///< by tuple of names
  llvm::StringMap<unsigned> variableNames;
};

/// Assigns each occurrence to the layer of most of its steps.
void FunctionMaker::nameLayers() {
  for (ArrayRef<Step> steps : occurrences) {
    std::vector<std::string> texts;
    for (const Step &step : steps)
      if (!step.label.isNone())
        texts.push_back(step.label.text());
    layers.push_back(LayerLabel::of(mostFrequent(texts)));
  }
}

/// Returns a reader's word for the part of the program that a step is in.
std::string partOf(Step step) {
  if (step.entry == train::EntryPoint::TrainStep)
    return stringifyWork(step.part).str();
  return step.entry == train::EntryPoint::Init ? "init" : "eval"; // also what @forward does
}

/// Names the function after its layers and its part of the program: "h_forward".
std::string FunctionMaker::functionName() {
  std::vector<std::string> kinds, parts;
  for (const LayerLabel &layer : layers)
    if (!layer.isNone())
      kinds.push_back(llvm::join(layer.kind, "_"));
  for (const Step &step : occurrences[0])
    parts.push_back(partOf(step));
  std::string base = identifier((kinds.empty() ? "repeated" : mostFrequent(kinds)) + "_" +
                                mostFrequent(parts)),
              name = base;
  for (unsigned i = 2; symbols.lookup(name); ++i)
    name = base + "_" + std::to_string(i);
  return name;
}

/// Adds the most frequent comment of the occurrences at a position.
void FunctionMaker::addComment(size_t position) {
  std::vector<std::string> comments;
  for (ArrayRef<Step> steps : occurrences)
    if (!steps[position].comment.empty())
      comments.push_back(steps[position].comment);
  if (comments.size() * 2 >= occurrences.size())
    CommentOp::create(b, occurrences[0][position].op->getLoc(), commonComment(comments));
}

static bool isNull(Value pointer) { return pointer.getDefiningOp<NullOp>() != nullptr; }

std::string FunctionMaker::commonNameOf(ArrayRef<Value> tuple) {
  std::vector<std::string> names;
  std::vector<LayerLabel> named;
  for (auto [value, layer] : llvm::zip(tuple, layers))
    if (!isNull(value)) {
      names.push_back(provenance::nameIn(value.getLoc()).str());
      named.push_back(layer);
    }
  return commonName(names, named);
}

/// Returns the most frequent shape among the tensors, for the reader; the input of a first layer
/// may have another.
Attribute mostFrequentShape(ArrayRef<Value> tuple) {
  Attribute best;
  int64_t most = 0;
  for (Value value : tuple) {
    Attribute shape = value.getDefiningOp()->getAttr("shape");
    int64_t count = llvm::count_if(
        tuple, [&](Value other) { return other.getDefiningOp()->getAttr("shape") == shape; });
    if (count > most) {
      best = shape;
      most = count;
    }
  }
  return best;
}

/// What places are that are one, or whose offsets differ by constants, and whose names have no word in
/// common. One of the arena belongs to several values, one after the other.
static StringRef sharedNameOf(Operation *place) {
  return isa<PersistentOp>(place) ? "parameters" : place->getName().stripDialect();
}

/// Makes columns of a pointer's data, and of its base's if it is an offset. Where some layers have
/// rt.null, their offset is below 0.
Value FunctionMaker::place(ArrayRef<Value> tuple, StringRef name) {
  const Value *given = llvm::find_if_not(tuple, isNull);
  if (given == tuple.end())
    return b.clone(*tuple[0].getDefiningOp())->getResult(0);
  Operation *first = given->getDefiningOp();
  IRMapping bases;
  for (unsigned i = 0; i < first->getNumOperands(); ++i)
    bases.map(first->getOperand(i), pointer(llvm::map_to_vector(tuple, [&](Value value) {
                return value.getDefiningOp()->getOperand(i);
              })));
  Operation *made = b.clone(*first, bases);
  made->setLoc(NameLoc::get(b.getStringAttr(name)));
  if (Attribute shape = mostFrequentShape(tuple))
    made->setAttr("shape", shape);
  if (llvm::any_of(tuple, isNull))
    cast<ArenaOp>(made).setOptional(true);
  if (auto data = dyn_cast<DataInterface>(made))
    for (StringRef attribute : data.getDataAttributes())
      columns.add(made, attribute,
                  llvm::map_to_vector(tuple,
                                      [&](Value value) -> Attribute {
                                        return isNull(value)
                                                   ? b.getI64IntegerAttr(-1)
                                                   : value.getDefiningOp()->getAttr(attribute);
                                      }),
                  name, attribute == "offset" ? sharedNameOf(made) : attribute);
  return made->getResult(0);
}

/// Returns the function's pointer for a tuple of one pointer per occurrence.
Value FunctionMaker::pointer(ArrayRef<Value> tuple) {
  SmallVector<void *> key =
      llvm::map_to_vector(tuple, [](Value value) { return value.getAsOpaquePointer(); });
  if (auto known = pointers.find(key); known != pointers.end())
    return known->second;
  std::string name = commonNameOf(tuple);
  Value made;
  if (isPlace(tuple[0])) {
    made = place(tuple, name);
  } else {
    made = result.op.getBody().addArgument(tuple[0].getType(), NameLoc::get(b.getStringAttr(name)));
    for (auto [buffers, value] : llvm::zip(result.buffers, tuple))
      buffers.push_back(value);
  }
  return pointers[key] = made;
}

/// Returns true if, in every occurrence, the variable of that name is named nowhere else.
bool FunctionMaker::isLocal(ArrayRef<Attribute> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    Attribute name = names[i];
    auto mentions = llvm::count_if(occurrences[i],
                                   [&](const Step &step) { return pendingName(step.op) == name; });
    func::FuncOp function = occurrences[i][0].function;
    if (uses.lookup({function, name}) != static_cast<unsigned>(mentions))
      return false;
  }
  return true;
}

/// Names the variable of a start or wait: local to the function, or one of its parameters.
void FunctionMaker::namePending(size_t position, PendingInterface made) {
  auto names = tuple<Attribute>(position, [](const Step &step) { return pendingName(step.op); });
  StringAttr &variable = variables[b.getArrayAttr(names)];
  if (!variable) {
    bool local = isLocal(names);
    std::string base = local ? "pending" : made.waits() ? "awaited" : "started";
    unsigned number = ++variableNames[base];
    variable = b.getStringAttr(number == 1 ? base : base + "_" + std::to_string(number));
    if (!local) {
      bool copy = made.isCopy();
      ArrayAttr own = copy ? result.op.getCopiesAttr() : result.op.getPendingsAttr();
      SmallVector<Attribute> all(own.begin(), own.end());
      all.push_back(variable);
      copy ? result.op.setCopiesAttr(b.getArrayAttr(all))
           : result.op.setPendingsAttr(b.getArrayAttr(all));
      for (auto [handed, name] : llvm::zip(copy ? result.copies : result.pendings, names))
        handed.push_back(name);
    }
  }
  made.setPendingAttr(variable);
}

void FunctionMaker::addStep(size_t position) {
  addComment(position);
  Operation *first = occurrences[0][position].op;
  IRMapping operands;
  SmallVector<Value> mapped;
  for (unsigned i = 0; i < first->getNumOperands(); ++i)
    mapped.push_back(
        pointer(tuple<Value>(position, [&](const Step &step) { return step.op->getOperand(i); })));
  Operation *made = b.clone(*first);
  made->setOperands(mapped);
  if (auto data = dyn_cast<DataInterface>(made))
    for (StringRef attribute : data.getDataAttributes())
      if (made->hasAttr(attribute)) {
        StringRef name = attribute == "reason" ? "why" : attribute;
        columns.add(made, attribute,
                    tuple<Attribute>(position,
                                     [&](const Step &step) { return step.op->getAttr(attribute); }),
                    name, name);
      }
  if (pendingName(made))
    namePending(position, cast<PendingInterface>(made));
}

LayerFunction FunctionMaker::run() {
  nameLayers();
  size_t count = occurrences.size();
  result.buffers.resize(count);
  result.pendings.resize(count);
  result.copies.resize(count);
  SmallVector<Attribute> labels;
  for (const LayerLabel &layer : layers)
    labels.push_back(b.getStringAttr(layer.text()));
  b.setInsertionPoint(occurrences[0][0].function);
  ArrayAttr none = b.getArrayAttr({});
  result.op = LayerOp::create(b, occurrences[0][0].op->getLoc(), functionName(),
                              b.getArrayAttr(labels), none, none, none, none);
  Block &body = result.op.getBody().emplaceBlock();
  LayerOp::ensureTerminator(result.op.getBody(), b, result.op.getLoc());
  b.setInsertionPoint(body.getTerminator());
  for (size_t position = 0; position < occurrences[0].size(); ++position)
    addStep(position);
  SmallVector<Attribute> names, values;
  columns.finish(names, values);
  result.op.setColumnsAttr(b.getArrayAttr(names));
  result.op.setValuesAttr(b.getArrayAttr(values));
  symbols.insert(result.op);
  return std::move(result);
}

} // namespace

LayerFunction rt::makeLayerFunction(ArrayRef<ArrayRef<Step>> occurrences, const PendingUses &uses,
                                    SymbolTable &symbols) {
  return FunctionMaker(occurrences, uses, symbols).run();
}
