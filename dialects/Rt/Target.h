//===- Target.h - the hardware that a program runs on -------------------------------*- C++ -*-===//
//
// A Target answers everything that differs between targets; no other code compares their names. A
// target has a file here (Targets/), one that writes its programs (lib/Emit/Targets), and a folder
// of the runtime. A pass asks what a target can do, never which one it is.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_RT_TARGET_H
#define PARTITA_DIALECTS_RT_TARGET_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "runtime/include/partita_rt/exact_steps.h"
#include "runtime/include/partita_rt/workspaces.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <string>

namespace partita::rt {

struct CallArgument;

/// The sizes of a classifier (tx.classifier_loss) on one rank.
struct ClassifierSizes {
  /// Returns those of a tx.classifier_loss or tx.classifier_loss_grad, with its RtDialect::kRows and the RtDialect::kPaddedRows of the
  /// parameter that it reads.
  static ClassifierSizes of(mlir::Operation *op);

  int64_t tokens, vocabulary, width; ///< x is [tokens, width], w is [vocabulary, width]
  mlir::Type xElement, wElement;
  mlir::Type gradientElement; ///< of w's gradient, where it is computed
  int64_t padded = 0;         ///< rows of w in memory, if there are zeros behind the vocabulary's
  int64_t rows = 0;           ///< tokens at once; 0: the target chooses

  int64_t inMemory() const { return padded ? padded : vocabulary; }
};

/// How a classifier's loss or gradients are computed, and the memory that this takes.
struct ClassifierWork {
  /// The tokens whose logits exist at once, and how many of these: as the kernel takes them
  /// (partita_rt/kernels.h).
  std::array<int64_t, 2> block;
  int64_t floatsPerToken; ///< of the block: logits, their cotangents, a 16-bit dx
  int64_t weightSums = 0; ///< floats in which several blocks of tokens add up a 16-bit dw

  int64_t tokens() const { return block[0]; }
  int64_t workspaceFloats() const { return tokens() * floatsPerToken + weightSums; }
};

class Target {
public:
  virtual ~Target() = default;

  /// Returns the target of the module that `op` is in (RtDialect::kTarget); the CPU if it names
  /// none.
  static const Target &of(mlir::Operation *op);
  /// Returns null if there is none with this name.
  static const Target *find(llvm::StringRef name);
  /// Returns all targets, the default first.
  static llvm::ArrayRef<const Target *> all();

  virtual llvm::StringRef getName() const = 0;
  /// Returns the architectures that a program can be built for, the default among them; empty if a
  /// program is built for the machine that builds it.
  virtual llvm::ArrayRef<llvm::StringLiteral> getArchitectures() const { return {}; }
  virtual llvm::StringRef getDefaultArchitecture() const { return ""; }
  /// Returns true if ranks are processes, each with a device of its own; otherwise threads can be
  /// ranks.
  virtual bool ranksAreProcesses() const { return false; }
  /// Returns true if collectives are rings over all ranks of a group; otherwise those of each node share memory
  /// (partita_rt/node_traffic.h).
  virtual bool sendsOverRings() const { return false; }

  //===-- Its kernels -----------------------------------------------------------------------===//

  /// Returns true if there are kernels for matmuls with a GELU, its derivative, a bias gradient or
  /// an addend (tx.fused_matmul).
  virtual bool fusesMatmuls() const { return false; }
  /// Returns true if matmuls of 8-bit operands read both along the dimension that is summed over,
  /// as tx.matmul_nt does: `transpose-fp8` then transposes others.
  virtual bool multipliesRowsIn8Bits() const { return false; }
  /// Returns true if a collective only makes progress while the program polls it (rt.poll).
  virtual bool pollsCollectives() const { return true; }
  /// Returns true if work is queued, so that the host runs ahead of it. Then kernels read numbers
  /// from memory.
  virtual bool queuesWork() const { return false; }
  /// Returns true if 'partita tune' measures its matmuls.
  virtual bool tunesMatmuls() const { return false; }

