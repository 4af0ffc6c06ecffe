//===- RtToEmitC.h - ops of the exit dialect as EmitC -------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_LOWER_RTTOEMITC_H
#define PARTITA_LIB_LOWER_RTTOEMITC_H

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita::rt {

/// Function by function, op by op (RtToEmitC.cpp, CollectivesToEmitC.cpp, LayersToEmitC.cpp).
class Converter {
public:
  Converter(mlir::MLIRContext *context, bool cuda) : b(context), cuda(cuda) {}

  mlir::LogicalResult convert(mlir::func::FuncOp function);
  /// A function of a row of its table, of buffers, and of what it begins or waits for.
  mlir::LogicalResult convert(LayerOp layer);

private:
  /// A function whose first argument is the rank, and the stream in it.
  mlir::emitc::FuncOp begin(mlir::Location loc, llvm::StringRef name,
                            llvm::ArrayRef<mlir::Type> types,
                            llvm::ArrayRef<llvm::StringRef> names);
  mlir::LogicalResult convertBody(mlir::Block &block);

  mlir::emitc::OpaqueType opaque(llvm::StringRef text) {
    return mlir::emitc::OpaqueType::get(b.getContext(), text);
  }
  mlir::emitc::OpaqueAttr text(llvm::StringRef text) {
    return mlir::emitc::OpaqueAttr::get(b.getContext(), text);
  }
  mlir::Type pointerTo(mlir::Type element, bool readOnly = false) {
    return mlir::emitc::PointerType::get(
        opaque((readOnly ? "const " : "") + cppName(element).str()));
  }
  mlir::Type pointerType(mlir::Value buffer, bool readOnly = false) {
    return pointerTo(llvm::cast<BufferType>(buffer.getType()).getElement(), readOnly);
  }
  mlir::Value mapped(mlir::Value value) { return values.lookup(value); }
  llvm::SmallVector<mlir::Value> mapped(mlir::ValueRange range) {
    return llvm::map_to_vector(range, [&](mlir::Value value) { return mapped(value); });
  }

  /// `line` with `stream` in front of the arguments, whose first `(` is the call's.
  void kernelLine(mlir::Location loc, const llvm::Twine &line,
                  llvm::ArrayRef<mlir::Value> operands = {}) {
    llvm::SmallVector<mlir::Value> all = {stream};
    llvm::append_range(all, operands);
    std::string text = line.str();
    text.insert(text.find('(') + 1, "{}, ");
    verbatim(loc, text, all);
  }
  /// The same on CUDA alone.
  void kernel(mlir::Location loc, const std::string &line, llvm::ArrayRef<mlir::Value> operands) {
    cuda ? kernelLine(loc, line, operands) : verbatim(loc, line, operands);
  }
  void verbatim(mlir::Location loc, llvm::StringRef line, mlir::ValueRange operands = {}) {
    mlir::emitc::VerbatimOp::create(b, loc, b.getStringAttr(line), operands);
  }

  /// A pointer variable: `callee<T>(arguments)`, with its shape for the reader.
  void pointer(mlir::Operation *op, llvm::StringRef callee,
               llvm::ArrayRef<mlir::Attribute> arguments, mlir::ValueRange operands,
               llvm::ArrayRef<int64_t> shape, bool readOnly = false);
  template <typename Op> void place(Op op, llvm::StringRef accessor) {
    pointer(op, accessor, {number(op, "offset")}, {}, op.getShape());
  }
  /// A call's argument: a number, or the column that it is in a layer's function.
  mlir::Attribute number(mlir::Operation *op, llvm::StringRef attribute) {
    std::string column = columnText(op, attribute);
    return column.empty() ? op->getAttr(attribute) : text(column);
  }
  /// A string literal, or the column that it is in a layer's function.
  static std::string textOf(mlir::Operation *op, llvm::StringRef attribute) {
    std::string column = columnText(op, attribute);
    auto own = op->getAttrOfType<mlir::StringAttr>(attribute);
    return column.empty() ? escaped(stringLiteral(own.getValue())) : column;
  }
  /// "Pending p = ", or "p = " where it is declared already.
  std::string begins(mlir::Operation *op, llvm::StringRef type) {
    mlir::StringAttr name = pendingName(op);
    return ((variables.contains(name) ? "" : type.str() + " ") + name.getValue() + " = ").str();
  }

  mlir::LogicalResult convertOp(mlir::Operation *op);
  void convertCall(CallInterface call);
  void emit(ArenaOp op) { place(op, "rank.at"); }
  void emit(PersistentOp op) { place(op, "rank.persistent"); }
  void emit(HostOp op) { place(op, "rank.host"); }
  void emit(PinnedOp op) { place(op, "rank.pinned"); }
  void emit(TransferOp op);
  void emit(TransferWaitOp op) {
    verbatim(op.getLoc(), "wait(rank, " + op.getPending().str() + ");");
  }
  void emit(InputOp op) {
    llvm::SmallVector<mlir::Attribute> arguments = {number(op, "index")};
    llvm::SmallVector<mlir::Value> operands;
    if (op.getMicro()) {
      arguments.push_back(b.getIndexAttr(0));
      operands.push_back(mapped(op.getMicro()));
    }
    pointer(op, "rank.input", arguments, operands, op.getShape(), true);
  }
  void emit(ControlOp op) {
    auto literal = mlir::emitc::LiteralOp::create(b, op.getLoc(), pointerType(op.getBuffer(), cuda),
                                                  (cuda ? "&rank.device->control->" : "&rank.") +
                                                      op.getField().str());
    values[op.getBuffer()] = literal;
  }
  void emit(OffsetOp op) {
    auto sum = mlir::emitc::AddOp::create(
        b, op.getLoc(), mapped(op.getBase()).getType(), mapped(op.getBase()),
        mlir::emitc::LiteralOp::create(b, op.getLoc(), b.getI64Type(),
                                       argument::numbered(op, "elements")));
    values[op.getBuffer()] = sum;
  }
  void emit(AdvanceOp op) {
    auto size = mlir::emitc::LiteralOp::create(b, op.getLoc(), b.getI64Type(),
                                               std::to_string(op.getElements()));
    auto shift =
        mlir::emitc::MulOp::create(b, op.getLoc(), b.getI64Type(), mapped(op.getMicro()), size);
    auto sum = mlir::emitc::AddOp::create(b, op.getLoc(), mapped(op.getBase()).getType(),
                                          mapped(op.getBase()), shift);
    values[op.getBuffer()] = sum;
  }
  void emit(TableOp op);
  mlir::emitc::ForOp count(llvm::StringRef name, uint64_t first, uint64_t end);
  void emit(ForOp op);
  void emit(LaunchOp op);
  void emit(rt::AllReduceOp op);
  void emit(rt::AllReduceMaxOp op);
  void emit(AllReduceStartOp op);
  void emit(rt::AllGatherOp op);
  void emit(rt::ReduceScatterOp op);
  void emit(TakePartOp op);
  void emit(WaitOp op) { verbatim(op.getLoc(), "wait(" + op.getPending().str() + ");"); }
  void emit(rt::PollOp op) {
    if (cuda) // nobody works on a collective but the GPU
      return;
    verbatim(op.getLoc(),
             llvm::formatv("poll(rank, {0}, {1});", axisName(op.getAxis()), argument::numbered(op, "bytes"))
                 .str());
  }
  void emit(ReportOp op);
  void emit(rt::CallOp op);
  void emit(PendingOp op) {
    verbatim(op.getLoc(), (op.getCopy() ? "HostCopy " : "Pending ") + op.getName().str() + ";");
    variables.insert(op.getNameAttr());
  }
  void emit(CommentOp op) {
    if (b.getInsertionPoint() != b.getBlock()->begin())
      verbatim(op.getLoc(), "");
    verbatim(op.getLoc(), "// " + escaped(commentText(op.getText())));
  }
  void emit(WorkOp op) {
    verbatim(op.getLoc(), "beginWork(rank, Work::" + op.getKind().str() + ");");
  }
  void emit(CountLabelsOp op) {
    kernel(op.getLoc(),
           llvm::formatv(cuda ? "countLabels({{}, {{}, {0}, {1});"
                              : "*{{} = float(countLabels({{}, {0}, {1}));",
                         op.getN(), int64_t(op.getIgnore()))
               .str(),
           {mapped(op.getCount()), mapped(op.getLabels())});
  }
  void emit(StepNumberOp op) {
    kernel(op.getLoc(),
           cuda ? "stepNumber({}, rank.device->control);" : "*{} = float(rank.update);",
           {mapped(op.getNumber())});
  }
  void emit(RandomKeyOp op) {
    kernel(op.getLoc(),
           cuda ? "stepKey({}, rank.device->control);"
                : "*{} = int64_t(stepKey(rank.seed, rank.step));",
           {mapped(op.getKey())});
  }
  void emit(FirstElementOp op);
  void emit(rt::FirstIndexOp op);
  void emit(IotaOp op);
  /// A whole number of the rank's.
  void setNumber(mlir::Location loc, mlir::Value number, const std::string &value) {
    kernel(loc, cuda ? "setScalar({}, " + value + ");" : "*{} = " + value + ";", {mapped(number)});
  }
  template <typename Op>
  void collective(Op op, llvm::StringRef callee, const std::string &before,
                  llvm::StringRef last = "");
  template <typename Op> void move(Op op, llvm::StringRef callee);

  /// Text for `emitc.verbatim`, in which an opening brace is written twice.
  static std::string escaped(llvm::StringRef raw) {
    std::string result;
    for (char c : raw)
      result += c == '{' ? "{{" : std::string(1, c);
    return result;
  }

  mlir::OpBuilder b;
  bool cuda;
  mlir::Value rank, stream;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  /// What calls give a layer's function, some of it read only.
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::Type>> bufferTypes;
  llvm::DenseSet<mlir::StringAttr> variables; ///< of collectives and copies, declared already
  unsigned tables = 0;
};

} // namespace partita::rt

#endif // PARTITA_LIB_LOWER_RTTOEMITC_H
