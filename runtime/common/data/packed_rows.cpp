// Rows of whole documents (packed_rows.h).

#include "common/data/packed_rows.h"

#include <algorithm>

namespace partita_rt {

namespace {

/// Rows that are tried for a document: more would find better places, in more time.
constexpr size_t kOpenRows = 64;

} // namespace

PackedRows::PackedRows(const TokenFile &file, const char *option, const std::string &path,
                       int64_t sequence, int64_t end) {
  std::vector<int64_t> rowOf; // of each piece
  struct OpenRow {
    int64_t number, room;
  };
  std::vector<OpenRow> open; // the oldest first
  int64_t rowCount = 0;
  auto place = [&](int64_t begin, int64_t length) {
    auto row = std::find_if(open.begin(), open.end(),
                            [&](const OpenRow &each) { return each.room >= length; });
    if (row == open.end()) {
      if (open.size() == kOpenRows)
        open.erase(open.begin());
      row = open.insert(open.end(), {rowCount++, sequence});
    }
    pieces.push_back({begin, length});
    rowOf.push_back(row->number);
    row->room -= length;
    paddingCount -= length;
    if (row->room == 0)
      open.erase(row);
  };
  bool ends = false;
  for (int64_t begin = 0, at = 0; at < file.tokens(); ++at) {
    bool isEnd = file.token(at) == end, isLast = at + 1 == file.tokens();
    ends |= isEnd;
    bool isWhole = isEnd || isLast;
    int64_t length = at + 1 - begin;
    if (!isWhole && length < sequence)
      continue;
    bool isCut = begin > 0 && file.token(begin - 1) != end; // the rest of a longer document
    if (isWhole)
      ++(length > 1 || isCut ? documentCount : emptyCount);
    if (!isWhole || length > 1)
      place(begin,
            length); // behind a last document without an end, its row has nothing but padding
    begin = at + 1;
  }
  if (!ends)
    fail("%s: %s has no token %lld, which ends a document in this program (compiled with --pack "
         "%lld); pack by the token that ends the documents of this file, or compile without --pack",
         option, path.c_str(), (long long)end, (long long)end);
  paddingCount += rowCount * sequence;
  firstPiece.assign(size_t(rowCount) + 1, 0);
  for (int64_t row : rowOf)
    ++firstPiece[size_t(row) + 1];
  for (size_t row = 1; row < firstPiece.size(); ++row)
    firstPiece[row] += firstPiece[row - 1];
  std::vector<int64_t> next(firstPiece.begin(), firstPiece.end() - 1);
  std::vector<Piece> sorted(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i)
    sorted[size_t(next[size_t(rowOf[i])]++)] = pieces[i];
  pieces = std::move(sorted);
}

} // namespace partita_rt
