// Which blocks of attention's scores are computed, per head: block-sparse attention (Child et al., arXiv
// 1904.10509; Zaheer et al., arXiv 2007.14062). The compiler checks and counts layouts, and the kernels of
// both targets choose their tiles, by these functions alone.
//
// A layout is a union of terms, each a line of numbers whatever the sequence, and of single blocks. Every
// function looks at each term once and searches the single blocks: O(terms + log blocks), without a table of
// n x n.

#ifndef PARTITA_RT_BLOCK_LAYOUT_H
#define PARTITA_RT_BLOCK_LAYOUT_H

#include "host_device.h"
#include <cstdint>
#include <numeric>

namespace partita_rt {

/// The forms of a term; block (i, j), of row (queries) i and column (keys) j, is computed by a
enum class BlockTermKind : int32_t {
  Band,    ///< if begin <= j - i <= end
  Squares, ///< if begin <= i, j < end and (i - begin) / period == (j - begin) / period and, if
           ///< `below`, j <= i
  Columns, ///< if begin <= j < end, (j - begin) % period < width and, if `below`, row i is not before
           ///< the group's first column: i >= j - (j - begin) % period
  Rows,    ///< the same as of columns, i and j exchanged
};

/// In blocks. Except for a band, 0 <= begin <= end and period >= 1; Columns and Rows: width >= 1.
struct BlockTerm {
  BlockTermKind kind;
  int32_t begin, end;
  int32_t period = 1, width = 1;
  bool below = false;
};

struct BlockPair {
  int32_t row, column;
};

/// Of n x n blocks of size x size scores; n < 2^30.
struct BlockLayout {
  int32_t size;
  int32_t n;
  bool lower; ///< only blocks j <= i, of all terms and single blocks
  int32_t termCount;
  const BlockTerm *terms;
  int32_t pairCount = 0;
  const BlockPair *byRow = nullptr;    ///< single blocks, ascending by row, then column
  const BlockPair *byColumn = nullptr; ///< the same, ascending by column, then row
};

/// The layouts of one attention: of head h of this rank, layouts[ofHead[h + *firstHead]].
struct BlockLayouts {
  /// Null: all blocks are computed.
  const BlockLayout *layouts = nullptr;
  /// Null: all heads have layouts[0].
  const int32_t *ofHead = nullptr;
  /// Null: 0; else the first of this rank's heads among those of ofHead.
  const int64_t *firstHead = nullptr;

  PARTITA_RT_HOST_DEVICE constexpr explicit operator bool() const { return layouts != nullptr; }
};

PARTITA_RT_HOST_DEVICE inline const BlockLayout &layoutOfHead(const BlockLayouts &blocks,
                                                              int64_t head) {
  return blocks
      .layouts[blocks.ofHead ? blocks.ofHead[head + (blocks.firstHead ? *blocks.firstHead : 0)]
                             : 0];
}

/// What a term computes of one row or column: [begin, end), of each `period` the first `width`.
struct BlockRun {
  int32_t begin, end, period, width;

