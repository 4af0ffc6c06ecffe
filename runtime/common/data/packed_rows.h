// Rows of whole documents, for programs that keep the documents of a row apart (Program::documentEnd).
//
// A document is the tokens up to and including the one that ends it; the file's last one may lack that. Each is in one
// row, so that its tokens see what they would see without packing. One longer than a row is cut into rows of its own and
// a rest, which is packed like a document; the token behind a cut is the label of the one before it, as elsewhere, but
// sees nothing from before the cut.
//
// Documents go, in the file's order, to the first row that has room for them, of the last 64 that were begun. What
// remains of a row is filled with the token that ends documents: documents of one token, without labels. Documents of the
// file that have one token are left out, and so is a rest of one: every row has a label.

#ifndef PARTITA_RT_COMMON_DATA_PACKED_ROWS_H
#define PARTITA_RT_COMMON_DATA_PACKED_ROWS_H

#include "common/data/data.h"

#include <vector>

namespace partita_rt {

class PackedRows {
public:
  /// Reads all of the file. Throws Error, after `option` ("--data"), if no token is `end`.
  PackedRows(const TokenFile &file, const char *option, const std::string &path, int64_t sequence,
             int64_t end);

  int64_t rows() const { return int64_t(firstPiece.size()) - 1; }
  /// Of two tokens or more.
  int64_t documents() const { return documentCount; }
  /// Of one token, which no row has.
  int64_t emptyDocuments() const { return emptyCount; }
  /// Positions of rows that have no token of the file.
  int64_t padding() const { return paddingCount; }

  /// Calls `visit(i, position)` for elements first .. first + n - 1 of a row: i counts from 0, `position` is the
  /// token's in the file, -1 in what remains of a row.
  template <typename Visit>
  void forTokens(int64_t row, int64_t first, int64_t n, Visit visit) const {
    int64_t at = 0, i = 0;
    for (int64_t p = firstPiece[row]; p < firstPiece[row + 1]; at += pieces[p++].length)
      for (; i < n && first + i < at + pieces[p].length; ++i)
        visit(i, pieces[p].begin + first + i - at);
    for (; i < n; ++i)
      visit(i, int64_t(-1));
  }

private:
  /// Consecutive tokens of the file.
  struct Piece {
    int64_t begin, length;
  };
  std::vector<Piece> pieces;       ///< row by row
  std::vector<int64_t> firstPiece; ///< of each row, and the end of the last one
  int64_t documentCount = 0, emptyCount = 0, paddingCount = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_DATA_PACKED_ROWS_H
