//===- HostTensor.h - tensors whose contents are known at import -----------------------------===//
//
// Shape arithmetic and masks of an exported model depend on no input: the importer computes them. A
// HostTensor is a strided view of shared bytes, in the file (mapped, never copied) or computed. A
// dimension of stride 0 repeats its elements: broadcasting copies nothing, and an elementwise
// result repeats wherever all its operands do, so a mask expanded over the batch costs no more than
// that of one sample.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_IMPORT_HOSTTENSOR_H
#define PARTITA_IMPORT_HOSTTENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <optional>

namespace partita::importer {

using Shape = llvm::SmallVector<int64_t, 4>;

/// ONNX element types that the importer can read, by their numbers in the format.
enum class DType {
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16
};

/// Returns the type for ONNX's number, if the importer reads it.
std::optional<DType> dtypeFromOnnx(int64_t number);
/// Returns ONNX's name of a type number, "unknown type N" for unknown ones.
std::string dtypeName(int64_t number);
inline std::string dtypeName(DType type) { return dtypeName(static_cast<int64_t>(type)); }
int64_t byteSize(DType type);
bool isFloat(DType type);
inline bool is16Bit(DType type) { return type == DType::f16 || type == DType::bf16; }
/// Returns the element type in the IR; null for those that `tx` does not have (8- and 16-bit
/// integers, unsigned ones).
mlir::Type mlirType(DType type, mlir::MLIRContext *context);
/// For messages, "float, double or bool": the types that the importer can read, and of those the ones that the
/// IR has.
std::string readableTypeNames();
std::string valueTypeNames(mlir::MLIRContext *context);

/// Returns the number of elements; nothing if a dimension is negative or there are more than 2^48.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape);
/// Returns "2x3", or "scalar".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

class HostTensor {
public:
  /// Returns a view of `data`, dense and row-major; `data` may be unaligned.
  static HostTensor view(DType type, llvm::ArrayRef<int64_t> shape,
                         std::shared_ptr<const char> data);
  static HostTensor scalar(DType type, double value);
  static HostTensor scalarInt(DType type, int64_t value);
  /// Returns a 1-D tensor of 64-bit integers.
  static HostTensor vector(llvm::ArrayRef<int64_t> values);

  DType type() const { return elementType; }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  llvm::ArrayRef<int64_t> strides() const { return steps; }
  int64_t rank() const { return dims.size(); }
  int64_t size() const { return *elementCount(dims); }
  /// Returns the number of stored elements: dimensions of stride 0 count once.
  int64_t distinctSize() const;

  /// Return the element at storage position `position` (see forEachElement), converted.
  double toDouble(int64_t position) const;
  int64_t toInt(int64_t position) const;
  const char *bytes(int64_t position) const {
    return storage.get() + position * byteSize(elementType);
  }
  int64_t origin() const { return start; }

  /// Returns all elements in row-major order.
  llvm::SmallVector<int64_t> ints() const;
  double onlyDouble() const { return toDouble(start); }
  int64_t onlyInt() const { return toInt(start); }

  /// Return views; the caller has checked the arguments.
  HostTensor broadcast(llvm::ArrayRef<int64_t> shape) const;
  HostTensor slice(llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                   llvm::ArrayRef<int64_t> steps) const;
  HostTensor transpose(llvm::ArrayRef<int64_t> permutation) const;
  /// Returns the tensor with every dimension of stride 0 shrunk to size 1.
  HostTensor withoutRepeats() const;
  /// Returns the same elements in a shape that differs only in dimensions of size 1; else nothing.
  std::optional<HostTensor> viewAs(llvm::ArrayRef<int64_t> shape) const;
  bool isDense() const;
  /// Returns the same bytes in another shape; the tensor must be dense.
  HostTensor reinterpret(llvm::ArrayRef<int64_t> shape) const;

private:
  DType elementType = DType::i64;
  Shape dims, steps; // steps in elements, 0 where repeated, negative after a reversed slice
  int64_t start = 0;
  std::shared_ptr<const char> storage;

  friend class HostBuffer;
};

/// A new dense tensor, filled in row-major order.
class HostBuffer {
public:
  HostBuffer(DType type, llvm::ArrayRef<int64_t> shape);
  void putDouble(int64_t index, double value);
  void putInt(int64_t index, int64_t value);
  void putBytes(int64_t index, const char *from);
  HostTensor finish() const { return tensor; }

private:
  HostTensor tensor;
  char *data;
};

/// Calls `body` for each element of `shape` in row-major order with the storage positions of
/// views that all have that shape.
void forEachElement(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<const HostTensor *> views,
                    llvm::function_ref<void(llvm::ArrayRef<int64_t> positions)> body);

} // namespace partita::importer

#endif // PARTITA_IMPORT_HOSTTENSOR_H
