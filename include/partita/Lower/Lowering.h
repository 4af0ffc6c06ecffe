//===- Lowering.h - the context in which a kernel is lowered ------------------------*- C++ -*-===//
//
// One Lowering per function: it knows where every tensor is (from `plan-memory`) and provides the
// pointers. The ops' models (KernelInterface, one file per theme) use it to build `rt` ops.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LOWER_LOWERING_H
#define PARTITA_LOWER_LOWERING_H

#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "partita/Lower/Naming.h"
#include "llvm/ADT/StringSet.h"
#include <map>

namespace partita::train {
class AccumulateOp;
}

namespace partita::rt {

/// The max number of dimensions of the runtime's shapes.
constexpr int64_t kMaxDims = 8;

/// State that all functions of a module share.
struct ModuleLowering {
  mlir::ModuleOp module;
  llvm::StringMap<int> parameterIndex;
  llvm::StringMap<int> stateIndex; // of those that belong to a parameter
  /// The program's input that an argument of a function is.
  llvm::DenseMap<mlir::Value, int64_t> inputIndex;
  std::optional<double> learningRate;
  /// The hyperparameters that the rank's table carries, by their fields there (hyperField).
  std::map<std::string, double> hyper;
  std::string lrSchedule;                            ///< as text
  llvm::SmallVector<CommunicatorAttr> communicators; ///< the program's rows
  /// Kernels by their text, so that equal ones are created once.
  llvm::StringMap<mlir::FlatSymbolRefAttr> kernels;
  llvm::StringSet<> kernelNames;

  /// Returns the kernel with this text, created if it is missing. `name` is a suggestion.
  mlir::FlatSymbolRefAttr kernel(mlir::Operation *candidate, llvm::StringRef name);
  /// Returns an op's hyperparameter; null if the rank's table has the same value, so that the
  /// command line can change it.
  mlir::FloatAttr unlessShared(llvm::StringRef name, mlir::FloatAttr value) const;
};

/// Returns the field of the rank's table (program.h: Hyper) from which an op's hyperparameter
/// `name` is read; "" if it is always the op's own.
llvm::StringRef hyperField(llvm::StringRef name);

class Lowering {
public:
  Lowering(ModuleLowering &shared, mlir::func::FuncOp function, mlir::OpBuilder &builder);

  ModuleLowering &shared;
  mlir::OpBuilder &builder;
  mlir::Operation *op = nullptr; // being lowered
  Naming naming;

  /// Moves on to the next op.
  void begin(mlir::Operation *next) { op = next; }

  template <typename Op, typename... Args> Op create(Args &&...args) {
    return Op::create(builder, op->getLoc(), std::forward<Args>(args)...);
  }

  mlir::RankedTensorType type(mlir::Value tensor) const {
    return llvm::cast<mlir::RankedTensorType>(tensor.getType());
  }
  int64_t elements(mlir::Value tensor) const { return type(tensor).getNumElements(); }
  /// Return a tensor's place and layout.
  AtAttr at(mlir::Value tensor) const;
  View view(mlir::Value tensor) const;
  bool hasMemory(mlir::Value tensor) const { return at(tensor).getSpace() != Space::None; }
  /// Returns true if both have the same place and layout.
  bool samePlace(mlir::Value a, mlir::Value b) const;
  /// Returns a splat constant's value, if it has no memory.
  mlir::TypedAttr literal(mlir::Value tensor) const;

  /// Returns the pointer to a tensor's first element, named after it.
  mlir::Value buffer(mlir::Value tensor);
  mlir::Value operand(unsigned i) { return buffer(op->getOperand(i)); }
  mlir::Value result(unsigned i) { return buffer(op->getResult(i)); }
  /// Returns null for an unused result without memory.
  mlir::Value resultOrNull(unsigned i) {
    return hasMemory(op->getResult(i)) ? result(i) : mlir::Value();
  }
  /// The same, but rt.null, so that a layer without the result can share a function with others.
  mlir::Value resultOrAbsent(unsigned i) {
    mlir::Value result = resultOrNull(i);
    return result ? result
                  : create<NullOp>(BufferType::get(builder.getContext(),
                                                   type(op->getResult(i)).getElementType()))
                        .getBuffer();
  }
  /// Returns a pointer to a place without a tensor.
  mlir::Value pointer(AtAttr at, mlir::Type element, llvm::ArrayRef<int64_t> shape,
                      llvm::StringRef name);
  /// Returns the op's scratch memory, from float number `first` on.
  mlir::Value scratch(int64_t first = 0, llvm::StringRef name = "scratch");

