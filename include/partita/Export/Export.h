//===- Export.h - writes trained weights and the plan into the ONNX file ------------*- C++ -*-===//
//
// The exported graph is the imported one, byte for byte. Only the values of the parameters'
// initializers, and of all tensors that also hold them, change, each in the type that the file
// declares, and the nodes that read them may say how they are split (DevicePlan.h). Parameters that
// share a tensor of the file, because they were equal at export, get tensors of their own
// (SplitTensors.h). The file is patched in its wire format, streaming: neither the model nor the
// weights are ever held in memory.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_EXPORT_EXPORT_H
#define PARTITA_EXPORT_EXPORT_H

#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace partita {

class DevicePlan;

/// A tensor of the model that holds a parameter: in full, perhaps in another shape, or a slice of
/// `size` elements of dimension `dim` from `begin` on (-1: no slice), or the transpose of that.
struct ExportTensor {
  std::string name;
  bool transposed = false, reshaped = false;
  int64_t dim = -1, begin = 0, size = 0;
};

struct ExportParameter {
  std::string name;                  ///< in the weights
  std::vector<ExportTensor> tensors; ///< in the model; none: one of the parameter's name
};

struct ExportRequest {
  std::string model;   ///< the ONNX file that was compiled
  std::string weights; ///< safetensors: float32, one tensor per parameter, full shapes; empty:
                       ///< values stay
  std::string output; ///< the ONNX file to write; weights that were outside the model, or that make
                      ///< it larger than 2 GB, go to `output`.data
  llvm::ArrayRef<ExportParameter> parameters; ///< each must be in both files
  const DevicePlan *plan = nullptr;           ///< written as sharding annotations when there is one
  std::string *note = nullptr; ///< what the user should know about the weights' file, if anything
};

/// Exports the model. Returns what went wrong, a complete message in lower case, or "". Files
/// appear complete or not at all.
std::string exportOnnx(const ExportRequest &request);

} // namespace partita

#endif // PARTITA_EXPORT_EXPORT_H
