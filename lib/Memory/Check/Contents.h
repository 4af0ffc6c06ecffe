//===- Contents.h - what the bytes of a rank's memory hold --------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_MEMORY_CHECK_CONTENTS_H
#define PARTITA_LIB_MEMORY_CHECK_CONTENTS_H

#include "partita/Analysis/Bytes.h"
#include <climits>

namespace partita::memory::check {

using analysis::Bytes;

/// A value that was put somewhere, whatever views there are of it.
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
  mlir::Block *home = nullptr; ///< where that op is; null of a symbol
  int lastRead = -1;           ///< the number of the op, or kAlways
  bool isThere = false;
  bool isOfSymbol = false;              ///< the value of one, or written to it where it stands
  llvm::SmallVector<Damage, 0> damages; ///< what was written there since
};

/// Contents by number. What is written lies over what was there before; a content notes which of its bytes have gone, as
/// long as anybody wants to read it.
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
  /// The op leaves something in these bytes that nobody wants to read.
  void scribble(const Bytes &bytes, mlir::Operation *by, int now, int except = -1);

  struct Loss {
    int64_t byte;
    mlir::Operation *by;
    int when;
  };
  /// Which of `bytes` have been overwritten since the content was put there.
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
