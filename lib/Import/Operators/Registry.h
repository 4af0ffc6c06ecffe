//===- Registry.h - one row per ONNX operator -------------------------------------------------===//
//
// Operators' handlers are grouped into files, each of which ends in a table of rows; the registry is the
// union of these tables. Adding a spelling is adding a row. What is true of an operator whatever its
// attributes are is in its row too: Weights asks the row what uses of an initializer show.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_OPERATORS_REGISTRY_H
#define PARTITA_LIB_IMPORT_OPERATORS_REGISTRY_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <initializer_list>

namespace partita::onnx {
class NodeProto;
} // namespace partita::onnx

namespace partita::importer {

class Node;
using Handler = mlir::LogicalResult (*)(Node &node);

constexpr int64_t anyLater = INT64_MAX;

/// What an operator makes of its operands, as far as it shows which initializers are parameters.
enum class OpEffect {
  Computes,   ///< anything else
  Renames,    ///< the first operand as it is, perhaps in another type
  Reshapes,   ///< its elements in another shape or order, or repeated
  Picks,      ///< some of its elements, or all repeatedly, at places that the graph says
  LooksUp,    ///< its elements at places that another operand says
  Joins,      ///< the elements of all operands
  Negates,    ///< the negated elements of the first operand
  Maps,       ///< a function of each of its elements
  Turns,      ///< its sine or cosine
  Normalizes, ///< a softmax of its elements
  Drops,      ///< its elements, some of them scaled and the others zero
  Adds,       ///< the sum or difference of two, element by element
  Scales,     ///< the product or quotient
  Bounds,     ///< the larger or the smaller one
  Powers,     ///< the first to the power of the second
  Combines,   ///< another function of several, element by element
  Chooses,    ///< elements of the second or the third operand, as the first says
  Contracts,  ///< sums of products
  Tests,      ///< truth values
  Finds,      ///< places of elements
  Measures    ///< the shape, whatever the elements
};

struct OpRow {
  const char *type;
  const char *domain; // "" is ai.onnx
  /// Versions of the opset for which the handler is right, both ends included.
  int64_t since, until;
  Handler handler;
  OpEffect effect = OpEffect::Computes;
  /// Bits: operands that are never trained, by the operator's definition.
  uint32_t fixedOperands = 0;
  int maskOperand = -1;         ///< what an attention adds to its scores
  int biasOperand = -1;         ///< a layer's bias
  int learnedOperand = -1;      ///< always trained, by the operator's definition
  int outputDim = -1;           ///< of operand 1, a layer's weight: the dimension with its outputs
  bool inverts = false;         ///< subtracts the second operand, or divides by it
  bool distributes = false;     ///< its result is weights with sum 1, and its operand their scores
  bool keepsStatistics = false; ///< running ones, which it updates in training mode
  bool takesSequences = false;  ///< of tensors (Sequences.cpp)

  template <typename T> constexpr OpRow with(T OpRow::*member, T value) const {
    OpRow row = *this;
    row.*member = value;
    return row;
  }
  constexpr OpRow fixed(std::initializer_list<int> operands) const {
    uint32_t bits = fixedOperands;
    for (int operand : operands)
      bits |= uint32_t(1) << operand;
    return with(&OpRow::fixedOperands, bits);
  }
  constexpr OpRow masked(int operand) const { return with(&OpRow::maskOperand, operand); }
  constexpr OpRow biased(int operand) const { return with(&OpRow::biasOperand, operand); }
  constexpr OpRow learned(int operand) const { return with(&OpRow::learnedOperand, operand); }
  constexpr OpRow weighted(int dim) const { return with(&OpRow::outputDim, dim); }
  constexpr OpRow inverting() const { return with(&OpRow::inverts, true); }
  constexpr OpRow distributing() const { return with(&OpRow::distributes, true); }
  constexpr OpRow keepingStatistics() const { return with(&OpRow::keepsStatistics, true); }
  constexpr OpRow takingSequences() const { return with(&OpRow::takesSequences, true); }
  bool isSum() const { return effect == OpEffect::Adds && !inverts; }
  bool isProduct() const { return effect == OpEffect::Scales && !inverts; }
  /// Of a matrix with a layer's weight, whose rows are the layer's inputs.
  bool isMatmul() const { return outputDim == 1; }
  bool fixes(int operand) const { return operand < 32 && (fixedOperands >> operand & 1); }
};

/// The tables, each at the end of its file.
llvm::ArrayRef<OpRow> elementwiseOps();   // Elementwise.cpp
llvm::ArrayRef<OpRow> activationOps();    // Activations.cpp
llvm::ArrayRef<OpRow> logicOps();         // Logic.cpp
llvm::ArrayRef<OpRow> shapeOps();         // Shape.cpp
llvm::ArrayRef<OpRow> sliceOps();         // Slices.cpp
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
constexpr int64_t newestOpset = 28;
/// Why a model with this version of a domain's opset cannot be imported; "" where it can.
std::string opsetProblem(llvm::StringRef domain, int64_t version);

/// The row for an operator of `version` of its domain's opset, or null.
const OpRow *findOp(llvm::StringRef domain, llvm::StringRef type, int64_t version);
/// The facts about a node's operator, which no version changes; those of an unknown one if it has no row.
const OpRow &factsOf(const onnx::NodeProto &node);
inline OpEffect effectOf(const onnx::NodeProto &node) { return factsOf(node).effect; }
/// Is it a node that keeps running statistics, in training mode?
bool updatesStatistics(const onnx::NodeProto &node);
/// Does any version of the operator have a row? (For the error if only the version is unsupported.)
bool knowsOp(llvm::StringRef domain, llvm::StringRef type);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_OPERATORS_REGISTRY_H
