//===- StoredValues.h - what a tensor of the model holds of trained weights ---------*- C++ -*-===//
#ifndef PARTITA_LIB_EXPORT_STOREDVALUES_H
#define PARTITA_LIB_EXPORT_STOREDVALUES_H

#include "lib/Export/Safetensors.h"
#include "partita/Export/Export.h"
#include "llvm/ADT/APFloat.h"

namespace partita {

/// The stored types that a float parameter can have, by ONNX's number.
struct FloatType {
  int number;
  const char *name;
  uint64_t width;
  const llvm::fltSemantics &(*semantics)();
};
/// Null for a type that holds no trained values.
const FloatType *floatType(int number);

/// Does the part that a tensor holds of weights of this shape make up the tensor's own shape?
bool fits(llvm::ArrayRef<int64_t> shape, const ExportTensor &part, llvm::ArrayRef<int64_t> dims);

/// Elements of the part.
uint64_t countElements(const WeightTensor &weights, const ExportTensor &part);

/// The part's values in the type that the file declares, rounded to nearest even.
void writeValues(const WeightTensor &weights, const ExportTensor &part, const FloatType &type,
                 llvm::raw_ostream &os);

} // namespace partita

#endif // PARTITA_LIB_EXPORT_STOREDVALUES_H
