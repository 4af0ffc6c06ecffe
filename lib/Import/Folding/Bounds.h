//===- Bounds.h - bounds of integers of the program -------------------------------------------===//
//
// Exporters write x[arange(n), j] as rows i k + j of x with its first two dimensions merged. That is
// equivalent only if all j are in 0 .. k-1, like the results of an ArgMax, a remainder or a clamp:
// bounds of values follow from the ops that computed them.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_FOLDING_BOUNDS_H
#define PARTITA_LIB_IMPORT_FOLDING_BOUNDS_H

#include "mlir/IR/Operation.h"

namespace partita::importer {

/// Are all integers of the value at least 0 and below `size`, whatever the model's inputs are?
bool isWithin(mlir::Value value, int64_t size);
/// Does the op keep its operand's numbers if they fit into 31 bits: does it only change the shape or the
/// integer type?
bool keepsIntegers(mlir::Operation *op);
/// If the value's elements are divided into `count` equal runs, are they all 0 in the first run, `step`
/// in the second, 2 `step` in the third, and so on?
bool countsUp(mlir::Value value, int64_t count, int64_t step);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_FOLDING_BOUNDS_H
