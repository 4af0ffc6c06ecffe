#include "cpu/kernels/attention_columns.h"

namespace partita_rt {

/// Calls visit(key, end) for every run of blocks of a row that the layout computes and that has some of keys
/// [key, keyEnd), cut to these. Runs may overlap, and come in any order.
template <typename Visit>
static void forComputed(const BlockLayout &layout, int64_t row, int64_t key, int64_t keyEnd,
                        Visit visit) {
  int64_t size = layout.size;
  forComputedOfLine(layout, int32_t(row), int32_t(key / size), int32_t((keyEnd + size - 1) / size),
                    /*transposed=*/false, [&](int64_t first, int64_t end) {
                      visit(std::max(first * size, key), std::min(end * size, keyEnd));
                    });
}

int64_t firstComputed(const BlockLayout &layout, int64_t row, int64_t key, int64_t keyEnd) {
  if (key >= keyEnd)
    return keyEnd;
  int64_t column = nextBlock(layout, int32_t(row), int32_t(key / layout.size));
  return std::min(std::max(column * layout.size, key), keyEnd);
}

int64_t endOfComputed(const BlockLayout &layout, int64_t row, int64_t key, int64_t keyEnd) {
  if (key >= keyEnd)
    return key;
  int64_t size = layout.size;
  auto column = int32_t(key / size), columnEnd = int32_t((keyEnd + size - 1) / size), end = column;
  if (layout.lower)
    columnEnd = std::min(columnEnd, int32_t(row) + 1);
  for (int32_t t = 0; t < layout.termCount; ++t) {
    BlockRun run = runOf(layout.terms[t], int32_t(row), layout.n, /*transposed=*/false);
    int32_t last = std::min(run.end, columnEnd); // the end of the run's last block before columnEnd
    if (last > run.begin) {
      int32_t within = (last - 1 - run.begin) % run.period;
      end = std::max(end, last - std::max(within + 1 - run.width, 0));
    }
  }
  int32_t after = firstSingleBlock(layout, int32_t(row), columnEnd, /*transposed=*/false);
  if (after > 0 && layout.byRow[after - 1].row == row)
    end = std::max(end, layout.byRow[after - 1].column + 1);
  return end > column ? std::min(end * size, keyEnd) : key;
}

int64_t passesOfBlock(const BlockLayout &layout) {
  int32_t half = layout.n / 2; // of the last row of blocks, whose queries see all keys
  int64_t far = layout.n > 0 ? countBlocksOfRow(layout, layout.n - 1, half) : 0;
  return far == 0 ? kFewestPasses : std::clamp(half / far, kFewestPasses, kMostPasses);
}

std::vector<TileBlocks> tileBlocks(const RunSight &sight, const BlockLayout *layout,
                                   int64_t blockSize) {
  std::vector<TileBlocks> tiles;
  tiles.reserve(size_t((sight.queries + kQueryTile - 1) / kQueryTile));
  for (int64_t query = 0; query < sight.queries; query += kQueryTile) {
    int64_t last = std::min(query + kQueryTile, sight.queries) - 1;
    int64_t end = sight.end(last),
            first = std::min(sight.first(query), std::max<int64_t>(end - 1, 0));
    if (layout && end > first) {
      int64_t from = end, to = first;
      int64_t key = sight.keyNumber, lastRow = (sight.queryNumber + last) / layout->size;
      for (int64_t row = (sight.queryNumber + query) / layout->size; row <= lastRow; ++row) {
        from = std::min(from, firstComputed(*layout, row, first + key, end + key) - key);
        to = std::max(to, endOfComputed(*layout, row, first + key, end + key) - key);
      }
      if (from < to) {
        first = from;
        end = to;
      } else {
        end = first; // it computes none
      }
    }
    tiles.push_back(
        {first / blockSize * blockSize, std::max(first, end - 1) / blockSize * blockSize});
  }
  return tiles;
}

TileColumns::TileColumns(const BlockLayout *layout, int64_t query, int64_t queries, int64_t key,
                         int64_t keys)
    : firstQuery(query), size(layout ? layout->size : 1), sparse(layout) {
  int64_t all = padded(keys) / kPad;
  uint16_t some[kKeyVectors] = {};
  if (layout) {
    for (int64_t row = 0; row < queries; ++row)
      lines[row] = uint8_t((query + row) / size - query / size);
    compute(*layout, queries, key, keys);
    for (int64_t row = 0; row <= lines[queries - 1]; ++row)
      for (int64_t vector = 0; vector < all; ++vector)
        some[vector] |= computed[row][vector];
  }
  for (int64_t vector = 0; vector < all; ++vector) {
    before[vector] = int16_t(vectors);
    if (!layout || some[vector])
      numbers[vectors++] = int16_t(vector);
  }
  before[all] = before[all + 1] = int16_t(vectors);
}

void TileColumns::compute(const BlockLayout &layout, int64_t queries, int64_t key, int64_t keys) {
  for (int64_t row = 0; row <= lines[queries - 1]; ++row) {
    uint16_t *bits = computed[row];
    std::fill_n(bits, padded(keys) / kPad, uint16_t(0));
    forComputed(layout, firstQuery / size + row, key, key + keys, [&](int64_t first, int64_t end) {
      for (int64_t at = first - key; at < end - key;) {
        int64_t vector = at / kPad, next = std::min((vector + 1) * kPad, end - key);
        bits[vector] |=
            uint16_t((uint32_t(1) << (next - vector * kPad)) - (uint32_t(1) << at % kPad));
        at = next;
      }
    });
  }
}

void TileColumns::begin(int64_t pass, int64_t passSize, const RunSight &sight, int64_t queries,
                        int64_t key, int64_t keys) {
  firstVector = pass * passSize / kPad;
  count = std::clamp<int64_t>(allUpTo(keys) - pass * passSize, 0, passSize);
  hides = false;
  if (!sparse)
    return;
  int64_t end = padded(count) / kPad;
  for (int64_t row = 0; row <= lines[queries - 1] && !hides; ++row) {
    int64_t last = std::min((firstQuery / size + row + 1) * size, firstQuery + queries) - 1;
    int64_t seen = std::min(sight.end(last - sight.queryNumber) - key, keys);
    for (int64_t v = 0; v < end && keyOf(v) < seen; ++v) {
      auto wanted = uint16_t((uint32_t(1) << std::min(seen - keyOf(v), kPad)) - 1);
      hides = hides || (computed[row][keyOf(v) / kPad] & wanted) != wanted;
    }
  }
}

bool TileColumns::computes(int64_t row, int64_t rows, int64_t vector, int64_t count) const {
  if (!hides)
    return true;
  for (int64_t line = lines[row]; line <= lines[row + rows - 1]; ++line)
    if (lineComputes(line, vector, count))
      return true;
  return false;
}

TileColumns::Queries TileColumns::queriesThatCompute(int64_t row, int64_t end, int64_t vector,
                                                     int64_t count) const {
  if (!hides)
    return {row, end};
  if (row == end)
    return {end, end};
  int64_t first = lines[row], last = lines[end - 1];
  while (first <= last && !lineComputes(first, vector, count))
    ++first;
  while (first < last && !lineComputes(last, vector, count))
    --last;
  if (first > last)
    return {end, end};
  int64_t before = firstQuery % size; // queries of the first line that are no queries of the tile
  return {std::max(row, first * size - before), std::min(end, (last + 1) * size - before)};
}

void TileColumns::hide(float *scores, int64_t row, int64_t seen) const {
  const uint16_t *bits = computed[lines[row]];
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  for (int64_t v = 0; v * kPad < seen; ++v) {
    uint16_t of = bits[keyOf(v) / kPad];
    float *each = scores + v * kPad;
    if (of == 0)
      store(each, splat(kHidden));
    else if (of != 0xffff)
      for (int64_t j = 0; j < kPad; ++j)
        each[j] = of >> j & 1 ? each[j] : kHidden;
  }
}

} // namespace partita_rt
