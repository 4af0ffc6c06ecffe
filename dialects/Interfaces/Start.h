//===- Start.h - builds the start of an op ------------------------------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_INTERFACES_START_H
#define PARTITA_DIALECTS_INTERFACES_START_H

#include "dialects/Interfaces/Interfaces.h"

namespace partita {

/// Builds the op's start with all attributes of the op, including those that only a plugin knows.
inline AsyncStartInterface buildStartOf(StartableInterface op, mlir::OpBuilder &builder) {
  mlir::Operation *start = op.buildStart(builder);
  start->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return llvm::cast<AsyncStartInterface>(start);
}

} // namespace partita

#endif // PARTITA_DIALECTS_INTERFACES_START_H
