// Scalars of a step as kernel arguments. Where a CPU kernel takes a number that the step has
// computed, a CUDA kernel takes its address in device memory, since the host that launches it does
// not know the value. Each type also converts from a plain number, if that is known; kernels call
// read().

#ifndef PARTITA_RT_CUDA_SCALAR_H
#define PARTITA_RT_CUDA_SCALAR_H

#include "partita_rt/kernels.h"
#include "partita_rt/program.h"
#include "partita_rt/random.h"

namespace partita_rt::cuda {

/// The values that a step reads from the host, in device memory.
struct Control {
  float learningRate; ///< Rank::learningRate
  int64_t step;       ///< Rank::step, from 1
  int64_t update;     ///< Rank::update
  uint64_t seed;      ///< Rank::seed
  Hyper hyper;        ///< Rank::hyper
  int64_t call = 0;   ///< number of this call of the program's functions: Progress::begun
};

/// A constant, a number in device memory times a constant, or a key of random numbers.
class Scalar {
public:
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Scalar(T constant) : at(nullptr), factor(double(constant)), type(DType::Float64) {}
  Scalar(const float *at, double factor = 1) : at(at), factor(factor), type(DType::Float32) {}
  Scalar(const double *at, double factor = 1) : at(at), factor(factor), type(DType::Float64) {}
  Scalar(const int64_t *at, double factor = 1) : at(at), factor(factor), type(DType::Int64) {}

  /// Makes the key of a parameter's stochastic rounding (init.h: roundingKey).
  static Scalar roundingKey(const Control *control, int64_t parameter,
                            const float *applied = nullptr) {
    Scalar key(applied, double(parameter));
    key.control = control;
    return key;
  }

  PARTITA_RT_HOST_DEVICE double read() const {
    if (control)
      return keyOfRounding(control->seed, control->update, int64_t(factor),
                           at ? *static_cast<const float *>(at) : 1.0f);
    if (!at)
      return factor;
    double value = type == DType::Float32   ? double(*static_cast<const float *>(at))
                   : type == DType::Float64 ? *static_cast<const double *>(at)
                                            : double(*static_cast<const int64_t *>(at));
    return value * factor;
  }

private:
  const void *at;
  double factor;
  DType type;
  const Control *control = nullptr;
};

/// An integer constant, or an integer in device memory.
class Integer {
public:
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
  Integer(T number) : at(nullptr), number(int64_t(number)) {}
  Integer(const int64_t *at) : at(at), number(0) {}
  PARTITA_RT_HOST_DEVICE int64_t read() const { return at ? *at : number; }

private:
  const int64_t *at;
  int64_t number;
};

/// TokenRows whose first index is in device memory.
struct TokenRowsAt {
  int64_t full;
  Integer first;
  int64_t count;
  TokenRowsAt(int64_t vocabulary) : full(vocabulary), first(0), count(vocabulary) {}
  TokenRowsAt(TokenRows rows) : full(rows.full), first(rows.first), count(rows.count) {}
  TokenRowsAt(int64_t full, Integer first, int64_t count)
      : full(full), first(first), count(count) {}
  PARTITA_RT_HOST_DEVICE TokenRows read() const { return {full, first.read(), count}; }
};

/// Indices whose first one is in device memory.
struct IndicesAt {
  Integer first;
  int64_t count;
  IndicesAt(Indices indices) : first(indices.first), count(indices.count) {}
  IndicesAt(Integer first, int64_t count) : first(first), count(count) {}
};

/// Dropout whose key is in device memory.
struct DropoutAt {
  double ratio;
  int64_t id;
  Integer key;
  DropoutAt(const Dropout &dropout) : ratio(dropout.ratio), id(dropout.id), key(dropout.key) {}
  DropoutAt(double ratio, int64_t id, Integer key) : ratio(ratio), id(id), key(key) {}
};

/// The number of an element: that of a micro-batch's first element plus that of a shard's first
/// element within it.
struct ElementAt {
  Integer micro;
  int64_t elements; ///< per micro-batch
  Integer first;
  ElementAt(int64_t first) : micro(0), elements(0), first(first) {}
  ElementAt(const int64_t *micro, int64_t elements) : micro(micro), elements(elements), first(0) {}
  ElementAt(const int64_t *micro, int64_t elements, const int64_t *first)
      : micro(micro), elements(elements), first(first) {}
  PARTITA_RT_HOST_DEVICE int64_t read() const { return micro.read() * elements + first.read(); }
};

} // namespace partita_rt::cuda

#endif // PARTITA_RT_CUDA_SCALAR_H
