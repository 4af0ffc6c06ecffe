//===- CallReaders.h - which node reads which tensor, and what its call names -------*- C++ -*-===//
//
// A CallReader has the two sides that ArgumentMatcher compares: the operands of a node that are tensors
// of the model, and the arguments of the call that the node was made for. A call has many nodes, each of
// which reads some of its arguments; a node may also read what the call names as a number (0.5).
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_MERGED_CALLREADERS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_MERGED_CALLREADERS_H

#include "lib/Import/File/ExportRecord.h"
#include "lib/Import/Weights/Merged/RecordedTensors.h"

namespace partita::importer {

/// A node that has a call, and reads a tensor of the model or has one among its call's arguments.
struct CallReader {
  /// An operand that is a tensor of the file, and the target that it is or comes from alone.
  struct Operand {
    int index;
    llvm::StringRef tensor, target;
    /// Is it the target itself, rather than computed from it?
    bool isOwn() const { return tensor == target; }
  };
  /// An argument that is a parameter or a buffer.
  struct Argument {
    int place;
    llvm::StringRef target;
  };

  /// Does its call name the target?
  bool names(llvm::StringRef target) const;
  /// The only target that the call names at this place.
  std::optional<llvm::StringRef> targetAt(int place) const;
  /// The operands that the call does not name, and that are no literal of it.
  llvm::SmallVector<Operand> unexplained() const;
  /// Has each argument that may be a tensor an operand of its own, in the same order (empty slots at
  /// the end left out)? Then those slots.
  std::optional<llvm::ArrayRef<llvm::StringRef>> slotsInOrder() const;

  int node;
  llvm::StringRef operation, op; ///< in the program, and in the file
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<Argument> arguments;
  llvm::SmallVector<llvm::StringRef> unnamed; ///< arguments that are other values of the program
  /// The name of each positional argument that may be a tensor; empty for None.
  llvm::SmallVector<llvm::StringRef> slots;
  int inputs = 0;                  ///< how many the node has
  int literal = -1;                ///< the operand that the call has as a literal
  bool mayHaveLiterals = false;    ///< elementwise, and its call names nothing that the file lacks
  bool readsNumbers = false;       ///< a tensor that comes from no parameter, by the record
  llvm::StringSet<> numberSources; ///< what such tensors come from
};

class CallReaders {
public:
  CallReaders(const onnx::GraphProto &graph, const RecordedTensors &tensors);

  llvm::ArrayRef<CallReader> all() const { return readers; }
  /// Those arguments whose targets are absent from the file.
  llvm::SmallVector<CallReader::Argument> absentArguments(const CallReader &reader) const;
  /// Does a call name the target, which is absent?
  bool isWanted(llvm::StringRef target) const { return wanted.contains(target); }
  /// Are rows of the target looked up?
  bool isTable(llvm::StringRef target) const { return tables.contains(target); }
  /// Does the file use the name?
  bool isTaken(llvm::StringRef name) const {
    return tensors.hasTensor(name) || results.contains(name);
  }

private:
  void read(const onnx::NodeProto &node, int index);
  void readOperands(const onnx::NodeProto &node, CallReader &reader) const;
  void readArguments(const ProgramCall &call, CallReader &reader);
  void readLiterals(const onnx::NodeProto &node, const ProgramCall &call, CallReader &reader) const;

  const RecordedTensors &tensors;
  std::vector<CallReader> readers;
  llvm::StringSet<> results; ///< the graph's inputs, and results of the nodes read so far
  llvm::StringSet<> wanted, tables;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_MERGED_CALLREADERS_H
