//===- DroppedParameters.h - parameters that left the file with an operation --------*- C++ -*-===//
//
// PyTorch's dynamo exporter removes an operation that changes nothing, x * 1 and x + 0, even if the
// number is a parameter that starts so: a learned scale or shift without dimensions. The record then
// lists a parameter that neither a tensor nor a call names, as it does with one that the model never
// reads and with a further name of a tied one. They are told apart by what the record shows:
//
//   - of a removed operation, its result is missing: the call of a node names it ("%mul"), and the
//     node reads another value instead; or it is an output of the program, made by another call
//   - it was part of the module that has the parameter, or that called that module: data reached it
//     or left it there
//   - another name of a tied parameter belongs to a module whose nodes read a parameter of another
//     module in its place
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_DROPPEDPARAMETERS_H
#define PARTITA_LIB_IMPORT_WEIGHTS_DROPPEDPARAMETERS_H

#include "lib/Import/File/Origins.h"

namespace partita::importer {

struct DroppedParameters {
  std::vector<std::string> parameters;
  std::string operation; ///< a removed operation that may have read the first of them
};

/// Which of the parameters that nothing in the file names (MergedTensors::nowhere) may have been
/// dropped with an operation. Some may be parameters that the model does not use.
DroppedParameters findDropped(const onnx::GraphProto &graph, const Origins &origins,
                              llvm::ArrayRef<std::string> nowhere);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_DROPPEDPARAMETERS_H