  //===-- Memory ----------------------------------------------------------------------------===//

  /// Returns true if calls take scratch memory (CallInterface::getScratchBytes).
  virtual bool takesScratch() const { return false; }
  /// Returns the bytes of workspace for the matmul library.
  virtual int64_t getMatmulWorkspace() const { return 0; }
  /// Returns true if a step gets faster with more tokens at once than the target chooses by itself, so that `size-classifier` should spend
  /// memory on them.
  virtual bool gainsByClassifierRows() const { return false; }
  /// Returns the rows that a classifier's weight should have in memory, so that its matmuls are fast.
  virtual int64_t padClassifier(int64_t rows, mlir::Type) const { return rows; }
  virtual ClassifierWork getClassifierLoss(const ClassifierSizes &sizes) const = 0;
  virtual ClassifierWork getClassifierGradient(const ClassifierSizes &sizes) const = 0;
  /// Returns the floats of workspace for the backward pass of attention.
  virtual int64_t getAttentionGradWorkspace(const partita_rt::AttentionWork &work) const = 0;
  /// The same of one step of attention in a ring, for this many queries.
  virtual int64_t getAttentionStepWorkspace(int64_t queries) const = 0;

  //===-- Printing of what is in memory -----------------------------------------------------===//

  /// Returns a rank's rows of a vocabulary: `TokenRows{full, *first, rows}`; all rows if `first`
  /// is null.
  CallArgument tokenRows(int64_t full, mlir::Value first, int64_t rows) const;
  /// Returns `Indices{*first, count}`; `Indices{0, count}` if `first` is null.
  CallArgument indices(mlir::Value first, int64_t count) const;
  /// Returns `{ratio, id, *key}`.
  CallArgument dropout(const llvm::APFloat &ratio, const std::string &id, mlir::Value key) const;
  /// Returns the number of the first element of a micro-batch, or of its shard.
  CallArgument firstElement(mlir::Value micro, llvm::ArrayRef<int64_t> full,
                            mlir::Value first) const;
  /// Returns a hyperparameter: `value` as a literal or, without a value, the rank's, which the
  /// command line may change.
  CallArgument hyper(llvm::StringRef field, mlir::FloatAttr value) const;
  /// Returns rows of a table of tensors (rt.tensors): `tensorRows(kUpdates)`, or `some` of them,
  /// `tensorRows(kUpdates, 0, 12)`.
  virtual std::string tensorRows(const std::string &table, const std::string &some) const = 0;
  /// Returns whether the current update is exact (partita_rt/exact_steps.h), which the host asks: `t` is the update's number.
  virtual CallArgument exactStep(mlir::Value t, partita_rt::ExactSteps exact) const = 0;
  /// Returns a field of the values that a step reports.
  virtual CallArgument reported(llvm::StringRef field) const = 0;
  /// Returns a kernel's scalar: a number at a pointer `{}`, times a factor.
  virtual std::string scalar(double factor) const = 0;
  /// Returns a kernel's scalar: a field of the rank's hyperparameters.
  virtual std::string hyperparameter(llvm::StringRef field) const = 0;
  /// Returns a kernel's scalar: the key of stochastic rounding, from these arguments.
  virtual std::string roundingKey(const std::string &arguments) const = 0;

protected:
  /// Returns a number at a pointer as an argument: `*{}`, or the pointer.
  virtual llvm::StringRef number() const = 0;
  /// Returns the type of an aggregate with such a number: `Indices`, or `IndicesAt`.
  virtual std::string holder(llvm::StringRef type) const = 0;
  virtual std::string elementNumber(int64_t elements, bool hasFirst) const = 0;
};

/// An initializer, {10, 0}, as the text of a CallArgument has it: with the opening brace twice.
std::string stepsText(partita_rt::ExactSteps exact);

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_TARGET_H
