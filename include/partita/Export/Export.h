//===- Export.h - trained weights and the plan back into the ONNX file --------------*- C++ -*-===//
//
// The graph that comes out is byte for byte the one that came in: only the values of the
// parameters' initializers are others, each in the type that the file declares for it, and the
// nodes that read them may say how they are split (DevicePlan.h). The file is
// patched in its wire format, streaming: neither the model nor the weights are ever held in memory.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_EXPORT_EXPORT_H
#define PARTITA_EXPORT_EXPORT_H

#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace partita {

class DevicePlan;

struct ExportRequest {
  std::string model;   ///< the ONNX file that was compiled
  std::string weights; ///< safetensors: float32, one tensor per parameter, whole shapes; empty:
                       ///< values stay
  std::string output; ///< the ONNX file to write; weights that were outside the model, or that make
                      ///< it larger than 2 GB, go to `output`.data
  llvm::ArrayRef<std::string> parameters; ///< each must be in both files
  const DevicePlan *plan = nullptr;       ///< written as sharding annotations when there is one
  std::string *note = nullptr; ///< what the user should know of the weights' file, if anything
};

/// What went wrong, complete and lower case, or nothing. Files appear whole or not at all.
std::string exportOnnx(const ExportRequest &request);

} // namespace partita

#endif // PARTITA_EXPORT_EXPORT_H
