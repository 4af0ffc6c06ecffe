//===- Provenance.h - where an op comes from ----------------------------------------*- C++ -*-===//
//
// The layer of the model that an op belongs to, whether differentiation built it, what made a
// collective necessary: facts by which passes decide, and which nothing else in an op says; and the
// name of its node in the model file, by which programs and reports call it. Between passes they are
// discardable attributes of the op, so that text keeps them, with debug locations or without.
//
// What a pass builds has the provenance of what it is built from, and only the pass knows what that
// is. It says so already: by the location that it gives the new op, fused where there are several
// sources. So while a pass runs, locations carry the facts, and a pass has nothing else to do;
// around each pass `carryProvenance` (partita/Phases/Provenance.h) moves them from attributes into
// locations and back.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_INTERFACES_PROVENANCE_H
#define PARTITA_DIALECTS_INTERFACES_PROVENANCE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace partita::provenance {

/// #train.layer: the layer of the model. Of several sources the first one's counts.
inline constexpr llvm::StringLiteral kLayer = "train.layer";
/// unit: differentiation built it. Holds if it does for one of the sources.
inline constexpr llvm::StringLiteral kBackward = "train.backward";
/// Array of #par.cause: what made a conjugate or a move necessary. Of several sources all, each once.
inline constexpr llvm::StringLiteral kCauses = "par.causes";
/// String: the node's name, for people; nothing is decided by it. Of several sources the first one's.
inline constexpr llvm::StringLiteral kName = "train.name";
/// Array of strings: the names of the arguments of an op's regions, one region after the other, "" for
/// those without.
inline constexpr llvm::StringLiteral kArgumentNames = "train.argument_names";

/// One fact of an op, null where it has none. Within a pass that of its location counts, which the
/// pass may have just given to it; else that of its attributes.
mlir::Attribute get(mlir::Operation *op, llvm::StringRef fact);
/// One fact of a location within a pass.
mlir::Attribute get(mlir::Location loc, llvm::StringRef fact);

/// The name in a location, "" where there is none: that of the outermost NameLoc, or of the first
/// fused location that has one.
llvm::StringRef nameIn(mlir::Location loc);
/// The name of an op, "" where it has none. Within a pass that of its location counts.
llvm::StringRef nameOf(mlir::Operation *op);

/// Did differentiation build it?
bool isBackward(mlir::Operation *op);
/// Says of all ops of a block that they are of the backward pass.
void markBackward(mlir::Block &block);
/// The location of what is built for the backward pass, from an op at `loc`.
mlir::Location backward(mlir::Location loc);

/// The location with one fact more; what it said of that before is replaced.
mlir::Location with(mlir::Location loc, llvm::StringRef fact, mlir::Attribute value);
/// Gives an op one fact more, or another value of it. A parameter has facts as well, and what is made
/// at its location has them from it. Functions and terminators have none.
void set(mlir::Operation *op, llvm::StringRef fact, mlir::Attribute value);

/// An op's attributes without provenance, to tell whether two ops do the same.
mlir::DictionaryAttr attributesWithout(mlir::Operation *op);

/// Before a pass: gives locations what attributes say, of the op and all in it. With `setAside`
/// the attributes are gone until `store`: for passes that compare them, or lose them.
void load(mlir::Operation *root, bool setAside);
/// After it: gives attributes what locations say.
void store(mlir::Operation *root);
/// After the last: takes out of locations what `load` has put there, for messages and dumps.
void simplifyLocations(mlir::Operation *root);

} // namespace partita::provenance

#endif // PARTITA_DIALECTS_INTERFACES_PROVENANCE_H
