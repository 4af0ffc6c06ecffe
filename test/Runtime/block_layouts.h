// Layouts of block-sparse attention for the kernels' tests: one of each kind of term, and random ones.

#ifndef PARTITA_TEST_RUNTIME_BLOCK_LAYOUTS_H
#define PARTITA_TEST_RUNTIME_BLOCK_LAYOUTS_H

#include "reference.h"

#include <algorithm>
#include <list>
#include <random>

namespace partita_rt {

/// Layouts of the heads of one attention; they live as long as the program.
class LayoutMaker {
  struct Owner {
    std::list<std::vector<BlockTerm>> terms;
    std::list<std::vector<BlockPair>> pairs;
    std::vector<BlockLayout> layouts;
    std::vector<int32_t> ofHead;
    int64_t firstHead = 0;
  };
  Owner *owner;
  int32_t size, n;

public:
  LayoutMaker(int32_t size, int32_t n) : size(size), n(n) {
    static std::list<Owner> all;
    owner = &all.emplace_back();
  }
  /// Pairs may come in any order.
  LayoutMaker &add(bool lower, std::vector<BlockTerm> terms, std::vector<BlockPair> pairs = {}) {
    auto inOrder = [](int32_t BlockPair::*major, int32_t BlockPair::*minor) {
      return [=](const BlockPair &a, const BlockPair &b) {
        return std::pair(a.*major, a.*minor) < std::pair(b.*major, b.*minor);
      };
    };
    auto &kept = owner->terms.emplace_back(std::move(terms));
    std::sort(pairs.begin(), pairs.end(), inOrder(&BlockPair::row, &BlockPair::column));
    auto &byRow = owner->pairs.emplace_back(pairs);
    std::sort(pairs.begin(), pairs.end(), inOrder(&BlockPair::column, &BlockPair::row));
    auto &byColumn = owner->pairs.emplace_back(pairs);
    owner->layouts.push_back({size, n, lower, int32_t(kept.size()), kept.data(),
                              int32_t(byRow.size()), byRow.data(), byColumn.data()});
    return *this;
  }
  /// One to three terms of any kinds, and perhaps single blocks.
  LayoutMaker &addRandom(uint32_t seed) {
    std::mt19937 random(seed);
    auto draw = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, std::max(low, high))(random);
    };
    std::vector<BlockTerm> terms;
    for (int i = draw(1, 3); i > 0; --i) {
      int kind = draw(0, 3);
      if (kind == 0) {
        int low = draw(-n, 1);
        terms.push_back({BlockTermKind::Band, low, draw(low, std::min(low + n / 2, n))});
        continue;
      }
      int begin = draw(0, n / 2), period = draw(1, std::max(n / 3, 1));
      terms.push_back({BlockTermKind(kind), begin, draw(begin, n), period,
                       draw(1, std::max(period / 2, 1)), draw(0, 1) == 1});
    }
    std::vector<BlockPair> pairs;
    for (int i = draw(0, 1) * n; i > 0; --i)
      pairs.push_back({draw(0, n - 1), draw(0, n - 1)});
    return add(draw(0, 1) == 1, terms, pairs);
  }
  /// Returns `shape` with these layouts: of head h number (h + 1) % count, through `first` heads of other ranks.
  AttentionShape of(AttentionShape shape, int64_t first = 2) {
    int64_t count = int64_t(owner->layouts.size());
    for (int64_t h = 0; h < first + shape.heads; ++h)
      owner->ofHead.push_back(h < first ? int32_t(count) : int32_t((h - first + 1) % count));
    owner->firstHead = first;
    shape.blocks = {owner->layouts.data(), owner->ofHead.data(), &owner->firstHead};
    return shape;
  }
};

/// Is the score of a query and a key in a block that its head computes?
inline bool inComputedBlock(const AttentionShape &a, int64_t head, int64_t query, int64_t key) {
  if (!a.blocks)
    return true;
  const BlockLayout &layout = layoutOfHead(a.blocks, head);
  return isComputed(layout, int32_t(query / layout.size), int32_t(key / layout.size));
}

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_BLOCK_LAYOUTS_H
