//===- Contents.h - what the bytes of a rank's memory hold --------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_MEMORY_CHECK_CONTENTS_H
#define PARTITA_LIB_MEMORY_CHECK_CONTENTS_H

#include "partita/Analysis/Bytes.h"
#include <climits>

namespace partita::memory::check {

using analysis::Bytes;

/// A value that an op puts in memory; all views of it are one content.
struct Content {
  struct Damage {
    Bytes bytes;
    mlir::Operation *by;
    int when;
  };
  static constexpr int kAlways = INT_MAX;

  Content(Bytes bytes, mlir::Operation *maker, mlir::Block *home = nullptr)
      : bytes(std::move(bytes)), maker(maker), home(home) {}

  Bytes bytes;
  mlir::Operation *maker;      ///< the op that computes it, or its symbol
  mlir::Block *home = nullptr; ///< where that op is; null for a symbol
  int lastRead = -1;           ///< the number of the last op that reads it, or kAlways
  bool isThere = false;
  bool isOfSymbol = false;              ///< the value of a symbol, or written to one in place
  llvm::SmallVector<Damage, 0> damages; ///< writes to its bytes since then
};

/// Contents by number. A write overwrites the contents that were there before; a content notes which of its bytes are
/// lost until its last read.
class Contents {
public:
  int add(Content content) {
    contents.push_back(std::move(content));
    return static_cast<int>(contents.size()) - 1;
  }
  int size() const { return static_cast<int>(contents.size()); }
  Content &operator[](int number) { return contents[number]; }
  const Content &operator[](int number) const { return contents[number]; }

  /// The op with number `now` puts the content in its place.
  void write(int number, mlir::Operation *by, int now);
  /// The op writes something to these bytes that no op reads.
  void scribble(const Bytes &bytes, mlir::Operation *by, int now, int except = -1);

  struct Loss {
    int64_t byte;
    mlir::Operation *by;
    int when;
  };
  /// Returns a byte of `bytes` that was overwritten since the content was put there.
  std::optional<Loss> findLoss(int number, const Bytes &bytes) const;

private:
  struct There {
    int64_t begin, end;
    int number;
  };
  std::vector<Content> contents;
  std::array<std::vector<There>, 8> there; ///< by space
};

} // namespace partita::memory::check

#endif // PARTITA_LIB_MEMORY_CHECK_CONTENTS_H
