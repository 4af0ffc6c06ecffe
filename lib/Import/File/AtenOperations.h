//===- AtenOperations.h - what is known of PyTorch's operations ---------------------*- C++ -*-===//
//
// A dynamo export's record names operations of PyTorch: those that a folded tensor was computed by,
// and those that nodes were made for. This table says what each does to a parameter.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FILE_ATENOPERATIONS_H
#define PARTITA_LIB_IMPORT_FILE_ATENOPERATIONS_H

#include "llvm/ADT/StringRef.h"

namespace partita::importer {

/// What the decomposition of an operation does to a parameter before one of its nodes reads it.
enum class Decomposed {
  Unknown,    ///< it may compute
  Moved,      ///< moves elements
  Transposed, ///< of a linear layer's weight
  Vector,     ///< adds dimensions of size 1 to a vector
  Padded      ///< perhaps adds leading dimensions of size 1
};

struct AtenOperation {
  enum Effect {
    Computes,
    Creates, ///< its result has literals, whatever its operands are
    Moves,   ///< its result has elements of its operand, each at most once
    Copies,  ///< moves all; the program reads its constants through it
    Joins,   ///< its result has elements of its operands, of each operand each at most once
    LooksUp, ///< its result has the rows of a table that indices name
    Shifts,  ///< adds or subtracts
    Scales   ///< multiplies or divides
  };
  /// A node of its decomposition that reads a parameter, as this operand (-1: as any).
  struct Reader {
    llvm::StringRef op;
    int operand = -1;
    Decomposed how = Decomposed::Unknown;
  };

  bool movesElements() const { return effect == Moves || effect == Copies || effect == Joins; }
  /// Is its result its operand if the other one is the number 0, or 1?
  bool hasNeutralNumber() const { return effect == Shifts || effect == Scales; }

  /// This row, of an operation whose operand has at least and at most so many dimensions more than its
  /// result.
  constexpr AtenOperation dropping(int least, int most) const {
    AtenOperation row = *this;
    row.leastDropped = least;
    row.mostDropped = most;
    return row;
  }

  /// This row, of an operation that may change the type.
  constexpr AtenOperation casting() const {
    AtenOperation row = *this;
    row.casts = true;
    return row;
  }

  llvm::StringRef name;
  Effect effect = Computes;
  bool keepsOrder = false; ///< each argument is an operand of one node, in the same order
  Reader readers[2] = {};
  /// The node of its decomposition to which it gives ones and zeros: for a scale and a bias that the call
  /// has as None or, where the nodes are not in the order of the arguments, always.
  llvm::StringRef takesNumbers = {};
  bool casts = false;                    ///< to another type, perhaps
  int leastDropped = 0, mostDropped = 0; ///< dimensions; of its operand but not of its result
};

/// The most dimensions that a tensor of PyTorch has.
constexpr int mostDimensions = 64;

/// The row of an operation, by its name without overload. Unknown operations compute.
const AtenOperation &atenOperation(llvm::StringRef name);
/// That of the operation which a traced value is named after: "add" of "add_3".
const AtenOperation &operationMaking(llvm::StringRef value);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FILE_ATENOPERATIONS_H
