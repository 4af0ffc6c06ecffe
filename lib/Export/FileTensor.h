//===- FileTensor.h - an initializer of the model and its values --------------------*- C++ -*-===//
#ifndef PARTITA_LIB_EXPORT_FILETENSOR_H
#define PARTITA_LIB_EXPORT_FILETENSOR_H

#include "lib/Export/StoredValues.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace partita {

/// An initializer of the file, and the weights that it gets.
struct FileTensor {
  /// Reads a TensorProto's message. Returns what is wrong with it, or "".
  std::string read(llvm::StringRef message);

  std::string name;
  llvm::SmallVector<int64_t> dims;
  int type = 0;
  std::string kept; // all fields but the values and their location
  bool external = false;
  std::string location;
  uint64_t offset = 0, length = 0;
  bool hasLength = false;

  const WeightTensor *weights = nullptr; // of a parameter
  ExportTensor part;                     // the part of them that it holds
  const FloatType *stored = nullptr;
  uint64_t newOffset = 0; // in the new data file
  bool toFile = false;
  uint64_t bytes() const {
    return weights ? countElements(*weights, part) * stored->width : length;
  }

private:
  std::string readExternal(llvm::StringRef message);
};

} // namespace partita

#endif // PARTITA_LIB_EXPORT_FILETENSOR_H
