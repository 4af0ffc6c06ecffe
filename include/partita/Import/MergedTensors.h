//===- MergedTensors.h - parameters that an exporter has merged ---------------------*- C++ -*-===//
//
// PyTorch's dynamo exporter keeps one of several small tensors that are equal: the norms of a model
// that was never trained, layers that were copied, a bias and the mean of a batch normalization. Its
// record tells them from tied weights. Of these, the exported program reads one input, whichever of
// their names the model uses; of merged ones, the call at a node names the input that it has read:
//
//   call      linear(%x, %p_second_weight, %p_second_bias)
//   node      MatMul(x, val_0), where val_0 is computed from 'first.weight'
//   inputs    p_second_weight: PARAMETER target='second.weight', of which the file has no tensor
//
// So the node gets a tensor of its own, with the same values: 'second.weight' again, or what the
// exporter has computed from it. Which of a call's arguments a node reads follows from other calls
// of the operation whose tensors were not merged, or from the operation.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_MERGEDTENSORS_H
#define PARTITA_IMPORT_MERGEDTENSORS_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace partita::onnx {
class GraphProto;
class ModelProto;
} // namespace partita::onnx

namespace partita::importer {

/// A tensor to be split off another one.
struct MergedTensor {
  std::string name;   ///< that it gets
  std::string source; ///< that has its values
  std::string record; ///< of a computed one, what it comes from, as the exporter would write it
  std::vector<std::pair<int, int>> readers; ///< nodes and the operands that read it
};

struct MergedTensors {
  std::vector<MergedTensor> tensors;
  /// Parameters that nodes should read and cannot be told from others, with the tensors that those
  /// nodes read, one of which each may be.
  struct Undecided {
    std::string parameter;
    std::vector<std::string> tensors;
  };
  std::vector<Undecided> undecided;
  /// Computed tensors that nodes read as several values of the program, the names of two of these, and
  /// parameters that are nowhere: one of them may have been merged once it was computed with too.
  struct Several {
    std::string tensor, first, second;
  };
  std::vector<Several> several;
  std::vector<std::string> nowhere;
  /// Parameters that nodes were made for and do not read: an exporter removes biases of zeros.
  std::vector<std::string> removed;
};

MergedTensors findMerged(const onnx::GraphProto &graph);

/// Gives each its own tensor. What remains undecided or removed is found again in the result.
void splitMerged(onnx::ModelProto &model);

/// Of a whole file, as it stands; none of a damaged one.
MergedTensors findMergedIn(llvm::StringRef file);

} // namespace partita::importer

#endif // PARTITA_IMPORT_MERGEDTENSORS_H
