// The documents of packed sequences.

#include "partita_rt/kernels.h"

#include <algorithm>

namespace partita_rt {

template <typename Id>
void documentStarts(int32_t *starts, const Id *ids, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row, starts += width, ids += width) {
    Id largest = width > 0 ? ids[0] : Id(0);
    int64_t start = 0;
    for (int64_t i = 0; i < width; ++i) {
      if (i > 0 && ids[i] != ids[i - 1]) {
        // An id greater than all before it is new; another one has to be searched.
        if (ids[i] <= largest && std::find(ids, ids + i, ids[i]) != ids + i)
          fail("documents: id %lld of sequence %lld comes back at position %lld, after another "
               "document; compile with --recurring-documents if that is meant",
               (long long)ids[i], (long long)row, (long long)i);
        start = i;
        largest = std::max(largest, ids[i]);
      }
      starts[i] = int32_t(start);
    }
  }
}
template void documentStarts(int32_t *, const int32_t *, int64_t, int64_t);
template void documentStarts(int32_t *, const int64_t *, int64_t, int64_t);

template <typename Id>
void documentStartsAfter(int64_t token, int32_t *starts, const Id *ids, int64_t rows,
                         int64_t width) {
  for (int64_t row = 0; row < rows; ++row, starts += width, ids += width)
    for (int64_t i = 0, start = 0; i < width; ++i) {
      if (i > 0 && int64_t(ids[i - 1]) == token)
        start = i;
      starts[i] = int32_t(start);
    }
}
template void documentStartsAfter(int64_t, int32_t *, const int32_t *, int64_t, int64_t);
template void documentStartsAfter(int64_t, int32_t *, const int64_t *, int64_t, int64_t);

} // namespace partita_rt
