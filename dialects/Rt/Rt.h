//===- Rt.h - the exit dialect ------------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_RT_RT_H
#define PARTITA_DIALECTS_RT_RT_H

#include "dialects/Par/Par.h"
#include "dialects/Rt/Target.h"
#include "dialects/Rt/View.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/include/partita_rt/collectives.h"

namespace partita::rt {

class Lowering; // partita/Lower/Lowering.h

/// A memory space of a rank; see #rt.at.
enum class Space { None, Arena, Persistent, Input, Control, Host, Pinned, InFlight };
llvm::StringRef toString(Space space);
/// Parses `exact` or `others`.
mlir::FailureOr<partita_rt::Steps::Part> parseSteps(mlir::AsmParser &parser);
/// Returns true if its places are byte offsets.
inline bool hasOffsets(Space space) {
  return space == Space::Arena || space == Space::Persistent || space == Space::Host ||
         space == Space::Pinned || space == Space::InFlight;
}
/// Returns true if memory in it lives as long as the program.
inline bool isPersistent(Space space) { return space == Space::Persistent || space == Space::Host; }

/// Parses a parameter of the tables' attributes: a kind of collective, by its row's name.
mlir::FailureOr<partita_rt::CollectiveKind> parseCollectiveKind(mlir::AsmParser &parser);

/// One argument of a call: text in which each `{}` is one of `values`. An argument without text is
/// omitted, for the function's default. Arguments that targets print differently come from the
/// target (Target.h).
struct CallArgument {
  std::string text;
  llvm::SmallVector<mlir::Value, 1> values;

  CallArgument(mlir::Value value) : text("{}"), values({value}) {}
  CallArgument(const char *text) : text(text) {}
  CallArgument(std::string text, llvm::ArrayRef<mlir::Value> values = {})
      : text(std::move(text)), values(values.begin(), values.end()) {}
  CallArgument(int64_t number) : text(std::to_string(number)) {}
  CallArgument(uint64_t number) : text(std::to_string(number)) {}
  bool isValue() const { return text == "{}" && values.size() == 1; }
};

/// The functions in the ops' `call` lists. An argument without text is omitted.
namespace argument {
CallArgument trans(bool transposed);
CallArgument write(bool add);
/// Omitted if there is none.
CallArgument number(std::optional<int64_t> number);
/// As a float literal that reads back exactly.
CallArgument real(const llvm::APFloat &value);
/// As a literal of `buffer`'s element type.
CallArgument element(mlir::Value buffer, const llvm::APFloat &value);
/// `Fill::constant(mean)` or `Fill::normal(deviation)`.
CallArgument filling(const llvm::APFloat &mean, const llvm::APFloat &deviation);
/// An attribute's number, or its column (RtDialect::kColumns).
std::string numbered(mlir::Operation *op, llvm::StringRef attribute);
/// `{file, offset, type}`; omitted if there is no file.
CallArgument source(mlir::StringAttr file, const std::string &offset, mlir::TypeAttr type,
                    mlir::IntegerAttr varints, bool transposed);
CallArgument orNull(mlir::Value value);
/// `{0, 1}`; omitted if the list is empty.
CallArgument listing(llvm::ArrayRef<int64_t> numbers);
CallArgument shape(llvm::ArrayRef<int64_t> sizes);
/// The `index`-th of `count` equal parts of `numbers`, as a shape.
inline CallArgument part(llvm::ArrayRef<int64_t> numbers, size_t count, size_t index) {
  return shape(numbers.slice(index * (numbers.size() / count), numbers.size() / count));
}
/// `{rows, columns}`.
CallArgument classifierBlock(llvm::ArrayRef<int64_t> sizes);
/// Returns `50257`, or `{50257, 50304}` for a table with more rows in memory, which are zeros; 0: as many.
CallArgument paddedRows(int64_t rows, int64_t padded);
/// `{data, batch stride, row stride, head stride}`, the `index`-th three of `strides`.
CallArgument heads(mlir::Value data, llvm::ArrayRef<int64_t> strides, unsigned index);
/// `{sizes, causal, scale, window, zeroHidden, firstKeys, dropout, blocks}`, up to the last that is needed; `blocks`:
/// the function that returns them, or "".
CallArgument attention(llvm::ArrayRef<int64_t> shape, bool causal, const llvm::APFloat &scale,
                       int64_t window, bool zeroHidden, mlir::Value firstKeys,
                       const CallArgument &dropout, llvm::StringRef blocks, mlir::Value firstHead);
/// The same of a step, always with all fields: where its queries and keys lie comes last.
CallArgument attentionStep(llvm::ArrayRef<int64_t> shape, bool causal, const llvm::APFloat &scale,
                           int64_t window, bool zeroHidden, mlir::Value firstKeys,
                           const CallArgument &dropout, llvm::ArrayRef<int64_t> full,
                           llvm::ArrayRef<int64_t> runs, mlir::Value firstQuery,
                           mlir::Value firstKey, llvm::StringRef blocks, mlir::Value firstHead);
/// `{ratio, id, key, micro-batch, batch, heads, first element}` of attention's probabilities; no text without
/// a key.
CallArgument attentionDropout(std::optional<llvm::APFloat> ratio, const std::string &id,
                              mlir::Value key, mlir::Value micro, mlir::Value first,
                              llvm::ArrayRef<int64_t> fullShape);
/// `{data, batch stride, head stride, row stride, column stride}`; without a bias omitted, or `{}` if `more` arguments
/// follow.
CallArgument scores(mlir::Value data, llvm::ArrayRef<int64_t> strides, bool more = false);
/// `{a, nullptr, c}`; omitted if all are null.
CallArgument listingOrNull(llvm::ArrayRef<mlir::Value> values);
/// `true` or `false`.
CallArgument yesOrNo(bool value);
/// `FrozenRatioOptions{...}` of these numbers, in its order.
CallArgument frozenRatio(llvm::ArrayRef<llvm::APFloat> numbers);
/// `LossScalerOptions{dynamic, 0, window, hysteresis, consecutive, minimum}`.
CallArgument scaler(bool dynamic, int64_t window, int64_t hysteresis, bool consecutive,
                    const llvm::APFloat &minimum);
/// `Home::Host` or `Home::Device`.
CallArgument home(bool onHost);
} // namespace argument

/// Returns a float32 literal: "1.0f", "1e-05f", "INFINITY".
std::string floatLiteral(double value);
/// Returns a double literal with as many digits as it needs.
std::string doubleLiteral(double value);
/// Returns C++'s name of an element type in memory, "float".
llvm::StringRef cppName(mlir::Type element);
/// Returns the runtime's name of an element type, "DType::Float32".
std::string dtypeName(mlir::Type element);

} // namespace partita::rt

