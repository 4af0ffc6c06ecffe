//===- Holders.cpp ------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Holders.h"

using namespace partita;

llvm::SmallVector<int64_t> partita::listPositions(const PositionSet &positions) {
  llvm::SmallVector<int64_t> list;
  for (int64_t position = 0; position < kMaxPositions; ++position)
    if (positions.test(position))
      list.push_back(position);
  return list;
}

Holders Holders::on(llvm::ArrayRef<int64_t> positions, bool partial) {
  Holders holders{{}, partial};
  for (int64_t position : positions)
    holders.positions.set(position);
  return holders;
}

int64_t Holders::first() const {
  int64_t position = 0;
  while (position < kMaxPositions && !positions.test(position))
    ++position;
  return position;
}

std::string Holders::text(llvm::StringRef noun) const {
  if (isEverywhere())
    return "everywhere";
  std::string list;
  for (int64_t position : listPositions(positions))
    list += (list.empty() ? "" : ", ") + std::to_string(position);
  return (partial ? "in parts on " : "on ") + noun.str() + (isOne() ? " " : "s ") + list;
}
