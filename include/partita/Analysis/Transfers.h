//===- Transfers.h - counts what moves between device and host ----------------------*- C++ -*-===//

#ifndef PARTITA_ANALYSIS_TRANSFERS_H
#define PARTITA_ANALYSIS_TRANSFERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::analysis {

/// Bytes that a rank copies in one call of a function; the runtime counts the same.
struct Transfers {
  int64_t toHost = 0, toDevice = 0;

  /// Counts, for a function before phase `lower`, its copies and what updates on the host move tile
  /// by tile: the gradient, and in both directions a value that is on the device.
  static Transfers of(mlir::func::FuncOp function);
};

/// Returns how often an op runs in one call of its function.
int64_t timesOf(mlir::Operation *op);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_TRANSFERS_H
