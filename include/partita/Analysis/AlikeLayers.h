//===- AlikeLayers.h - layers that cost the same --------------------------------------*- C++ -*-===//

#ifndef PARTITA_ANALYSIS_ALIKELAYERS_H
#define PARTITA_ANALYSIS_ALIKELAYERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <vector>

namespace partita::analysis {

/// Returns the kind of each of the function's `count` layers (train.layer), in ascending order. A
/// layer is of the kind of the one before if
///
///   - it has the same ops in the same order, with the same types and attributes. Names and the
///     numbers of dropouts do not count, and parameters of its own need only be alike.
///   - its ops read the same: values of the same op of a layer as far back, or the very same value
///     from outside all layers; and are read by the same ops of a layer as far ahead.
///   - as many values of the same types pass from the layer before, and to the layer after.
///
/// So wherever the program is cut, a stage of layers of some kinds has what another one of the same
/// kinds has. The first and the last layer are of kinds of their own: their stages have ends that
/// no other stage has.
std::vector<int64_t> kindsOfLayers(mlir::func::FuncOp function, int64_t count);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_ALIKELAYERS_H
