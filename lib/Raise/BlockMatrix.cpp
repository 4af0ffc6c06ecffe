//===- BlockMatrix.cpp - see BlockMatrix.h ----------------------------------------------------===//

#include "lib/Raise/BlockMatrix.h"

using namespace mlir;
using namespace partita;
using namespace partita::raise;
using partita_rt::BlockPair;
using partita_rt::BlockTerm;
using partita_rt::BlockTermKind;

int64_t BlockMatrix::count() const {
  int64_t sum = 0;
  for (const llvm::BitVector &row : rows)
    sum += row.count();
  return sum;
}

bool BlockMatrix::isLower() const {
  for (int64_t row = 0; row < n; ++row)
    if (int last = rows[row].find_last(); last > row)
      return false;
  return true;
}

namespace {

/// Adds terms that compute nothing but blocks of the matrix, and remembers what they leave.
class Compressor {
public:
  Compressor(const BlockMatrix &matrix)
      : matrix(matrix), n(matrix.size()), lower(matrix.isLower()), left(matrix) {}

  tx::BlockPatternAttr run(MLIRContext *context, int64_t mostSingle);

private:
  bool isCut(int64_t row, int64_t column) const { return lower && column > row; }
  bool rowIsFull(int64_t row) const;
  bool columnIsFull(int64_t column) const;
  bool diagonalIsFull(int64_t distance) const;
  void addRuns(BlockTermKind kind, llvm::function_ref<bool(int64_t)> isFull);
  void addSquares();
  void addBands();
  void dropCovered();
  /// Does a term add something, whose blocks are marked as done?
  bool take(const BlockTerm &term);

  const BlockMatrix &matrix;
  int64_t n;
  bool lower;
  BlockMatrix left; // what no term computes yet
  SmallVector<BlockTerm> terms;
};

} // namespace

bool Compressor::rowIsFull(int64_t row) const {
  for (int64_t column = 0; column < n && !isCut(row, column); ++column)
    if (!matrix.at(row, column))
      return false;
  return true;
}

bool Compressor::columnIsFull(int64_t column) const {
  for (int64_t row = lower ? column : 0; row < n; ++row)
    if (!matrix.at(row, column))
      return false;
  return true;
}

bool Compressor::diagonalIsFull(int64_t distance) const {
  for (int64_t row = std::max<int64_t>(0, -distance); row < n && row + distance < n; ++row)
    if (!matrix.at(row, row + distance))
      return false;
  return true;
}

bool Compressor::take(const BlockTerm &term) {
  partita_rt::BlockLayout layout{1, int32_t(n), lower, 1, &term};
  BlockMatrix after(n);
  bool adds = false;
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < n; ++column) {
      if (!left.at(row, column))
        continue;
      bool isTaken = isComputed(layout, int32_t(row), int32_t(column));
      adds |= isTaken;
      if (!isTaken)
        after.set(row, column);
    }
  if (adds) {
    left = after;
    terms.push_back(term);
  }
  return adds;
}

/// Rows or columns that are full, next to each other.
void Compressor::addRuns(BlockTermKind kind, llvm::function_ref<bool(int64_t)> isFull) {
  for (int64_t begin = 0, end; begin < n; begin = end + 1) {
    for (end = begin; end < n && isFull(end);)
      ++end;
    if (end > begin)
      take({kind, int32_t(begin), int32_t(end)});
  }
}

/// The largest squares on the diagonal, as many of one size as follow one another.
void Compressor::addSquares() {
  auto isFull = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = begin; column < end; ++column)
        if (!isCut(row, column) && !matrix.at(row, column))
          return false;
    return true;
  };
  for (int64_t begin = 0; begin < n;) {
    int64_t width = 0;
    while (begin + width < n && isFull(begin, begin + width + 1))
      ++width;
    int64_t end = begin + width;
    while (width > 1 && end < n && isFull(end, std::min(end + width, n)) &&
           (end + width >= n || !isFull(end, end + width + 1)))
      end = std::min(end + width, n);
    if (width > 1)
      take({BlockTermKind::Squares, int32_t(begin), int32_t(end), int32_t(width)});
    begin = std::max(end, begin + 1);
  }
}

void Compressor::addBands() {
  for (int64_t begin = 1 - n, end; begin < n; begin = end + 1) {
    for (end = begin; end < n && diagonalIsFull(end);)
      ++end;
    if (end > begin)
      take({BlockTermKind::Band, int32_t(begin), int32_t(end - 1)});
  }
}

/// Drops terms whose blocks the others compute: a diagonal in the corner, part of a column.
void Compressor::dropCovered() {
  auto blocks = [&](ArrayRef<BlockTerm> of) {
    return partita_rt::countBlocks({1, int32_t(n), lower, int32_t(of.size()), of.data()});
  };
  int64_t all = blocks(terms);
  for (size_t i = 0; i < terms.size();) {
    SmallVector<BlockTerm> others(terms);
    others.erase(others.begin() + i);
    if (blocks(others) == all)
      terms = std::move(others);
    else
      ++i;
  }
}

tx::BlockPatternAttr Compressor::run(MLIRContext *context, int64_t mostSingle) {
  // Whatever leaves less, then needs fewer terms: a band is no squares, and squares have a band within them.
  Compressor squaresFirst(*this);
  squaresFirst.addSquares();
  for (Compressor *each : {this, &squaresFirst}) {
    each->addBands();
    each->addRuns(BlockTermKind::Columns, [&](int64_t column) { return columnIsFull(column); });
    each->addRuns(BlockTermKind::Rows, [&](int64_t row) { return rowIsFull(row); });
  }
  if (std::pair(squaresFirst.left.count(), squaresFirst.terms.size()) <
      std::pair(left.count(), terms.size())) {
    left = squaresFirst.left;
    terms = squaresFirst.terms;
  }
  if (left.count() > mostSingle)
    return {};
  dropCovered();
  SmallVector<BlockPair> pairs;
  for (int64_t row = 0; row < n; ++row)
    for (int64_t column = 0; column < n; ++column)
      if (left.at(row, column))
        pairs.push_back({int32_t(row), int32_t(column)});
  partita_rt::BlockLayout whole{1, int32_t(n), /*lower=*/false, int32_t(terms.size()),
                                terms.data()};
  bool cuts = countBlocks(whole) + int64_t(pairs.size()) > matrix.count();
  return tx::BlockPatternAttr::get(context, lower && cuts, terms, pairs);
}

tx::BlockPatternAttr BlockMatrix::compress(MLIRContext *context, int64_t mostSingle) const {
  return Compressor(*this).run(context, mostSingle);
}
