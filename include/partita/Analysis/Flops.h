//===- Flops.h - how much a program computes ----------------------------------------*- C++ -*-===//
//
// For reports and the speed of a run, of a forward program on full tensors. Of a primitive the
// rule alone says all; attention makes two matmuls, of its queries with the keys and of the scores
// with the values, all of them, masked or not. Work.h is for schedules: an estimate of one op of
// any phase, and of its memory.
//
// Model FLOPs of a step are the forward program's matmuls and those of the backward pass: for each
// as many as operands have a gradient that a trained parameter needs, two where both do, which
// makes three in all; none for frozen parameters and the model's inputs. What is recomputed counts
// for nothing.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_FLOPS_H
#define PARTITA_ANALYSIS_FLOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace partita {

/// Floating-point operations of a program on full tensors, from the ops' rules.
struct Flops {
  double products = 0;    ///< of contractions: a multiplication and an addition per point
  double elementwise = 0; ///< one per element of what elementwise ops and reductions read
};

/// Of all ops within `root`, as often as they stand there.
Flops countFlops(mlir::Operation *root);

/// One layer, or what stands in front of the first one or behind the last one, or beside the loop
/// over micro-batches (analysis::Place).
struct LayerWork {
  int64_t place = 0;
  Flops forward;          ///< of all micro-batches of a step, all ranks
  double backward = 0;    ///< matmuls of the backward pass
  int64_t parameters = 0; ///< elements of those that are read here first
};

/// Of a function whose ops say where they belong (`mark-layers`), in order of the
/// places.
std::vector<LayerWork> workByLayer(mlir::func::FuncOp function);

/// On a module: what `note-flops` found of its training step, or, without one, of @forward.
inline constexpr llvm::StringLiteral kNotedWork = "train.work";
mlir::ArrayAttr noteWork(mlir::MLIRContext *context, llvm::ArrayRef<LayerWork> work);
std::vector<LayerWork> notedWork(mlir::ModuleOp module);

/// Forward and backward pass of a training step; 0 where nothing was noted.
double modelFlops(llvm::ArrayRef<LayerWork> work);
inline constexpr llvm::StringLiteral kModelFlopsFormula =
    "matmuls and attention (without its mask) of the forward program, times 3, less those "
    "for gradients that nothing trained needs";

llvm::json::Array workToJson(llvm::ArrayRef<LayerWork> work);
std::vector<LayerWork> workFromJson(const llvm::json::Array &places);

} // namespace partita

#endif // PARTITA_ANALYSIS_FLOPS_H
