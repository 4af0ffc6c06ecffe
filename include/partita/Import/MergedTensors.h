//===- MergedTensors.h - parameters that an exporter has merged ---------------------*- C++ -*-===//
//
// PyTorch's dynamo exporter merges small equal tensors into one: the norms of a model that was never
// trained, copied layers, a bias and the mean of a batch normalization. Its record
// distinguishes them from tied weights. Tied weights are one input of the exported program, whichever
// of their names the model uses. Merged ones are several, and the call recorded at a node names the
// input that it read:
//
//   call      linear(%x, %p_second_weight, %p_second_bias)
//   node      MatMul(x, val_0), where val_0 is computed from 'first.weight'
//   inputs    p_second_weight: PARAMETER target='second.weight', for which the file has no tensor
//
// So the node gets a tensor of its own with the same values: 'second.weight' again, or what the
// exporter had computed from it. Which of a call's arguments a node reads follows from other calls
// of the operation whose tensors were not merged, or from the operation. Buffers are merged with
// parameters too, and so are ones and zeros that the exporter creates for a norm without weights,
// numbers of the program (mul(%x, 0.5)) and tensors that it creates (mul(%x, %ones)).
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
  std::string name;   ///< its new name
  std::string source; ///< the tensor with its values
  std::string record; ///< if it is computed: what from, as the exporter would record it
  std::vector<std::pair<int, int>> readers; ///< (node, operand) pairs that will read it
};

struct MergedTensors {
  std::vector<MergedTensor> tensors;
  /// Parameters and buffers that nodes should read, where it is not known which of the tensors that
  /// those nodes read holds them. Buffers only where no parameter may be in the same tensor.
  struct Undecided {
    std::string target;
    std::vector<std::string> tensors;
    bool isBuffer = false;
  };
  std::vector<Undecided> undecided;
  /// Tensors that nodes read as several values of the program, with the names of two of these values. A
  /// parameter of `nowhere`, or a buffer, may have been merged after it was computed with, too.
  struct Several {
    std::string tensor, first, second;
  };
  std::vector<Several> several;
  /// Parameters that a node reads although its call names neither them nor anything that the file lacks:
  /// a constant inside an operation may have been merged with them.
  struct Unnamed {
    std::string tensor, node, operation;
  };
  std::vector<Unnamed> unnamed;
  /// Parameters, and buffers, that neither the file nor a call names.
  std::vector<std::string> nowhere, nowhereBuffers;
  /// Parameters of calls whose nodes do not read them: an exporter removes biases of zeros.
  std::vector<std::string> removed;
};

MergedTensors findMerged(const onnx::GraphProto &graph);

/// Gives each merged tensor its own copy. Undecided and removed ones are found again in the result.
void splitMerged(onnx::ModelProto &model);

/// The same for the bytes of a file; empty if it is damaged.
MergedTensors findMergedIn(llvm::StringRef file);

} // namespace partita::importer

#endif // PARTITA_IMPORT_MERGEDTENSORS_H
