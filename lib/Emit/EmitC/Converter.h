//===- Converter.h - converts ops of the exit dialect to EmitC ----------------------*- C++ -*-===//
//
// Common to all targets; a subclass per target has its spellings (lib/Emit/Targets).
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_EMIT_EMITC_CONVERTER_H
#define PARTITA_LIB_EMIT_EMITC_CONVERTER_H

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "lib/Emit/Printer.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita::rt {

/// Converts function by function, op by op (Converter.cpp, CollectivesToEmitC.cpp,
/// LayersToEmitC.cpp).
class Converter {
public:
  Converter(mlir::MLIRContext *context, const Target &target) : b(context), target(target) {}
  virtual ~Converter() = default;

  mlir::LogicalResult convert(mlir::func::FuncOp function);
  /// Converts a layer to a function of a row's number, buffers, and variables to wait for.
  mlir::LogicalResult convert(LayerOp layer);
  /// Converts a table of tensors to an array in the program's text, with a comment that says what
  /// its columns are.
  void convert(TensorsOp tensors, llvm::StringRef columns);

protected:
  //===-- Implemented by each target --------------------------------------------------------===//

  /// Creates the stream on which work is queued, a kernel's first argument; null if kernels run
  /// immediately.
  virtual mlir::Value createStream(mlir::Location loc) = 0;
  /// Returns "&rank.", the prefix of a field that the host sets before a step.
  virtual llvm::StringRef controlPrefix() const = 0;
  /// Emits a constant array.
  virtual void emit(TableOp op) = 0;
  /// Returns a line to append to a table of tensors, or "".
  virtual std::string behindTensors(llvm::StringRef /*table*/) const { return ""; }
  virtual void emit(ReportOp op) = 0;
  virtual void emit(IotaOp op) = 0;
  virtual void emit(CountLabelsOp op) = 0;
  virtual void emit(StepNumberOp op) = 0;
  virtual void emit(RandomKeyOp op) = 0;
  /// Defines an integer that depends only on the rank.
  virtual void setNumber(mlir::Location loc, mlir::Value numbers, const std::string &value,
                         int64_t at = 0) = 0;

  //===-- Helpers ---------------------------------------------------------------------------===//

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

  /// Emits `line` with the stream as its first argument; the first `(` opens the arguments.
  void kernelLine(mlir::Location loc, const llvm::Twine &line,
                  llvm::ArrayRef<mlir::Value> operands = {}) {
    llvm::SmallVector<mlir::Value> all = {stream};
    llvm::append_range(all, operands);
    std::string text = line.str();
    text.insert(text.find('(') + 1, "{}, ");
    verbatim(loc, text, all);
  }
  /// Adds the stream only if there is one.
  void kernel(mlir::Location loc, const std::string &line, llvm::ArrayRef<mlir::Value> operands) {
    stream ? kernelLine(loc, line, operands) : verbatim(loc, line, operands);
  }
  void verbatim(mlir::Location loc, llvm::StringRef line, mlir::ValueRange operands = {}) {
    mlir::emitc::VerbatimOp::create(b, loc, b.getStringAttr(line), operands);
  }

  /// Returns "1.0f, 2.0f".
  static std::string elementsText(TableOp op);
  /// Escapes text for `emitc.verbatim`, where an opening brace is written twice.
  static std::string escaped(llvm::StringRef raw) {
    std::string result;
    for (char c : raw)
      result += c == '{' ? "{{" : std::string(1, c);
    return result;
  }

  mlir::OpBuilder b;
  const Target &target;
  mlir::Value rank, stream;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  unsigned tables = 0;

private:
  /// Begins a function whose first argument is the rank, and fetches the stream from it.
  mlir::emitc::FuncOp begin(mlir::Location loc, llvm::StringRef name,
                            llvm::ArrayRef<mlir::Type> types,
                            llvm::ArrayRef<llvm::StringRef> names);
  mlir::LogicalResult convertBody(mlir::Block &block);

