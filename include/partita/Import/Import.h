//===- Import.h - imports an ONNX file as a module of `tx` ------------------------------------===//
//
// The only interface to ONNX: everything else in Partita sees `tx` and `train`.
//
// A module comes back with static shapes and one function, @forward, whose arguments and results
// keep their ONNX names (`train.name`). Parameters are `train.parameter` symbols that name file,
// offset and type; their values are not kept. lib/Import/Weights/Weights.h decides which tensors of
// the file are parameters; the others are constants. What depends on no input (shape arithmetic,
// masks) has been computed.
// Every op carries the name of its ONNX node as a NameLoc inside the file's location.
//
// Guesses that training depends on are on the module as train.notes.
//
// All errors are diagnostics at the model's location that begin with the node's, tensor's or
// input's name; on failure exactly one error has been emitted.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_IMPORT_H
#define PARTITA_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace partita {

struct ImportOptions {
  /// `--dim NAME=SIZE`: NAME is a symbolic dimension of the file, or INPUT.AXIS ("input_ids.0").
  std::vector<std::pair<std::string, int64_t>> dims;
  /// A tensor that depends on no input is computed during import while it has at most this many
  /// distinct elements (all such tensors of a model together: 2^28); a larger one stays in the
  /// program. 0: as many as the model's files have bytes, or 64 masks of the largest of `dims` have
  /// elements, but at least 2^14 and at most 2^24.
  int64_t foldLimit = 0;
  /// `--input NAME=ROLE`. An input whose role is fixed ("ones", "zeros" or "positions") is the same in
  /// every run: values that depend only on such are computed during import; the argument keeps its
  /// position and its role, and nothing reads it. The objective reports invalid roles.
  std::vector<std::pair<std::string, std::string>> inputs;
  /// A mask that `inputs` does not mention is ones in every run: rows of packed documents have no
  /// padding.
  bool masksAreOnes = false;
  /// Glob patterns over tensors' names: `trainable` makes them parameters, `freeze` keeps them from
  /// being trained, which the objective implements. Neither is reported as a guess.
  std::vector<std::string> trainable, freeze;
  /// "A=B": two tensors that are one parameter; their values are equal, or transposed.
  std::vector<std::string> tie;
  /// Continue after a node that cannot be imported, so that all errors of a model are reported:
  /// import the nodes that do not need its results, and check the others as far as that does not
  /// depend on the missing results (KeepGoing.cpp).
  bool keepGoing = false;
};

/// Imports the model at `path`. Loads the dialects that it needs into `context`.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnx(llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext *context);

/// What is known of a file without importing it.
struct OnnxReport {
  struct Tensors {
    int64_t tensors = 0, elements = 0, bytes = 0;
  };
  struct Operator {
    std::string domain, type; ///< the domain "" is ai.onnx
    int64_t count = 0;
    bool supported = false;
  };
  struct Input {
    std::string name, type;
    std::vector<std::string> dims; ///< numbers as they are, names in quotes
  };
  /// A float tensor that several nodes read: tied on purpose, or probably `merged` by an exporter,
  /// because all its elements are one number and it is read more often than any matrix.
  struct Shared {
    std::string name;
    int64_t uses = 0;
    bool merged = false;
  };
  /// A node that casts to float16 or bfloat16.
  struct Cast {
    std::string node, type;
  };
  std::string producer, producerVersion;
  int64_t irVersion = 0, nodes = 0, functions = 0;
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<std::pair<std::string, int64_t>> configurations; ///< of devices, and how many
  std::vector<Input> inputs;
  std::vector<std::string> outputs;
  Tensors stored, external, declared; ///< in the file, in external data, without values
  std::vector<Shared> shared;
  /// Guesses about its weights that training depends on.
  std::vector<std::string> guessed;
  std::vector<Cast> casts; ///< in functions and branches too
  std::vector<Operator>
      operators; ///< functions and branches once; the most frequent first, then by name
  /// What prevents its import, in functions and branches too; and invalid tensors.
  std::vector<std::string> missing, wrongTensors;

  /// Returns true if every dimension of every input has a size.
  bool isStatic() const;
  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJson() const;
};

/// Reads the file at `path` without importing it. Only `trainable`, `freeze` and `tie` of the
/// options have an effect.
mlir::FailureOr<OnnxReport> reportOnnx(llvm::StringRef path, const ImportOptions &options,
                                       mlir::MLIRContext *context);

/// What a model's graph alone shows; no tensor's values are read.
struct OnnxSummary {
  struct Input {
    std::string name;
    std::vector<std::string> dims; ///< a number, or the name in the file, or nothing
  };
  std::vector<Input> inputs;
  /// The hidden size: the most frequent length of the model's vectors (weights of norms, biases),
  /// or else the row length of its first matrix.
  std::optional<int64_t> hidden;
};
mlir::FailureOr<OnnxSummary> summarizeOnnx(llvm::StringRef path, mlir::MLIRContext *context);

} // namespace partita

#endif // PARTITA_IMPORT_IMPORT_H