  /// The first computed one >= at, or `none`.
  PARTITA_RT_HOST_DEVICE int32_t next(int32_t at, int32_t none) const {
    if (at < begin)
      at = begin;
    int32_t within = (at - begin) % period;
    if (within >= width)
      at += period - within;
    return at < end ? at : none;
  }
  /// How many of [from, to), begin <= from, to <= end.
  PARTITA_RT_HOST_DEVICE int32_t count(int32_t from, int32_t to) const {
    return countBefore(to - begin) - countBefore(from - begin);
  }
  PARTITA_RT_HOST_DEVICE bool isFull() const { return width >= period; }

private:
  PARTITA_RT_HOST_DEVICE int32_t countBefore(int32_t length) const {
    int32_t rest = length % period, whole = width < period ? width : period;
    return length / period * whole + (rest < width ? rest : width);
  }
};

/// The run of row `line`, or of column `line` if `transposed`.
PARTITA_RT_HOST_DEVICE inline BlockRun runOf(const BlockTerm &term, int32_t line, int32_t n,
                                             bool transposed) {
  int32_t begin = term.begin, end = term.end;
  BlockTermKind kind = term.kind;
  if (transposed && kind == BlockTermKind::Columns)
    kind = BlockTermKind::Rows;
  else if (transposed && kind == BlockTermKind::Rows)
    kind = BlockTermKind::Columns;
  BlockRun run{0, 0, 1, 1};
  if (kind == BlockTermKind::Band) {
    run.begin = line + (transposed ? -end : begin);
    run.end = line + (transposed ? -begin : end) + 1;
  } else if (kind == BlockTermKind::Columns) {
    run = {begin, end, term.period, term.width};
    if (term.below) { // groups whose first column is not after this row
      int32_t groups = line < begin ? 0 : (line - begin) / term.period + 1;
      if (groups < (end - begin) / term.period + 1)
        run.end = begin + groups * term.period < end ? begin + groups * term.period : end;
    }
  } else if (line >= begin && line < end) {
    int32_t within = (line - begin) % term.period;
    if (kind == BlockTermKind::Squares) {
      run.begin = line - within;
      run.end = end - run.begin < term.period ? end : run.begin + term.period;
      if (term.below && transposed)
        run.begin = line;
      else if (term.below)
        run.end = line + 1;
    } else if (within < term.width) {
      run.begin = term.below ? line - within : 0;
      run.end = n;
    }
  }
  if (run.begin < 0)
    run.begin = 0;
  if (run.end > n)
    run.end = n;
  return run;
}

/// A single block as its row or, `transposed`, its column has it.
struct BlockOfLine {
  int32_t line, at;
};
PARTITA_RT_HOST_DEVICE inline BlockOfLine singleBlock(const BlockLayout &layout, int32_t number,
                                                      bool transposed) {
  BlockPair pair = (transposed ? layout.byColumn : layout.byRow)[number];
  return transposed ? BlockOfLine{pair.column, pair.row} : BlockOfLine{pair.row, pair.column};
}

/// The number of the first single block not before (line, at), or pairCount.
PARTITA_RT_HOST_DEVICE inline int32_t firstSingleBlock(const BlockLayout &layout, int32_t line,
                                                       int32_t at, bool transposed) {
  int32_t low = 0, high = layout.pairCount;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    BlockOfLine block = singleBlock(layout, middle, transposed);
    if (block.line < line || (block.line == line && block.at < at))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Calls visit(first, last) for runs [first, last) of computed blocks of a row (of a column, if
/// `transposed`), cut to [from, end). They may overlap, and come in any order.
template <typename Visit>
PARTITA_RT_HOST_DEVICE inline void forComputedOfLine(const BlockLayout &layout, int32_t line,
                                                     int32_t from, int32_t end, bool transposed,
                                                     Visit visit) {
  if (layout.lower && transposed && from < line)
    from = line;
  if (layout.lower && !transposed && end > line + 1)
    end = line + 1;
  auto visitCut = [&](int32_t first, int32_t last) {
    first = first < from ? from : first;
    last = last < end ? last : end;
    if (first < last)
      visit(first, last);
  };
  for (int32_t t = 0; t < layout.termCount; ++t) {
    BlockRun run = runOf(layout.terms[t], line, layout.n, transposed);
    if (run.isFull()) {
      visitCut(run.begin, run.end);
      continue;
    }
    int32_t group = run.begin; // that has `from`, or the first
    if (from > group)
      group += (from - group) / run.period * run.period;
    for (; group < run.end && group < end; group += run.period)
      visitCut(group, group + run.width < run.end ? group + run.width : run.end);
  }
  for (int32_t i = firstSingleBlock(layout, line, from, transposed); i < layout.pairCount; ++i) {
    BlockOfLine block = singleBlock(layout, i, transposed);
    if (block.line != line || block.at >= end)
      break;
    visit(block.at, block.at + 1);
  }
}

/// The first computed block at >= from of a row (of a column, if `transposed`), or n.
PARTITA_RT_HOST_DEVICE inline int32_t nextBlockOfLine(const BlockLayout &layout, int32_t line,
                                                      int32_t from, bool transposed) {
  int32_t n = layout.n, end = layout.lower && !transposed ? line + 1 : n, nearest = n;
  if (layout.lower && transposed && from < line)
    from = line;
  for (int32_t t = 0; t < layout.termCount && nearest != from; ++t) {
    int32_t at = runOf(layout.terms[t], line, n, transposed).next(from, n);
    nearest = at < nearest ? at : nearest;
  }
  if (int32_t i = firstSingleBlock(layout, line, from, transposed); i < layout.pairCount) {
    BlockOfLine block = singleBlock(layout, i, transposed);
    nearest = block.line == line && block.at < nearest ? block.at : nearest;
  }
  return nearest < end ? nearest : n;
}

/// The first computed column >= `column` of a row of blocks, or n.
PARTITA_RT_HOST_DEVICE inline int32_t nextBlock(const BlockLayout &layout, int32_t row,
                                                int32_t column) {
  return nextBlockOfLine(layout, row, column, /*transposed=*/false);
}

/// The first row >= `row` in which this column of blocks is computed, or n.
PARTITA_RT_HOST_DEVICE inline int32_t nextBlockOfColumn(const BlockLayout &layout, int32_t column,
                                                        int32_t row) {
  return nextBlockOfLine(layout, column, row, /*transposed=*/true);
}

PARTITA_RT_HOST_DEVICE inline bool isComputed(const BlockLayout &layout, int32_t row,
                                              int32_t column) {
  return nextBlock(layout, row, column) == column;
}

/// How many columns of a row [from, to) the terms compute, looked up one by one.
inline int64_t lookUpBlocks(const BlockLayout &terms, int32_t row, int32_t from, int32_t to) {
  int64_t count = 0;
  for (int32_t column = nextBlock(terms, row, from); column < to;
       column = nextBlock(terms, row, column + 1))
    ++count;
  return count;
}

/// How many columns of a row are computed, of the first `end`. Between two ends of terms the same terms hold: what one
/// of them computes there has a formula, and what several do repeats after the least common multiple of their periods.
inline int64_t countBlocksOfRow(const BlockLayout &layout, int32_t row, int32_t end) {
  int32_t last = layout.lower && row + 1 < end ? row + 1 : end;
  int64_t count = 0;
  BlockLayout terms = layout;
  terms.pairCount = 0;
  for (int32_t at = 0, to; at < last; at = to) {
    to = last;
    int32_t holding = 0, full = 0;
    int64_t period = 1; // of all that hold, or longer than the row
    BlockRun only{0, 0, 1, 1};
    for (int32_t t = 0; t < layout.termCount; ++t) {
      BlockRun run = runOf(layout.terms[t], row, layout.n, /*transposed=*/false);
      if (run.begin > at && run.begin < run.end && run.begin < to)
        to = run.begin;
      if (run.begin > at || run.end <= at)
        continue;
      to = run.end < to ? run.end : to;
      ++holding;
      full += run.isFull();
      period = period > layout.n ? period : std::lcm(period, int64_t(run.period));
      only = run;
    }
    if (full) {
      count += to - at;
    } else if (holding == 1) {
      count += only.count(at, to);
    } else if (holding > 1) {
      int64_t repeats = (to - at) / period;
      if (repeats > 0)
        count += repeats * lookUpBlocks(terms, row, at, at + int32_t(period));
      count += lookUpBlocks(terms, row, at + int32_t(repeats * period), to);
    }
  }
  for (int32_t i = firstSingleBlock(layout, row, 0, /*transposed=*/false);
       i < layout.pairCount && layout.byRow[i].row == row; ++i)
    count += layout.byRow[i].column < last && !isComputed(terms, row, layout.byRow[i].column);
  return count;
}

/// How many of the n x n blocks are computed. A causal mask leaves those up to the diagonal: with
/// `causal`, these are counted.
inline int64_t countBlocks(const BlockLayout &layout, bool causal = false) {
  int64_t count = 0;
  for (int32_t row = 0; row < layout.n; ++row)
    count += countBlocksOfRow(layout, row, causal ? row + 1 : layout.n);
  return count;
}

} // namespace partita_rt

#endif // PARTITA_RT_BLOCK_LAYOUT_H
