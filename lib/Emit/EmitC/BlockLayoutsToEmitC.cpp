//===- BlockLayoutsToEmitC.cpp - layouts of block-sparse attention as constant tables -----------===//

#include "dialects/Rt/Rt.h"
#include "lib/Emit/EmitC/KernelsToEmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;
using partita_rt::BlockPair;
using partita_rt::BlockTerm;

static std::string textOf(const BlockTerm &term) {
  static constexpr StringLiteral kinds[] = {"Band", "Squares", "Columns", "Rows"};
  std::string text = llvm::formatv("{{BlockTermKind::{0}, {1}, {2}", kinds[size_t(term.kind)],
                                   term.begin, term.end);
  if (term.period != 1 || term.width != 1 || term.below)
    text += llvm::formatv(", {0}, {1}", term.period, term.width);
  return text + (term.below ? ", true}" : "}");
}

namespace {

/// Prints the tables of one attention, line by line: into its function or, in a device's memory, before it.
class LayoutsPrinter {
public:
  LayoutsPrinter(OpBuilder &b, BlockLayoutsOp op, bool onDevice)
      : b(b), loc(op.getLoc()), onDevice(onDevice),
        prefix(onDevice ? (op.getSymName() + "_").str() : ""),
        begin(onDevice ? "static __device__ const " : "  static const ") {}

  void line(const Twine &text) { emitc::VerbatimOp::create(b, loc, b.getStringAttr(text)); }

  /// A table of several elements a line; returns its name, or "nullptr" if it is empty.
  std::string table(StringRef type, const Twine &called, ArrayRef<std::string> elements) {
    if (elements.empty())
      return "nullptr";
    std::string name = prefix + called.str(), indent(begin.size() - begin.ltrim().size(), ' ');
    line(begin + type + " " + name + "[] = {");
    for (size_t i = 0; i < elements.size();) {
      std::string row = indent + "    " + elements[i++] + ",";
      while (i < elements.size() && row.size() + elements[i].size() < 90)
        row += " " + elements[i++] + ",";
      line(row);
    }
    line(indent + "};");
    return name;
  }
  /// What the host passes to a kernel.
  std::string address(const std::string &table) {
    return onDevice ? "deviceTable(" + table + ")" : table;
  }

  std::string pairs(const Twine &name, ArrayRef<BlockPair> pairs) {
    return table("BlockPair", name, llvm::map_to_vector(pairs, [](const BlockPair &pair) {
                   return llvm::formatv("{{{0}, {1}}", pair.row, pair.column).str();
                 }));
  }

  /// Prints the tables of a pattern; returns its element of the table of layouts.
  std::string layout(tx::BlockPatternAttr pattern, const Twine &number, int64_t size, int64_t n) {
    SmallVector<BlockPair> byColumn(pattern.getPairs());
    llvm::sort(byColumn, [](const BlockPair &a, const BlockPair &b) {
      return std::pair(a.column, a.row) < std::pair(b.column, b.row);
    });
    std::string terms =
        table("BlockTerm", "terms" + number, llvm::map_to_vector(pattern.getTerms(), textOf));
    std::string text =
        llvm::formatv("{{{0}, {1}, {2}, {3}, {4}", size, n, pattern.getLower() ? "true" : "false",
                      pattern.getTerms().size(), terms);
    if (!byColumn.empty())
      text += ", " + std::to_string(byColumn.size()) + ", " +
              pairs("by_row" + number, pattern.getPairs()) + ", " +
              pairs("by_column" + number, byColumn);
    return text + "}";
  }

private:
  OpBuilder &b;
  Location loc;
  bool onDevice;
  std::string prefix;
  StringRef begin; ///< of a table's line
};

} // namespace

static void convert(OpBuilder &b, BlockLayoutsOp op, bool onDevice) {
  LayoutsPrinter printer(b, op, onDevice);
  tx::BlocksAttr blocks = op.getBlocks();
  int64_t size = blocks.getSize(), n = op.getSequence() / size;
  bool isPerHead = blocks.isPerHead();
  printer.line(llvm::formatv("// {0} of block-sparse attention: {1} x {1} blocks of {2} positions.",
                             isPerHead ? "The heads' layouts" : "The layout", n, size)
                   .str());
  auto beginFunction = [&] {
    printer.line("static BlockLayouts " + op.getSymName() + "(" +
                 (isPerHead ? "const int64_t *first_head = nullptr" : "") + ") {");
  };
  if (!onDevice)
    beginFunction();
  SmallVector<std::string> layouts;
  for (auto [i, pattern] : llvm::enumerate(blocks.getPatterns()))
    layouts.push_back(printer.layout(pattern, isPerHead ? Twine(i) : Twine(), size, n));
  std::string result = printer.address(printer.table("BlockLayout", "layouts", layouts));
  if (isPerHead) {
    auto heads = llvm::map_to_vector(blocks.getHeads(),
                                     [](int32_t number) { return std::to_string(number); });
    result += ", " + printer.address(printer.table("int32_t", "heads", heads)) + ", first_head";
  }
  if (onDevice)
    beginFunction();
  printer.line("  return {" + result + "};");
  printer.line("}");
  op.erase();
}

/// They stand after the kernels.
void rt::convertBlockLayouts(ModuleOp module, bool onDevice) {
  auto functions = module.getOps<func::FuncOp>();
  OpBuilder b(module.getContext());
  if (functions.empty())
    b.setInsertionPointToEnd(module.getBody());
  else
    b.setInsertionPoint(*functions.begin());
  for (auto layouts : llvm::make_early_inc_range(module.getOps<BlockLayoutsOp>()))
    convert(b, layouts, onDevice);
}
