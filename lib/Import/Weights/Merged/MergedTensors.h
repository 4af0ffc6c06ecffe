//===- MergedTensors.h - parameters that an exporter has merged ---------------------*- C++ -*-===//
//
// PyTorch's dynamo exporter merges small equal tensors into one: the norms of a model that was never
// trained, copied layers, a bias and the mean of a batch normalization. Its record
// distinguishes them from tied weights. Tied weights are one input of the exported program, whichever
// of their names the model uses. Merged ones are several, and the call recorded at a node names the
// input that it read. Take two linear layers whose weights are equal and whose biases are zeros:
//
//   inputs    p_first_weight:  PARAMETER target='first.weight'     (and so on for first.bias,
//             p_second_weight: PARAMETER target='second.weight'     second.weight and second.bias)
//   tensors   val_0, folded from ['first.weight'] (its transpose);  first.bias
//
//   node 0    MatMul(x, val_0)          call linear(%x, %p_first_weight, %p_first_bias)
//   node 1    Add(_, first.bias)        the same call
//   node 2    MatMul(h, val_0)          call linear(%h, %p_second_weight, %p_second_bias)
//   node 3    Add(_, first.bias)        the same call
//
//   1. RecordedTensors compares the inputs with the file's tensors: second.weight and second.bias are
//      absent, and val_0 is of first.weight alone.
//   2. CallReaders lists for each node the operands that are such tensors, and the arguments of its call
//      that are parameters: node 2 reads first.weight, which its call does not name; its call names
//      second.weight, which is absent.
//   3. ArgumentMatcher finds which argument such an operand is. Nodes 0 and 1 read what their call names,
//      so in linear() operand 1 of MatMul is argument 1, and operand 1 of Add is argument 2. Node 2
//      therefore reads second.weight: it gets a tensor 'second.weight/val_0' with the values of val_0,
//      and the record "['second.weight']". Node 3 gets 'second.bias'.
//   4. UnplacedFinder lists what remains open (absent parameters that no operand was matched with,
//      tensors that are read as several values), for AbsentNotes.cpp to warn of.
//   5. splitMerged adds the tensors to the model and redirects the nodes, before anything else in import
//      looks at it.
//
// Buffers are merged with parameters too, and so are ones and zeros that the exporter creates for a norm
// without weights, literals (mul(%x, 0.5)) and tensors that it creates (mul(%x, %ones)).
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_MERGED_MERGEDTENSORS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_MERGED_MERGEDTENSORS_H

#include "partita/Import/TensorsToSplit.h"

namespace partita::onnx {
class GraphProto;
class ModelProto;
} // namespace partita::onnx

namespace partita::importer {

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

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_MERGED_MERGEDTENSORS_H
