//===- InitializerUses.h - which nodes read an initializer --------------------------*- C++ -*-===//
//
// The one collector of uses, from which all guesses by use follow. It looks into branches, which read
// what is outside of them. A cast or copy of an initializer is the initializer under another name, and
// no use: exporters cast the weights of a model in another precision. (Buffers.cpp asks something else
// of a graph, backward and of every value: what all paths from a value to the outputs do with it.)
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_INITIALIZERUSES_H
#define PARTITA_LIB_IMPORT_WEIGHTS_INITIALIZERUSES_H

#include "onnx.pb.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace partita::importer {

class InitializerUses {
public:
  struct Use {
    const onnx::NodeProto *node;
    int operand;

    /// Are rows of it looked up, as of an embedding table?
    bool looksUp() const;
  };

  /// Where `handsOn` is true of a node, the uses of its results count as uses of its first operand, besides
  /// the node itself.
  explicit InitializerUses(const onnx::GraphProto &graph,
                           llvm::function_ref<bool(const onnx::NodeProto &)> handsOn = nullptr);

  /// In the order of the nodes.
  llvm::ArrayRef<Use> of(llvm::StringRef name) const;
  /// Is it, or its cast or copy, a result of the graph?
  bool isOutput(llvm::StringRef name) const;
  /// Does a node read it, if only to cast or copy it, or is it a result?
  bool isRead(llvm::StringRef name) const;

private:
  struct Entry {
    std::vector<Use> uses;
    bool isRead = false, isOutput = false;
  };

  Entry *find(llvm::StringRef name);
  const Entry *known(llvm::StringRef name) const;
  void collect(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
               llvm::function_ref<bool(const onnx::NodeProto &)> handsOn);

  llvm::StringMap<Entry> entries;   ///< by initializer
  llvm::StringMap<Entry *> aliases; ///< by result of a node that hands one on
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_INITIALIZERUSES_H