#include "dialects/Rt/RtDialect.h.inc"
#include "dialects/Rt/RtEnums.h.inc"
#include "dialects/Rt/RtInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Rt/RtTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Rt/RtAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/Rt/RtOps.h.inc"
#define GET_OP_CLASSES
#include "dialects/Rt/RtKernels.h.inc"

namespace partita::rt {

/// Returns the ledgers that `plan-memory` recorded: one per function, or two if it uses pinned
/// memory.
llvm::SmallVector<LedgerAttr> ledgersIn(mlir::ModuleOp module);
/// Returns the elements of a list of #rt.program; none if it is absent.
template <typename Attr> auto elementsOf(mlir::ArrayAttr list) {
  return llvm::map_range(list ? list.getValue() : llvm::ArrayRef<mlir::Attribute>(),
                         [](mlir::Attribute each) { return llvm::cast<Attr>(each); });
}
/// Are the rows of the program's communicators and channels possible on the module's mesh, and has every
/// call of it that communicates its row?
mlir::LogicalResult verifyConnections(mlir::ModuleOp module, ProgramAttr program);
/// The column of an attribute of an op in a layer's function; null if it is not a column.
ColumnAttr columnOf(mlir::Operation *op, llvm::StringRef attribute);
/// Returns the first number of a column, and what is added from row to row, if that is always the same.
std::optional<std::pair<int64_t, int64_t>> linearColumn(mlir::Attribute values);
/// Does a layer's function need a table? Columns that are linear in the layer it computes.
bool hasTable(LayerOp layer);
/// Returns how the function reads it: "64 + layer * 128", "at.ln_1", "at.persistent + 512"; "" if it is not a column.
std::string columnText(mlir::Operation *op, llvm::StringRef attribute);
/// Returns true if the op makes a pointer, without reading or writing memory.
bool isPointer(mlir::Operation *op);
/// Returns the variable of the collective or copy that the op starts or awaits, or null.
mlir::StringAttr pendingName(mlir::Operation *op);
/// Returns the view that `at` describes for a tensor of this type, with `offset` in elements from
/// byte 0.
View viewOf(AtAttr at, mlir::RankedTensorType type);
/// Returns the bytes of one element in memory (i1 is one byte).
int64_t elementBytes(mlir::Type element);
/// Returns the bytes that a parameter or state has in memory: those of a rank's shard, and of its padding (RtDialect::kPaddedRows).
int64_t bytesInMemory(mlir::Operation *symbol, mlir::RankedTensorType local);
} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_RT_H
