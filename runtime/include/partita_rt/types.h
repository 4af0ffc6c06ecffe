// Small types that all of the runtime shares: element types, shapes, constant tables.

#ifndef PARTITA_RT_TYPES_H
#define PARTITA_RT_TYPES_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace partita_rt {

/// Limits of the constant tables: a mesh has at most kMaxAxes axes, a shape kMaxDims dimensions.
constexpr int kMaxAxes = 6;
constexpr int kMaxGroups = 16;     ///< rows of Program::groups
constexpr int kMaxChannels = 1024; ///< rows of Program::channels
constexpr int kMaxDims = 8;
constexpr int kMaxBlocks = 8; ///< unequal blocks of a dimension

/// A user's mistake or a failed system call: one message, lower case, no full stop. programMain
/// prints it once as "<program>: error: <message>" and exits with code 1.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws Error with a printf-style message.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum class DType : uint8_t {
  Float32,
  Float64,
  Float16,
  BFloat16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  Bool,
  Float8E4M3, // 8-bit floats are operands of matmuls, in no file and no collective
  Float8E5M2
};

/// Bytes of one element.
/// Float16 or BFloat16: storage, whose arithmetic is Float32.
constexpr bool isShortFloat(DType type) {
  return type == DType::Float16 || type == DType::BFloat16;
}

constexpr int64_t sizeOf(DType type) {
  switch (type) {
  case DType::Float64:
  case DType::Int64:
    return 8;
  case DType::Float32:
  case DType::Int32:
  case DType::UInt32:
    return 4;
  case DType::Float16:
  case DType::BFloat16:
  case DType::UInt16:
    return 2;
  case DType::UInt8:
  case DType::Bool:
  case DType::Float8E4M3:
  case DType::Float8E5M2:
    return 1;
  }
  return 0;
}

/// "float32", "int64", ...
const char *nameOf(DType type);

/// A static shape: Shape{8, 256, 384}; Shape{} is a scalar.
struct Shape {
  int rank = 0;
  int64_t dims[kMaxDims] = {};

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> list) {
    for (int64_t dim : list)
      dims[rank++] = dim;
  }
  constexpr int64_t operator[](int i) const { return dims[i]; }
  constexpr int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i)
      n *= dims[i];
    return n;
  }
  constexpr bool operator==(const Shape &other) const {
    if (rank != other.rank)
      return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i] != other.dims[i])
        return false;
    return true;
  }
  constexpr bool operator!=(const Shape &other) const { return !(*this == other); }
};

/// "8x256x384"; "scalar" for rank 0.
std::string toString(const Shape &shape);

/// A view of a constant array: `static const Parameter kParameters[] = {...};` converts to it.
template <typename T> struct Table {
  const T *data = nullptr;
  int64_t count = 0;

  constexpr Table() = default;
  template <size_t N> constexpr Table(const T (&array)[N]) : data(array), count(N) {}
  constexpr const T *begin() const { return data; }
  constexpr const T *end() const { return data + count; }
  constexpr int64_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr const T &operator[](int64_t i) const { return data[i]; }
};

} // namespace partita_rt

#endif // PARTITA_RT_TYPES_H
