//===- Bounds.h - what can be said of integers of the program ---------------------------------===//
//
// Exporters write x[arange(n), j] as rows i k + j of x with its first two dimensions as one. That
// means the same only where all j are in 0 .. k-1, as those are that an ArgMax, a remainder or a
// clamp has made: bounds of values follow from the ops that made them.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_BOUNDS_H
#define PARTITA_LIB_IMPORT_BOUNDS_H

#include "mlir/IR/Operation.h"

namespace partita::importer {

/// Are all integers of the value at least 0 and below `size`, whatever the model's inputs are?
bool isWithin(mlir::Value value, int64_t size);
/// Has the op its operand's numbers, where these are integers of 31 bits: another shape, or another
/// integer type?
bool keepsIntegers(mlir::Operation *op);
/// Is the value, cut into `count` equal runs of elements, 0 in all of the first, `step` in all of
/// the second, 2 `step` in all of the third...?
bool countsUp(mlir::Value value, int64_t count, int64_t step);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_BOUNDS_H
