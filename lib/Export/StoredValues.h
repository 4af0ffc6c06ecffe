//===- StoredValues.h - a tensor's share of trained weights -------------------------*- C++ -*-===//
#ifndef PARTITA_LIB_EXPORT_STOREDVALUES_H
#define PARTITA_LIB_EXPORT_STOREDVALUES_H

#include "lib/Export/Safetensors.h"
#include "partita/Export/Export.h"
#include "llvm/ADT/APFloat.h"

namespace partita {

/// A type in which a file can store float parameters, with ONNX's number for it.
struct FloatType {
  int number;
  const char *name;
  uint64_t width;
  const llvm::fltSemantics &(*semantics)();
};
/// Returns null for a type that holds no trained values.
const FloatType *floatType(int number);

/// Returns true if the part of weights with shape `shape` has the tensor's own shape `dims`.
bool fits(llvm::ArrayRef<int64_t> shape, const ExportTensor &part, llvm::ArrayRef<int64_t> dims);

/// Returns the number of elements in the part.
uint64_t countElements(const WeightTensor &weights, const ExportTensor &part);

/// Writes the part's values in the type that the file declares, rounded to nearest even.
void writeValues(const WeightTensor &weights, const ExportTensor &part, const FloatType &type,
                 llvm::raw_ostream &os);

} // namespace partita

#endif // PARTITA_LIB_EXPORT_STOREDVALUES_H
