//===- Names.h - from names in the model to names in the program --------------------*- C++ -*-===//
//
// Names in a model file are untrusted bytes: they reach emitted source only as identifiers, or as
// comments and string literals through these functions.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_RT_NAMES_H
#define PARTITA_DIALECTS_RT_NAMES_H

#include "mlir/IR/Operation.h"
#include <string>

namespace partita::rt {

/// For people: the name of the op's node in the model, else the kind of op.
std::string readableName(mlir::Operation *op);

/// [A-Za-z_][A-Za-z0-9_]*, no keyword, at most 60 characters; "" becomes "x".
std::string identifier(llvm::StringRef name);
/// One line without `*/`, `\` and control characters, valid in a // comment; at most 200 bytes.
std::string commentText(llvm::StringRef name);
/// With quotes, every byte outside printable ASCII as an octal escape, no trigraph.
std::string stringLiteral(llvm::StringRef bytes);

/// The program's constant for a mesh axis: "dp" -> "kDp".
std::string axisName(llvm::StringRef axis);
/// kDpGathers: the row of the runtime's groups whose gathers begin ahead of their use.
std::string gathersName(llvm::StringRef axis);
/// kStages0And3: the row of the runtime's groups of the ranks of some pipeline stages.
std::string stagesName(llvm::ArrayRef<int64_t> stages);
/// kStage0To1: the row of the runtime's channels between two stages; kStage0To1Value2 is number 2 of them.
std::string channelName(int64_t source, int64_t target, int64_t number);

/// An array of the program's text that belongs to a symbol: "h_forward" -> "kHForward".
std::string tableName(llvm::StringRef symbol);
/// "h_forward" -> "HForward".
std::string camelCase(llvm::StringRef symbol);

/// The module path in an ONNX node's name: "/transformer/h.0/attn/MatMul" ->
/// "transformer.h.0.attn"; "" if the name has no path.
std::string modulePath(llvm::StringRef name);

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_NAMES_H
