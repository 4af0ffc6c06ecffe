//===- Registry.h - one row per ONNX operator -------------------------------------------------===//
//
// Operators' handlers are grouped into files, each of which ends in a table of rows; the registry is the
// union of these tables. Adding a spelling is adding a row.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_REGISTRY_H
#define PARTITA_LIB_IMPORT_REGISTRY_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace partita::importer {

class Node;
using Handler = mlir::LogicalResult (*)(Node &node);

constexpr int64_t anyLater = INT64_MAX;

struct OpRow {
  const char *type;
  const char *domain; // "" is ai.onnx
  /// Versions of the opset for which the handler is right, both ends included.
  int64_t since, until;
  Handler handler;
  bool takesSequences = false; ///< of tensors (Sequences.cpp)
};

/// The tables, each at the end of its file.
llvm::ArrayRef<OpRow> elementwiseOps();   // Elementwise.cpp
llvm::ArrayRef<OpRow> activationOps();    // Activations.cpp
llvm::ArrayRef<OpRow> logicOps();         // Logic.cpp
llvm::ArrayRef<OpRow> shapeOps();         // Shape.cpp
llvm::ArrayRef<OpRow> pieceOps();         // Pieces.cpp
llvm::ArrayRef<OpRow> sequenceOps();      // Sequences.cpp
llvm::ArrayRef<OpRow> padOps();           // Pad.cpp
llvm::ArrayRef<OpRow> resizeOps();        // Resize.cpp
llvm::ArrayRef<OpRow> indexingOps();      // Indexing.cpp
llvm::ArrayRef<OpRow> countingOps();      // Counting.cpp
llvm::ArrayRef<OpRow> generatorOps();     // Generators.cpp
llvm::ArrayRef<OpRow> linearOps();        // Linear.cpp
llvm::ArrayRef<OpRow> einsumOps();        // Einsum.cpp
llvm::ArrayRef<OpRow> convOps();          // Conv.cpp
llvm::ArrayRef<OpRow> attentionOps();     // Attention.cpp
llvm::ArrayRef<OpRow> microsoftOps();     // Microsoft.cpp
llvm::ArrayRef<OpRow> microsoftNormOps(); // MicrosoftNorms.cpp
llvm::ArrayRef<OpRow> lossOps();          // Loss.cpp
llvm::ArrayRef<OpRow> normOps();          // Norm.cpp
llvm::ArrayRef<OpRow> reductionOps();     // Reductions.cpp
llvm::ArrayRef<OpRow> controlOps();       // Control.cpp

/// "ai.onnx" is the same domain as "".
llvm::StringRef canonicalDomain(llvm::StringRef domain);
/// Of the default domain. A newer one may give an operator of the same name another meaning.
constexpr int64_t newestOpset = 25;
/// Why a model with this version of a domain's opset cannot be imported; "" where it can.
std::string opsetProblem(llvm::StringRef domain, int64_t version);

/// The row for an operator of `version` of its domain's opset, or null.
const OpRow *findOp(llvm::StringRef domain, llvm::StringRef type, int64_t version);
/// Does any version of the operator have a row? (For the error if only the version is unsupported.)
bool knowsOp(llvm::StringRef domain, llvm::StringRef type);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_REGISTRY_H