  /// Emits a pointer variable: `callee<T>(arguments)`, with its shape as a comment.
  void pointer(mlir::Operation *op, llvm::StringRef callee,
               llvm::ArrayRef<mlir::Attribute> arguments, mlir::ValueRange operands,
               llvm::ArrayRef<int64_t> shape, bool readOnly = false);
  template <typename Op> void place(Op op, llvm::StringRef accessor) {
    pointer(op, accessor, {number(op, "offset")}, {}, op.getShape());
  }
  /// Returns a call's argument: a number, or in a layer's function the column that has it.
  mlir::Attribute number(mlir::Operation *op, llvm::StringRef attribute) {
    std::string column = columnText(op, attribute);
    return column.empty() ? op->getAttr(attribute) : text(column);
  }
  /// Returns a string literal, or in a layer's function the column that has it.
  static std::string textOf(mlir::Operation *op, llvm::StringRef attribute) {
    std::string column = columnText(op, attribute);
    auto own = op->getAttrOfType<mlir::StringAttr>(attribute);
    return column.empty() ? escaped(stringLiteral(own.getValue())) : column;
  }
  /// Returns "Pending p = ", or "p = " if the variable is declared already.
  std::string begins(mlir::Operation *op, llvm::StringRef type) {
    mlir::StringAttr name = pendingName(op);
    return ((variables.contains(name) ? "" : type.str() + " ") + name.getValue() + " = ").str();
  }

  /// Converts a block's ops in order; consecutive ops that run only for one micro-batch form a
  /// branch.
  mlir::LogicalResult convertOps(mlir::Block &block);
  mlir::LogicalResult convertBranch(llvm::ArrayRef<mlir::Operation *> ops, int64_t microBatch);
  mlir::LogicalResult convertOp(mlir::Operation *op);
  void convertCall(CallInterface call);
  void convertExchange(ExchangeInterface exchange);
  void emit(ArenaOp op) { place(op, op.getOptional() ? "rank.atOrNull" : "rank.at"); }
  void emit(NullOp op) {
    values[op.getBuffer()] =
        mlir::emitc::LiteralOp::create(b, op.getLoc(), pointerType(op.getBuffer()), "nullptr");
  }
  void emit(InFlightOp op);
  void emit(BeginPassOp op);
  void emit(RunPassOp op);
  void emit(AwaitSentOp op);
  void emit(PersistentOp op) { place(op, "rank.persistent"); }
  void emit(HostOp op) { place(op, "rank.host"); }
  void emit(PinnedOp op) { place(op, "rank.pinned"); }
  void emit(TransferOp op);
  void emit(SendOp op);
  void emit(ReceiveOp op);
  template <typename Op> void message(Op op, llvm::StringRef function);
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
    auto literal = mlir::emitc::LiteralOp::create(b, op.getLoc(),
                                                  pointerType(op.getBuffer(), target.queuesWork()),
                                                  controlPrefix().str() + op.getField().str());
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
  mlir::emitc::ForOp count(llvm::StringRef name, uint64_t first, uint64_t end, uint64_t step = 1);
  void emit(ForOp op);
  void emit(LaunchOp op);
  void emit(TakePartOp op);
  void emit(PutPartOp op);
  void emit(WaitOp op) { verbatim(op.getLoc(), "wait(" + op.getPending().str() + ");"); }
  void emit(rt::PollOp op) {
    if (!target.pollsCollectives())
      return;
    std::string rows =
        llvm::join(llvm::map_range(op.getCommunicators().getAsValueRange<mlir::StringAttr>(),
                                   communicatorName),
                   ", ");
    verbatim(op.getLoc(), "poll(rank, {{" + rows + "}, " + argument::numbered(op, "bytes") + ");");
  }
  void emit(rt::CallOp op);
  void emit(PendingsOp op) {
    verbatim(op.getLoc(), ("Pending " + op.getVariables().getName() + "[" +
                           llvm::Twine(op.getVariables().getCount()) + "];")
                              .str());
    variables.insert_range(op.getVariables().all());
  }
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
    std::string kind = llvm::convertToCamelFromSnakeCase(stringifyWork(op.getKind()), true);
    verbatim(op.getLoc(), "beginWork(rank, Work::" + kind + ");");
  }
  void emit(FirstElementOp op);
  void emit(rt::FirstIndexOp op);

  /// What calls pass to a layer's function, some of it read-only.
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::Type>> bufferTypes;
  llvm::DenseSet<mlir::StringAttr> variables; ///< of collectives and copies, declared already
};

} // namespace partita::rt

#endif // PARTITA_LIB_EMIT_EMITC_CONVERTER_H
