//===- Flops.h - counts a program's floating-point operations -----------------------*- C++ -*-===//
//
// FLOPs of an op, from its rule and its matmuls (ShardInterface); attention counts as two, of queries
// with keys and of scores with values, masked or not. Of a forward program on full tensors they are for
// reports and a run's speed; of one rank's shards for schedules, together with memory (Work.h).
//
// Model FLOPs of a step are the matmuls of the forward program and of the backward pass. In the
// backward pass a matmul has one counterpart for each operand with a gradient that a trained
// parameter needs: usually two, three matmuls in all; none for frozen parameters and the model's
// inputs. Recomputation does not count.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_FLOPS_H
#define PARTITA_ANALYSIS_FLOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace partita {

/// Floating-point operations.
struct Flops {
  double matmuls = 0;     ///< of contractions: a multiplication and an addition per point
  double elementwise = 0; ///< one per element that elementwise ops and reductions read
};

/// Whose: the whole program's, or one rank's.
enum class FlopsOf { FullTensors, Shards };
/// Of one op, without its regions.
Flops flopsOf(mlir::Operation *op, FlopsOf whose);
/// Of all ops within `root` on full tensors, each counted once.
Flops countFlops(mlir::Operation *root);

/// One layer, or the ops before the first one, after the last one, or outside the loop over
/// micro-batches (analysis::Place).
struct LayerWork {
  int64_t place = 0;
  Flops forward;          ///< of all micro-batches of a step, all ranks
  double backward = 0;    ///< matmuls of the backward pass
  int64_t parameters = 0; ///< elements of the parameters that are read here first
};

/// Returns the work of a function whose ops have layers (`mark-layers`), ordered by place.
std::vector<LayerWork> workByLayer(mlir::func::FuncOp function);

/// Returns the number of layers among these places.
int64_t countLayers(llvm::ArrayRef<LayerWork> work);

/// Set and read the module's train.work.
void noteWork(mlir::ModuleOp module, llvm::ArrayRef<LayerWork> work);
std::vector<LayerWork> notedWork(mlir::ModuleOp module);

/// Returns the model FLOPs of a training step's forward and backward passes; 0 if there is no
/// record.
double modelFlops(llvm::ArrayRef<LayerWork> work);
inline constexpr llvm::StringLiteral kModelFlopsFormula =
    "matmuls and attention (without its mask) of the forward program, times 3, less those "
    "for gradients that nothing trained needs";

llvm::json::Array workToJson(llvm::ArrayRef<LayerWork> work);
std::vector<LayerWork> workFromJson(const llvm::json::Array &places);

} // namespace partita

#endif // PARTITA_ANALYSIS_FLOPS_H
