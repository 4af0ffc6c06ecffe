//===- Ledger.cpp - what memory is used for, and where usage peaks ----------------------------===//

#include "partita/Memory/Ledger.h"
#include "partita/Analysis/Collectives.h"
#include <map>

using namespace mlir;
using namespace partita;
using namespace partita::memory;

static constexpr KindRow kRows[kKinds] = {
    {"parameters", "#4e79a7", true},
    {"optimizer states", "#a0cbe8", true},
    {"gathered parameters", "#edc948", false},
    {"secondary copies", "#ff9da7", false},
    {"gradients", "#f28e2b", false},
    {"activations", "#59a14f", false},
    {"communication buffers", "#e15759", false},
    {"workspace", "#b07aa1", false},
};

ArrayRef<KindRow> memory::kinds() { return kRows; }

int64_t memory::total(const Sums &sums) {
  int64_t result = 0;
  for (int64_t bytes : sums)
    result += bytes;
  return result;
}

std::vector<Sums> Ledger::live() const {
  std::vector<Sums> result(ops + 1, Sums{}); // changes first, summed up below
  for (const Buffer &buffer : buffers) {
    size_t kind = static_cast<size_t>(buffer.kind);
    result[buffer.begin][kind] += align(buffer.bytes);
    result[buffer.end + 1][kind] -= align(buffer.bytes);
  }
  result.pop_back();
  for (size_t op = 1; op < result.size(); ++op)
    for (size_t kind = 0; kind < kKinds; ++kind)
      result[op][kind] += result[op - 1][kind];
  return result;
}

std::vector<Ledger::KindUse> Ledger::byKind() const {
  std::vector<KindUse> uses;
  std::vector<Sums> sums = live();
  for (size_t kind = 0; kind < kKinds; ++kind) {
    KindUse use{static_cast<Kind>(kind)};
    for (auto [op, at] : llvm::enumerate(sums))
      if (at[kind] > use.largest)
        use.largest = at[kind], use.largestAt = static_cast<int64_t>(op);
    use.atPeak = sums.empty() ? 0 : sums[at.op][kind];
    if (use.largest > 0)
      uses.push_back(use);
  }
  return uses;
}

/// Orders places as in the model: before the layers, each layer, after the layers, then the rest.
static int64_t rank(int64_t place) {
  if (place >= 0 || place == analysis::Before)
    return place;
  return INT64_MAX / 2 - place; // After, Once, Gradients, Elsewhere
}

std::vector<Ledger::PlaceUse> Ledger::byPlace() const {
  struct Found {
    PlaceUse use;
    std::map<int64_t, int64_t> changes; ///< by op
  };
  std::map<int64_t, Found> places;
  for (const Buffer &buffer : buffers) {
    if (buffer.kind != Kind::Activation)
      continue;
    Found &found = places[rank(buffer.place)];
    found.use.place = buffer.place;
    found.changes[buffer.begin] += align(buffer.bytes);
    found.changes[buffer.end + 1] -= align(buffer.bytes);
    if (buffer.livesAt(at.op))
      (buffer.backward ? found.use.backward : found.use.forward) += align(buffer.bytes);
  }
  std::vector<PlaceUse> uses;
  for (auto &[order, found] : places) {
    int64_t live = 0;
    for (auto [op, change] : found.changes)
      found.use.largest = std::max(found.use.largest, live += change);
    uses.push_back(found.use);
  }
  return uses;
}

std::vector<const Buffer *> Ledger::holders(size_t most) const {
  std::vector<const Buffer *> alive;
  for (const Buffer &buffer : buffers)
    if (buffer.livesAt(at.op))
      alive.push_back(&buffer);
  llvm::sort(alive, [](const Buffer *a, const Buffer *b) { // ties in the ledger's order
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
  });
  alive.resize(std::min(alive.size(), most));
  return alive;
}
