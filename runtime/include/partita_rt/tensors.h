// Tables of tensors in an emitted program: each row has a tensor's byte offset from the base of
// each column, and the other data that calls over the table need.
//
//     static constexpr TensorRow<4> kUpdates[] = { // p, m, v, g
//         {{1024, 2048, 3072, 0}, 256, 0, 1},
//     };
//     adamw_all(rank.persistent(0), rank.persistent(0), rank.persistent(0), rank.at(0),
//               tensorRows(kUpdates), {adamw_step{rate, t, 0.9}});

#ifndef PARTITA_RT_TENSORS_H
#define PARTITA_RT_TENSORS_H

#include "partita_rt/host_device.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace partita_rt {

template <int kColumns> struct TensorRow {
  int64_t offsets[kColumns];
  int64_t elements;
  int step;      ///< index of its scalars in an update's lists
  int parameter; ///< number of its parameter in the program; -1: none
};

/// Some rows of a table.
template <int kColumns> struct TensorRows {
  const TensorRow<kColumns> *first;
  int64_t count;
  const TensorRow<kColumns> *begin() const { return first; }
  const TensorRow<kColumns> *end() const { return first + count; }
};

template <int kColumns, size_t kRows>
TensorRows<kColumns> tensorRows(const TensorRow<kColumns> (&table)[kRows], int64_t first = 0,
                                int64_t count = kRows) {
  return {table + first, count};
}

/// Returns the base of a column, moved by a number of bytes.
template <typename T> PARTITA_RT_HOST_DEVICE T *moved(T *base, int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T *>(reinterpret_cast<Byte *>(base) + bytes);
}

} // namespace partita_rt

#endif // PARTITA_RT_TENSORS_H
