//===- Safetensors.h - reading a checkpoint's tensors -------------------------------*- C++ -*-===//
//
// An 8-byte little-endian header length, a JSON header, then the tensors' bytes. The file is
// mapped; its header is not believed: every range must lie within the file and fit its shape.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_EXPORT_SAFETENSORS_H
#define PARTITA_LIB_EXPORT_SAFETENSORS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace partita {

struct WeightTensor {
  std::string dtype; ///< as the file spells it: "F32"
  llvm::SmallVector<int64_t> shape;
  llvm::StringRef bytes;
};

class WeightFile {
public:
  /// Opens `path`; null, and `problem` set, when it is no safetensors file.
  static std::unique_ptr<WeightFile> open(llvm::StringRef path, std::string &problem);
  /// Null when the file has no such tensor.
  const WeightTensor *find(llvm::StringRef name) const;

private:
  std::string parse();
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  llvm::StringMap<WeightTensor> tensors;
};

} // namespace partita

#endif // PARTITA_LIB_EXPORT_SAFETENSORS_H
