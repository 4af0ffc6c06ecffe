//===- Names.h - converts names in the model to names in the program ----------------*- C++ -*-===//
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

/// Returns, for people, the name of the op's node in the model, else the kind of op.
std::string readableName(mlir::Operation *op);

/// Returns [A-Za-z_][A-Za-z0-9_]*, no keyword, at most 60 characters; "" becomes "x".
std::string identifier(llvm::StringRef name);
/// Returns one line without `*/`, `\` and control characters, valid in a // comment; at most 200
/// bytes.
std::string commentText(llvm::StringRef name);
/// Returns a literal with quotes, every byte outside printable ASCII as an octal escape, no
/// trigraph.
std::string stringLiteral(llvm::StringRef bytes);

/// Returns the program's constant for a mesh axis: "dp" -> "kDp".
std::string axisName(llvm::StringRef axis);
/// That for a communicator, a row of kGroups: "dp ahead" -> "kOverDpAhead".
std::string communicatorName(llvm::StringRef communicator);
/// That for a channel, a row of kChannels: "stage 0 to 1, value 2" -> "kStage0To1Value2".
std::string channelName(llvm::StringRef channel);

/// Returns the name of an array that belongs to a symbol in the program's text: "h_forward" ->
/// "kHForward".
std::string tableName(llvm::StringRef symbol);
/// Returns "HForward" for "h_forward".
std::string camelCase(llvm::StringRef symbol);

/// Returns the module path in an ONNX node's name: "/transformer/h.0/attn/MatMul" ->
/// "transformer.h.0.attn"; "" if the name has no path.
std::string modulePath(llvm::StringRef name);

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_NAMES_H
