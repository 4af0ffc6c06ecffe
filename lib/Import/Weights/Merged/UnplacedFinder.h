//===- UnplacedFinder.h - what remains open after merged tensors were split ---------*- C++ -*-===//
//
// Two questions, whose answers AbsentNotes.cpp turns into warnings.
//
// Which absent targets has nothing been matched with? One that a call names was *removed* (a bias of
// zeros), or is *undecided* among the tensors that ArgumentMatcher could not match. One that no call
// names is *nowhere*: what calls name instead is computed from it ("%t", a transpose).
//
// Which tensors are read as more than their own target? One that calls have as several values of the
// program ("%t" and "%t_1") holds several transposes: of one parameter, or of two that were equal, if
// some are nowhere. One that an elementwise operation reads without naming it may hold a constant too.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_MERGED_UNPLACEDFINDER_H
#define PARTITA_LIB_IMPORT_WEIGHTS_MERGED_UNPLACEDFINDER_H

#include "lib/Import/Weights/Merged/ArgumentMatcher.h"

namespace partita::importer {

class UnplacedFinder {
public:
  UnplacedFinder(const onnx::GraphProto &graph, const RecordedTensors &tensors,
                 const CallReaders &readers, const ArgumentMatcher &matcher)
      : graph(graph), tensors(tensors), readers(readers), matcher(matcher) {}

  /// Fills all lists of `result` but that of split tensors.
  void run(MergedTensors &result) const;

private:
  using Operand = CallReader::Operand;

  void findParameters(MergedTensors &result) const;
  void findBuffers(MergedTensors &result) const;
  void findNowhere(MergedTensors &result) const;
  void findSharing(MergedTensors &result) const;

  bool isOpen(llvm::StringRef target) const {
    return readers.isWanted(target) && !matcher.isExplained(target);
  }
  bool mayBeNumber(const CallReader &reader, const Operand &operand) const;
  bool mayBeSeveral(const Operand &operand, llvm::StringRef value,
                    const MergedTensors &result) const;
  std::optional<llvm::StringRef> valueOf(const CallReader &reader, const Operand &operand) const;

  const onnx::GraphProto &graph;
  const RecordedTensors &tensors;
  const CallReaders &readers;
  const ArgumentMatcher &matcher;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_MERGED_UNPLACEDFINDER_H