  /// Returns the buffers in which a sum over ranks is computed, with the operands' values in them.
  llvm::SmallVector<mlir::Value> summed();

  /// Copies a tensor to a pointer, in the tensor's shape, into dense memory or `to`'s layout.
  void copy(mlir::Value destination, const View &to, mlir::Value tensor);
  /// Casts the elements at one pointer to another, with the kernel of a cast.
  void convert(mlir::Value destination, mlir::Value source, int64_t elements);

  /// Enters a region of a loop over micro-batches: arguments are in batches, in running sums, or
  /// where earlier regions have them. leaveLoop forgets the loop's pointers.
  void enterLoop(train::AccumulateOp loop, mlir::Region &region, mlir::Value micro);
  void leaveLoop();
  /// Returns the number of the micro-batch in a region of a loop with an order; null elsewhere.
  mlir::Value microBatch() const { return micro; }

  /// Returns a name for another value, unique in the function.
  std::string uniqueName(llvm::StringRef wish);
  /// Returns the variable by which an AsyncStartInterface is waited for; "" for any other op.
  std::string pendingOf(mlir::Operation *start);
  /// Sets it to a variable that is declared already.
  void setPending(mlir::Operation *start, llvm::StringRef variable) {
    pending[start] = variable.str();
  }

private:
  std::string nameOf(mlir::Value tensor);
  /// Returns an argument of a later region as the region that saves it has it; null for
  /// micro-batches and other values.
  mlir::Value savedAs(mlir::Value tensor) const;
  mlir::Location named(llvm::StringRef name);

  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers;
  std::vector<llvm::DenseMap<mlir::Value, mlir::Value>> outer;
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>>
      microBatches;                              // argument -> (batch, micro)
  llvm::DenseMap<mlir::Value, mlir::Value> sums; // argument -> running sum
  InFlightAttr inFlight;                         // of the loop; null outside a loop with an order
  llvm::StringMap<unsigned> names;
  llvm::DenseMap<mlir::Operation *, std::string> pending; // by start
  mlir::Value micro;
};

/// The number of a mesh axis; an error if the mesh has no such axis.
mlir::FailureOr<int64_t> axisOf(mlir::Operation *op, llvm::StringRef axis);

/// The name of a collective's communicator; an error if the mesh lacks its axis.
mlir::FailureOr<std::string> communicatorOf(mlir::Operation *op);

/// Lowers any AsyncWaitInterface: the wait, and copies of buffers whose results have another place.
mlir::LogicalResult lowerWait(mlir::Operation *op, Lowering &lowering);

/// Attaches KernelInterface to the ops of `tx`, `train`, `par`, `zero` and `offload`.
void registerKernelModels(mlir::DialectRegistry &registry);

/// Attach the kernels of one theme each.
void attachGemmKernels(mlir::MLIRContext *context);
void attachFusedMatmuls(mlir::MLIRContext *context);
void attachElementwiseKernels(mlir::MLIRContext *context);
void attachRowKernels(mlir::MLIRContext *context);
void attachScaledMatmuls(mlir::MLIRContext *context);
void attachAttentionKernels(mlir::MLIRContext *context);
void attachDropoutKernels(mlir::MLIRContext *context);
void attachTokenKernels(mlir::MLIRContext *context);
void attachMovementKernels(mlir::MLIRContext *context);
void attachReductionKernels(mlir::MLIRContext *context);
void attachCollectives(mlir::MLIRContext *context);
void attachOneBitSums(mlir::MLIRContext *context);
void attachShards(mlir::MLIRContext *context);
void attachTransfers(mlir::MLIRContext *context);
void attachMessages(mlir::MLIRContext *context);
void attachUpdates(mlir::MLIRContext *context);
void attachLossScale(mlir::MLIRContext *context);
void attachQuantization(mlir::MLIRContext *context);
void attachInitialValues(mlir::MLIRContext *context);

} // namespace partita::rt

#endif // PARTITA_LOWER_LOWERING_H
