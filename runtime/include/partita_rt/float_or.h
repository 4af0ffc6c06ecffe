// A pointer whose elements are floats, or have the type of a kernel's other operands.

#ifndef PARTITA_RT_FLOAT_OR_H
#define PARTITA_RT_FLOAT_OR_H

#include <cstddef>
#include <type_traits>

namespace partita_rt {

/// A pointer to floats or to T's (const if T is), or null.
template <typename T> struct FloatOrPointer {
  using Float = std::conditional_t<std::is_const_v<T>, const float, float>;
  void *data;
  bool isFloat;
  FloatOrPointer(std::nullptr_t = nullptr) : data(nullptr), isFloat(true) {}
  FloatOrPointer(Float *data) : data(const_cast<float *>(data)), isFloat(true) {}
  FloatOrPointer(T *data) : data(const_cast<std::remove_const_t<T> *>(data)), isFloat(false) {}
  explicit operator bool() const { return data != nullptr; }
  Float *asFloat() const { return static_cast<Float *>(data); }
  T *asOther() const { return static_cast<T *>(data); }
};
/// The storage type of a norm's parameters or of attention's bias: float, or that of the
/// activations.
template <typename T>
using FloatOr =
    std::conditional_t<std::is_same_v<std::remove_const_t<T>, float>, T *, FloatOrPointer<T>>;

} // namespace partita_rt

#endif // PARTITA_RT_FLOAT_OR_H
