//===- ArgumentMatcher.h - which argument of its call an operand is -----------------*- C++ -*-===//
//
// A node reads first.weight, and its call names second.weight, which is absent from the file: were the two
// merged, or does the operation read something else there? An operation's decomposition has the same
// nodes each time, so (operation, operator, operand) decides which argument an operand is. That is learned
//
//   - from operands that the calls name themselves, and where one operand and one absent argument are
//     left (learn, learnFromRest);
//   - from the operation, where a node's operands are the call's arguments in the same order
//     (AtenOperation::keepsOrder, and takesNumbers for norms whose scale or bias is None).
//
// An operand that matches an absent argument is split off under that target's name. One that is matched
// with several arguments, or with none, leaves the absent ones *undecided*, with the tensors that may be
// them. Not split is a lookup table: equal values under another name are a tied weight.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_MERGED_ARGUMENTMATCHER_H
#define PARTITA_LIB_IMPORT_WEIGHTS_MERGED_ARGUMENTMATCHER_H

#include "lib/Import/Weights/Merged/CallReaders.h"
#include "lib/Import/Weights/Merged/MergedTensors.h"
#include <map>
#include <set>
#include <tuple>

namespace partita::importer {

class ArgumentMatcher {
public:
  ArgumentMatcher(const onnx::GraphProto &graph, const RecordedTensors &tensors,
                  const CallReaders &readers);

  /// What is to be split off, by target and source.
  std::vector<MergedTensor> takeSplit();
  /// Was an operand matched with the target, which is absent, or may a tensor of numbers be it?
  bool isExplained(llvm::StringRef target) const {
    return placed.contains(target) || hidden.contains(target);
  }
  /// The tensors that an absent target may be; null if there are none.
  const std::set<std::string> *candidatesFor(llvm::StringRef target) const;
  /// Does a node read the target as its call says?
  bool isReadAsItself(llvm::StringRef target) const { return readAsItself.contains(target); }

private:
  using Operand = CallReader::Operand;
  using Key = std::tuple<llvm::StringRef, llvm::StringRef, int>;
  static Key keyOf(const CallReader &reader, const Operand &operand) {
    return {reader.operation, reader.op, operand.index};
  }

  void learn(const CallReader &reader);
  void learnFromRest(const CallReader &reader);
  void place(const CallReader &reader);
  bool placeInOrder(const CallReader &reader);
  bool placeOfNorm(const CallReader &reader);
  void assign(const CallReader &reader, const Operand &operand, llvm::StringRef target);
  void assignNumber(const CallReader &reader, const Operand &operand);
  std::string recordFor(const Operand &operand, llvm::StringRef target) const;

  const onnx::GraphProto &graph;
  const RecordedTensors &tensors;
  const CallReaders &readers;
  std::map<Key, std::set<int>> known; ///< places of arguments
  llvm::StringSet<> readAsItself;
  llvm::StringSet<> placed, hidden;                                  ///< absent targets
  llvm::StringMap<std::set<std::string>> candidates;                 ///< tensors, by absent target
  std::map<std::pair<std::string, std::string>, MergedTensor> split; ///< by target and source
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_MERGED_ARGUMENTMATCHER_H
