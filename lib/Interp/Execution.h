//===- Execution.h - one call of a function, and the tables of kernels --------------*- C++ -*-===//

#ifndef PARTITA_LIB_INTERP_EXECUTION_H
#define PARTITA_LIB_INTERP_EXECUTION_H

#include "dialects/Interfaces/Interfaces.h"
#include "lib/Interp/PlacedMemory.h"
#include "partita/Interp/Interpreter.h"
#include "llvm/ADT/StringMap.h"
#include <functional>

namespace partita::interp {

using Inputs = llvm::ArrayRef<const Tensor *>;
using Outputs = llvm::MutableArrayRef<Tensor>;

/// The last op of `block` that uses the value, itself or in a region of it; null when none does.
mlir::Operation *lastUse(mlir::Block &block, mlir::Value value);

/// Runs the ops of a function on all ranks.
class Execution {
public:
  explicit Execution(Interpreter &interpreter, int depth = 0)
      : interpreter(interpreter), depth(depth) {}

  /// Runs a block with these arguments; the terminator's operands are the result.
  mlir::FailureOr<llvm::SmallVector<RankTensors>> run(mlir::Block &block,
                                                      llvm::ArrayRef<RankTensors> arguments);

  Interpreter &interpreter;
  int depth; // of calls
  /// Rank 0's memory, where the module has a plan of it; null otherwise, and in called functions.
  std::unique_ptr<PlacedMemory> memory;
  /// In the last slot of a pass: what has `train.last` runs there alone.
  bool inLastSlot = false;
  /// Values of the frames that are being run; regions see those around them.
  llvm::DenseMap<mlir::Value, RankTensors> values;

  par::MeshAttr mesh() const { return interpreter.mesh(); }
  int64_t rankCount() const { return mesh().rankCount(); }
  Stored *find(llvm::StringRef symbol);
  void write(llvm::StringRef symbol, Stored stored) {
    interpreter.written[symbol.str()] = std::move(stored);
  }
  /// Does what the op stores lose its precision? Within a fusion its results alone are stored.
  bool rounds(mlir::Operation *op) const;
  mlir::LogicalResult recordGradient(mlir::Operation *op, llvm::StringRef parameter,
                                     mlir::Value gradient);
  /// Of a program of one rank.
  void recordUpdate(mlir::Operation *op, llvm::StringRef parameter,
                    llvm::ArrayRef<RankTensors> operands);

private:
  mlir::LogicalResult run(mlir::Operation *op);
};

/// An op on one rank; the outputs are zeros of their types' shapes.
using LocalKernel = std::function<mlir::LogicalResult(mlir::Operation *, Inputs, Outputs)>;
/// An op that sees all ranks.
using RankKernel =
    std::function<mlir::LogicalResult(Execution &, mlir::Operation *, llvm::ArrayRef<RankTensors>,
                                      llvm::MutableArrayRef<RankTensors>)>;

/// The ops that the interpreter knows; elementwise ops answer for themselves (ScalarInterface).
struct KernelTable {
  llvm::StringMap<LocalKernel> local;
  llvm::StringMap<RankKernel> ranks;
  /// Of starts that work in their operands: from what these are to what the wait yields.
  llvm::StringMap<RankKernel> completions;

  template <typename Op, typename F> void add(F kernel) {
    local[Op::getOperationName()] = [kernel](mlir::Operation *op, Inputs in, Outputs out) {
      return kernel(mlir::cast<Op>(op), in, out);
    };
  }
  template <typename Op, typename F> void addRanks(F kernel) {
    ranks[Op::getOperationName()] = onRanks<Op>(kernel);
  }
  /// The kernel runs at the wait; until then the operands stay what they are.
  template <typename Op, typename F> void addInPlaceStart(F kernel) {
    completions[Op::getOperationName()] = onRanks<Op>(kernel);
    ranks[Op::getOperationName()] = [](Execution &, mlir::Operation *, llvm::ArrayRef<RankTensors>,
                                       llvm::MutableArrayRef<RankTensors>) {
      return mlir::success();
    };
  }
  static const KernelTable &get();

private:
  template <typename Op, typename F> static RankKernel onRanks(F kernel) {
    return [kernel](Execution &execution, mlir::Operation *op, llvm::ArrayRef<RankTensors> in,
                    llvm::MutableArrayRef<RankTensors> out) {
      return kernel(execution, mlir::cast<Op>(op), in, out);
    };
  }
};

/// The kernel of every wait: what its start has filled, or makes of the operands that it works in.
mlir::LogicalResult complete(Execution &execution, AsyncWaitInterface wait,
                             llvm::ArrayRef<RankTensors> in,
                             llvm::MutableArrayRef<RankTensors> out);

// One function per file of kernels.
void addStructureKernels(KernelTable &table);
void addMatmulKernels(KernelTable &table);
void addRowKernels(KernelTable &table);
void addAttentionKernels(KernelTable &table);
void addAttentionStepKernels(KernelTable &table);
void addRotaryKernels(KernelTable &table);
void addEmbeddingKernels(KernelTable &table);
void addDropoutKernels(KernelTable &table);
void addTrainKernels(KernelTable &table);
void addUpdateKernels(KernelTable &table);
void addLossScaleKernels(KernelTable &table);
void addFp8Kernels(KernelTable &table);
void addBlockwiseKernels(KernelTable &table);
void addChunkKernels(KernelTable &table);
void addParKernels(KernelTable &table);
void addZeroKernels(KernelTable &table);
void addOffloadKernels(KernelTable &table);
void addPipeKernels(KernelTable &table);

/// Calls kernel(inputs, outputs) for one of the ranks that hold the same operands, and lets them
/// share what it appends to `outputs`.
template <typename F>
mlir::LogicalResult onDistinctRanks(llvm::ArrayRef<RankTensors> in,
                                    llvm::MutableArrayRef<RankTensors> out, int64_t ranks,
                                    F kernel) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t other = 0;
    while (other < rank &&
           llvm::any_of(in, [&](const RankTensors &o) { return o[other] != o[rank]; }))
      ++other;
    if (other < rank) {
      for (RankTensors &result : out)
        result.push_back(result[other]);
      continue;
    }
    llvm::SmallVector<const Tensor *> inputs;
    llvm::SmallVector<Tensor> outputs;
    for (const RankTensors &operand : in)
      inputs.push_back(operand[rank].get());
    if (failed(kernel(inputs, outputs)))
      return mlir::failure();
    for (auto [result, tensor] : llvm::zip(out, outputs))
      result.push_back(std::make_shared<Tensor>(std::move(tensor)));
  }
  return mlir::success();
}

/// The results of an optimizer op (train::OptimizerInterface) on one rank.
llvm::SmallVector<Tensor> evaluateUpdate(mlir::Operation *op, Inputs inputs);
/// An elementwise op by its scalar expression.
mlir::LogicalResult evaluateElementwise(mlir::Operation *op, Inputs in, Outputs out);
/// tx.cast, which rounds when asked to.
mlir::LogicalResult evaluateCast(mlir::Operation *op, bool round, const Tensor &in, Tensor &out);
/// `value` rounded to the nearest number of a floating-point type, ties to even.
double roundTo(mlir::FloatType type, double value);

/// c [m, n] += a [m, k] b [k, n].
void multiplyAdd(const double *a, const double *b, double *c, int64_t m, int64_t k, int64_t n);
/// [m, n] -> [n, m].
std::vector<double> transposed(const double *a, int64_t m, int64_t n);

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_EXECUTION_H
