//===- TensorsToSplit.h - tensors that import splits off others ---------------------*- C++ -*-===//
//
// PyTorch's dynamo exporter merges small equal tensors into one. Import splits them again, and
// export writes a trained file that keeps them apart. See lib/Import/Weights/Merged/MergedTensors.h
// for how import recognizes them.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_TENSORSTOSPLIT_H
#define PARTITA_IMPORT_TENSORSTOSPLIT_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <utility>
#include <vector>

namespace partita::importer {

/// On a value in the file: what it is computed from, as the exporter records it.
constexpr llvm::StringLiteral foldedKey = "pkg.onnxscript.optimizer.folded_from";

/// A tensor to be split off another one.
struct MergedTensor {
  std::string name;                         ///< its new name
  std::string source;                       ///< the tensor with its values
  std::string record;                       ///< if it is computed: the value of its `foldedKey`
  std::vector<std::pair<int, int>> readers; ///< (node, operand) pairs that will read it
};

/// Returns what import splits off the tensors of a file, from the file's bytes; empty if it is
/// damaged.
std::vector<MergedTensor> findMergedIn(llvm::StringRef file);

} // namespace partita::importer

#endif // PARTITA_IMPORT_TENSORSTOSPLIT_H
