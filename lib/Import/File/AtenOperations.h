//===- AtenOperations.h - what is known of PyTorch's operations ---------------------*- C++ -*-===//
//
// A dynamo export's record names operations of PyTorch: those that a folded tensor was computed by,
// and those that nodes were made for. What follows from each for a parameter is one table.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_ATENOPERATIONS_H
#define PARTITA_LIB_IMPORT_ATENOPERATIONS_H

#include "llvm/ADT/StringRef.h"

namespace partita::importer {

/// What the decomposition of an operation does to a parameter before one of its nodes reads it.
enum class Decomposed {
  Unknown,    ///< it may compute
  Moved,      ///< moves elements
  Transposed, ///< of a linear layer's weight
  Vector      ///< adds dimensions of size 1 to a vector
};

struct AtenOperation {
  enum Effect {
    Computes,
    Moves,  ///< hands elements on, none of them twice
    Joins,  ///< hands the elements of its operands on, none of one operand twice
    LooksUp, ///< hands rows of a table on, whichever the indices name
    Shifts   ///< adds or subtracts
  };
  /// A node of its decomposition, and the operand that was a parameter; any: -1.
  struct Reader {
    llvm::StringRef op;
    int operand = -1;
    Decomposed how = Decomposed::Unknown;
  };

  bool movesElements() const { return effect == Moves || effect == Joins; }

  llvm::StringRef name;
  Effect effect = Computes;
  bool keepsOrder = false; ///< each argument is an operand of one node, in the same order
  Reader readers[2] = {};
};

/// The row of an operation, by its name without overload. What is not known computes.
const AtenOperation &atenOperation(llvm::StringRef name);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_ATENOPERATIONS_H
