//===- LayersToEmitC.cpp - converts layers to functions, tables to arrays ---------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "lib/Emit/EmitC/Converter.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

/// Returns the type of a row of the table that the function `h_forward` takes: "HForwardRow".
static std::string tableType(StringRef function) { return camelCase(function) + "Row"; }

static bool isText(Attribute column) { return isa<ArrayAttr>(column); }

/// Visits columns of the table, numbers before text, in the type as well as in its rows.
template <typename F> static void forEachColumn(LayerOp layer, F visit) {
  for (bool ofText : {false, true})
    for (auto [name, column] :
         llvm::zip(layer.getColumns().getAsRange<StringAttr>(), layer.getValues()))
      if (isText(column) == ofText && !linearColumn(column))
        visit(name.getValue(), column);
}

/// Returns "  {64, 128, "wte"},".
static std::string rowText(LayerOp layer, size_t row) {
  std::string text;
  forEachColumn(layer, [&](StringRef, Attribute column) {
    text += text.empty() ? "  {" : ", ";
    text += isText(column)
                ? stringLiteral(cast<StringAttr>(cast<ArrayAttr>(column)[row]).getValue())
                : std::to_string(cast<DenseI64ArrayAttr>(column)[row]);
  });
  return text + "},";
}

/// Returns "  int64_t ln_1, ln_1_mean;" and "  const char *why;", without empty lines.
static SmallVector<std::string> memberLines(LayerOp layer) {
  std::string numbers, texts;
  forEachColumn(layer, [&](StringRef name, Attribute column) {
    std::string &line = isText(column) ? texts : numbers;
    line += !line.empty() ? ", " : isText(column) ? "  const char " : "  int64_t ";
    line += (isText(column) ? "*" : "") + name.str();
  });
  SmallVector<std::string> lines;
  for (std::string &line : {std::ref(numbers), std::ref(texts)})
    if (!line.empty())
      lines.push_back(line + ";");
  return lines;
}

static std::string rangeText(LayerOp layer, uint64_t first, uint64_t last) {
  auto label = [&](uint64_t row) {
    return commentText(cast<StringAttr>(layer.getLabels()[row]).getValue());
  };
  return first == last ? label(first) : label(first) + " to " + label(last);
}

static bool hasLabels(LayerOp layer) {
  return llvm::none_of(layer.getLabels().getAsValueRange<StringAttr>(),
                       [](StringRef label) { return label.empty(); });
}

/// Returns the layers that a call is for, "h.0 to h.3"; "" if they have no names.
static std::string labelText(rt::CallOp call, LayerOp layer) {
  uint64_t first = call.getRow();
  return hasLabels(layer) ? rangeText(layer, first, first + call.getTimes() - 1) : "";
}

/// Writes type and table, if the function needs them, as text before the insertion point.
static void printTable(OpBuilder &b, LayerOp layer) {
  auto line = [&](const Twine &text) {
    auto made = emitc::VerbatimOp::create(b, layer.getLoc(), b.getStringAttr(text), ValueRange());
    made->setAttr(RtDialect::kLayer, b.getUnitAttr());
    return made;
  };
  auto labels = llvm::to_vector(layer.getLabels().getAsValueRange<StringAttr>());
  std::string type = tableType(layer.getSymName());
  if (hasLabels(layer))
    line("// " + rangeText(layer, 0, labels.size() - 1) +
         (hasTable(layer) ? ": what they differ in, places in bytes." : "."));
  if (!hasTable(layer))
    return;
  line("struct " + type + " {");
  for (const std::string &members : memberLines(layer))
    line(members);
  line("};");
  line("static const " + type + " " + tableName(layer.getSymName()) + "[] = {");
  for (auto [row, label] : llvm::enumerate(labels))
    line(rowText(layer, row))->setAttr(emit::kCommentAttr, b.getStringAttr(commentText(label)));
  line("};");
}

