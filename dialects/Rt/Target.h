//===- Target.h - what a program runs on --------------------------------------------*- C++ -*-===//
//
// An object answers everything that differs between targets; no other code compares their names. A
// target has a file here (Targets/), one that writes its programs (lib/Emit/Targets), and a folder of
// the runtime. A pass asks what a target can do, never which one it is.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_RT_TARGET_H
#define PARTITA_DIALECTS_RT_TARGET_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <string>

namespace partita::rt {

struct CallArgument;

/// The sizes of a classifier (tx.classifier_loss) on one rank.
struct ClassifierSizes {
  int64_t tokens, vocabulary, width; ///< x is [tokens, width], w is [vocabulary, width]
  mlir::Type xElement, wElement;
  mlir::Type gradientElement; ///< of w's gradient, where it is computed
};

/// How a classifier's loss or gradients are computed, and in how much memory.
struct ClassifierWork {
  std::array<int64_t, 2> block; ///< tokens and columns of the vocabulary at once
  int64_t floatsPerRow = 0;     ///< logits, one block of their cotangents, a 16-bit dx
  int64_t weightSums = 0;       ///< floats in which several blocks of tokens add up a 16-bit dw
};

class Target {
public:
  virtual ~Target() = default;

  /// The target of the module that `op` is in (RtDialect::kTarget); the CPU if it names none.
  static const Target &of(mlir::Operation *op);
  /// Null if there is none of this name.
  static const Target *find(llvm::StringRef name);
  /// All of them, the default first.
  static llvm::ArrayRef<const Target *> all();

  virtual llvm::StringRef getName() const = 0;
  /// Architectures that a program can be built for, the default among them; empty if a program
  /// is built for the machine that builds it.
  virtual llvm::ArrayRef<llvm::StringLiteral> getArchitectures() const { return {}; }
  virtual llvm::StringRef getDefaultArchitecture() const { return ""; }
  /// Are ranks processes, each with a device of its own? Otherwise threads can be ranks.
  virtual bool ranksAreProcesses() const { return false; }

  //===-- What its kernels do ---------------------------------------------------------------===//

  /// Matmuls with a GELU, its slope, a bias gradient or an addend (tx.fused_product).
  virtual bool fusesProducts() const { return false; }
  /// Does a collective make progress only while the program polls it (rt.poll)?
  virtual bool pollsCollectives() const { return true; }
  /// Is work queued, so that the host runs ahead of it? Then kernels read numbers from memory.
  virtual bool queuesWork() const { return false; }
  /// Does 'partita tune' measure its matmuls?
  virtual bool tunesProducts() const { return false; }

  //===-- Memory ----------------------------------------------------------------------------===//

  /// Do calls take scratch memory (CallInterface::getScratchBytes)?
  virtual bool takesScratch() const { return false; }
  /// Bytes of workspace for the matmul library.
  virtual int64_t getProductsWorkspace() const { return 0; }
  virtual ClassifierWork getClassifierLoss(const ClassifierSizes &sizes) const = 0;
  virtual ClassifierWork getClassifierGradient(const ClassifierSizes &sizes) const = 0;
  /// Floats of workspace for the backward pass of attention: `q` and `k` are [batch, length, heads, width],
  /// `rows` = batch * heads * length of q.
  virtual int64_t getAttentionGradWorkspace(mlir::RankedTensorType q, mlir::RankedTensorType k,
                                            int64_t rows) const = 0;

  //===-- Printing of what is in memory -----------------------------------------------------===//

  /// A rank's rows of a vocabulary: `TokenRows{whole, *first, rows}`; all rows if `first` is null.
  CallArgument tokenRows(int64_t whole, mlir::Value first, int64_t rows) const;
  /// `Indices{*first, count}`; `Indices{0, count}` if `first` is null.
  CallArgument indices(mlir::Value first, int64_t count) const;
  /// `{ratio, id, *key}`
  CallArgument dropout(const llvm::APFloat &ratio, const std::string &id, mlir::Value key) const;
  /// The number of a micro-batch's, or its shard's, first element.
  CallArgument firstElement(mlir::Value micro, llvm::ArrayRef<int64_t> whole,
                            mlir::Value first) const;
  /// A hyperparameter: `value` as a literal or, without a value, the rank's, which the command line may
  /// change.
  CallArgument hyper(llvm::StringRef field, mlir::FloatAttr value) const;
  /// Rows of a table of tensors (rt.tensors), `count` from `first` on: `tensorRows(kUpdates, 0, 12)`.
  virtual std::string tensorRows(const std::string &table, const std::string &first,
                                 int64_t count) const = 0;
  /// A field of what a step reports.
  virtual CallArgument reported(llvm::StringRef field) const = 0;
  /// A number at a pointer `{}`, times a factor, as a kernel's scalar.
  virtual std::string scalar(double factor) const = 0;
  /// A field of the rank's hyperparameters, as a kernel's scalar.
  virtual std::string hyperparameter(llvm::StringRef field) const = 0;
  /// The key of stochastic rounding, as a kernel's scalar, from these arguments.
  virtual std::string roundingKey(const std::string &arguments) const = 0;

protected:
  /// A number at a pointer as an argument: `*{}`, or the pointer.
  virtual llvm::StringRef number() const = 0;
  /// The type of an aggregate with such a number: `Indices`, or `IndicesAt`.
  virtual std::string holder(llvm::StringRef type) const = 0;
  virtual std::string elementNumber(int64_t elements, bool hasFirst) const = 0;
};

} // namespace partita::rt

#endif // PARTITA_DIALECTS_RT_TARGET_H
