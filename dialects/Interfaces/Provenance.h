//===- Provenance.h - where an op comes from ----------------------------------------*- C++ -*-===//
//
// An op's facts are the layer of the model that it belongs to, whether differentiation built it,
// and what made a collective necessary. Passes decide by these, and nothing else in an op has them.
// The name of the op's node in the model file is for programs and reports. Between passes all are
// discardable attributes of the op, so textual IR keeps them with or without debug locations.
//
// A new op has the provenance of the ops that it is built from, which only the pass knows. Passes
// state it anyway, by the location of the new op, which is fused if there are several sources. So
// while a pass runs, locations carry the facts, and the pass need not do anything else: around each
// pass `carryProvenance` (partita/Phases/Provenance.h) moves them from attributes into locations
// and back.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_INTERFACES_PROVENANCE_H
#define PARTITA_DIALECTS_INTERFACES_PROVENANCE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace partita::provenance {

/// #train.layer: the layer of the model. If there are several sources, the first one's.
inline constexpr llvm::StringLiteral kLayer = "train.layer";
/// unit: differentiation built the op, or one of its sources.
inline constexpr llvm::StringLiteral kBackward = "train.backward";
/// Array of #par.cause: what made a conjugate or a move necessary. The causes of all sources, each
/// once.
inline constexpr llvm::StringLiteral kCauses = "par.causes";
/// String: the node's name, for people; nothing depends on it. The first source's.
inline constexpr llvm::StringLiteral kName = "train.name";
/// Array of strings: the names of the arguments of an op's regions, one region after the other, ""
/// for those without a name.
inline constexpr llvm::StringLiteral kArgumentNames = "train.argument_names";

/// Returns one fact of an op, or null: within a pass its location's, which the pass may have just
/// set, else its attributes'.
mlir::Attribute get(mlir::Operation *op, llvm::StringRef fact);
/// Returns one fact of a location within a pass.
mlir::Attribute get(mlir::Location loc, llvm::StringRef fact);

/// Returns the name in a location, or "": that of the outermost NameLoc, or of the first fused
/// location that has one.
llvm::StringRef nameIn(mlir::Location loc);
/// Returns the name of an op, or ""; within a pass, its location's.
llvm::StringRef nameOf(mlir::Operation *op);

/// Returns true if differentiation built the op.
bool isBackward(mlir::Operation *op);
/// Marks all ops of a block as ops of the backward pass.
void markBackward(mlir::Block &block);
/// Returns the location of an op of the backward pass that is built from an op at `loc`.
mlir::Location backward(mlir::Location loc);

/// Returns the location with one more fact, which replaces an earlier value.
mlir::Location with(mlir::Location loc, llvm::StringRef fact, mlir::Attribute value);
/// Sets a fact of an op. A parameter has facts, too, which ops built at its location inherit.
/// Functions and terminators have none.
void set(mlir::Operation *op, llvm::StringRef fact, mlir::Attribute value);

/// Returns an op's attributes without provenance, to tell whether two ops do the same.
mlir::DictionaryAttr attributesWithout(mlir::Operation *op);

/// Before a pass: copies the attributes of the op, and of all ops in it, to locations. With
/// `setAside` the attributes are removed until `store`, for passes that compare or lose them.
void load(mlir::Operation *root, bool setAside);
/// After a pass: sets the attributes from the locations.
void store(mlir::Operation *root);
/// After the last pass: removes from locations what `load` added, for messages and dumps.
void simplifyLocations(mlir::Operation *root);

} // namespace partita::provenance

#endif // PARTITA_DIALECTS_INTERFACES_PROVENANCE_H
