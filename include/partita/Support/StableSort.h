//===- StableSort.h - a sort that keeps the order of equal elements -----------------*- C++ -*-===//
//
// Replaces llvm::stable_sort: libstdc++'s std::stable_sort instantiates std::get_temporary_buffer,
// which C++17 deprecates, so clang warns in every file that uses it.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_SUPPORT_STABLESORT_H
#define PARTITA_SUPPORT_STABLESORT_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"

namespace partita {

/// Sorts `range` by `less`; equivalent elements keep their order.
template <typename Range, typename Less> void stableSort(Range &range, Less less) {
  using Element = std::decay_t<decltype(range[0])>;
  auto order = llvm::to_vector(llvm::seq<size_t>(0, range.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return less(range[a], range[b]) || (a < b && !less(range[b], range[a]));
  });
  llvm::SmallVector<Element> sorted;
  for (size_t at : order)
    sorted.push_back(std::move(range[at]));
  llvm::move(sorted, range.begin());
}

} // namespace partita

#endif // PARTITA_SUPPORT_STABLESORT_H