LogicalResult Converter::convert(LayerOp layer) {
  b.setInsertionPoint(layer);
  variables.clear();
  SmallVector<Type> types = {opaque("Rank &")};
  SmallVector<StringRef> names = {"rank"};
  printTable(b, layer);
  if (!layer.getColumns().empty()) {
    types.push_back(opaque("int64_t"));
    names.push_back("layer");
  }
  size_t first = types.size();
  ArrayRef<Type> given = bufferTypes[layer.getSymNameAttr()];
  for (BlockArgument buffer : layer.getBody().getArguments()) {
    types.push_back(given.empty() ? pointerType(buffer) : given[buffer.getArgNumber()]);
    names.push_back(provenance::nameIn(buffer.getLoc()));
  }
  for (auto [list, type] :
       {std::pair(layer.getPendings(), "Pending &"), std::pair(layer.getCopies(), "HostCopy &")})
    for (auto name : list.getAsRange<StringAttr>()) {
      types.push_back(opaque(type));
      names.push_back(name);
      variables.insert(name);
    }
  emitc::FuncOp made = begin(layer.getLoc(), layer.getSymName(), types, names);
  made->setAttr(RtDialect::kLayer, b.getUnitAttr());
  for (auto [i, buffer] : llvm::enumerate(layer.getBody().getArguments()))
    values[buffer] = made.getBody().getArgument(static_cast<unsigned>(first + i));
  if (hasTable(layer))
    verbatim(layer.getLoc(), "const " + tableType(layer.getSymName()) +
                                 " &at = " + tableName(layer.getSymName()) + "[layer];");
  if (failed(convertBody(layer.getBody().front())))
    return failure();
  layer.erase();
  return success();
}

/// Emits
///
///   static constexpr TensorRow<2> kUpdates[] = {
///     {{1024, 0}, 256, 0, 3}, // wte
///   };
void Converter::convert(TensorsOp tensors, StringRef columns) {
  b.setInsertionPoint(tensors);
  auto line = [&](const Twine &text, StringRef comment = "") {
    auto made = emitc::VerbatimOp::create(b, tensors.getLoc(), b.getStringAttr(text), ValueRange());
    made->setAttr(RtDialect::kLayer, b.getUnitAttr());
    if (!comment.empty())
      made->setAttr(emit::kCommentAttr, b.getStringAttr(commentText(comment)));
  };
  std::string table = tableName(tensors.getSymName());
  line("// Places of " + columns +
       " in bytes, elements, number of the scalars, number of the parameter.");
  line("static constexpr TensorRow<" + Twine(tensors.getTypes().size()) + "> " + table + "[] = {");
  for (auto row : tensors.getRows().getAsRange<TensorAttr>()) {
    std::string places;
    for (int64_t place : row.getPlaces())
      places += (places.empty() ? "" : ", ") + std::to_string(place);
    line("  {{" + places + "}, " + Twine(row.getElements()) + ", " + Twine(row.getStep()) + ", " +
             Twine(row.getParameter()) + "},",
         row.getName());
  }
  line("};");
  if (std::string behind = behindTensors(table); !behind.empty())
    line(behind);
  line("");
  tensors.erase();
}

/// Emits h_forward(rank, 3, buffers..., variables...); for several rows in a loop.
void Converter::emit(rt::CallOp op) {
  auto layer = SymbolTable::lookupNearestSymbolFrom<LayerOp>(op, op.getCalleeAttr());
  bool loops = op.getTimes() > 1;
  SmallVector<Value> operands;
  std::string row = loops ? "{}" : std::to_string(op.getRow()), label = labelText(op, layer);
  if (loops || !isa_and_nonnull<rt::CallOp>(op->getPrevNode()))
    verbatim(op.getLoc(), "");
  OpBuilder::InsertionGuard guard(b);
  if (loops) {
    if (!label.empty())
      verbatim(op.getLoc(), "// " + escaped(label));
    emitc::ForOp loop = count("layer", op.getRow(), op.getRow() + op.getTimes());
    loop->setAttr(RtDialect::kLayer, b.getUnitAttr());
    b.setInsertionPointToStart(loop.getBody());
    operands.push_back(loop.getInductionVar());
  }
  std::string line = op.getCallee().str() + "(rank";
  if (!layer.getColumns().empty())
    line += ", " + row;
  else
    operands.clear();
  SmallVector<Value> buffers = mapped(op.getBuffers());
  for (Value buffer : buffers) {
    line += ", {}";
    operands.push_back(buffer);
  }
  bufferTypes[op.getCalleeAttr().getAttr()] = llvm::to_vector(ValueRange(buffers).getTypes());
  for (ArrayAttr names : {op.getPendings(), op.getCopies()})
    for (auto name : names.getAsRange<StringAttr>())
      line += ", " + name.getValue().str();
  auto call = emitc::VerbatimOp::create(b, op.getLoc(), b.getStringAttr(line + ");"), operands);
  if (!loops && !label.empty())
    call->setAttr(emit::kCommentAttr, b.getStringAttr(label));
}
