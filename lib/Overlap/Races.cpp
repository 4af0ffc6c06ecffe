//===- Races.cpp - see Races.h ----------------------------------------------------------------===//

#include "lib/Overlap/Races.h"
#include "dialects/Pipe/Pipe.h"

using namespace mlir;
using namespace partita;
using namespace partita::overlap;

/// The runs of an access, consecutive elements joined: [begin, end) in bytes, ascending if the
/// strides are.
static SmallVector<std::pair<int64_t, int64_t>> runsOf(const Access &access) {
  SmallVector<std::pair<int64_t, int64_t>> runs = {{access.begin, access.begin + access.width}};
  for (auto [size, stride] :
       llvm::reverse(llvm::zip_equal(access.view.shape, access.view.strides))) {
    int64_t step = stride * access.width;
    if (size == 1 || step == 0)
      continue;
    if (runs.size() == 1 && runs[0].second - runs[0].first == step) {
      runs[0].second = runs[0].first + size * step;
      continue;
    }
    SmallVector<std::pair<int64_t, int64_t>> all;
    for (int64_t i = 0; i < size; ++i)
      for (auto [begin, end] : runs)
        all.push_back({begin + i * step, end + i * step});
    runs = std::move(all);
  }
  llvm::sort(runs);
  return runs;
}

/// The first byte that both touch; none where they touch none in common.
static std::optional<int64_t> commonByte(const Access &a, const Access &b) {
  if (a.space != b.space || a.end <= b.begin || b.end <= a.begin)
    return std::nullopt;
  auto left = runsOf(a), right = runsOf(b);
  for (auto i = left.begin(), j = right.begin(); i != left.end() && j != right.end();) {
    if (i->second <= j->first)
      ++i;
    else if (j->second <= i->first)
      ++j;
    else
      return std::max(i->first, j->first);
  }
  return std::nullopt;
}

static LogicalResult race(Operation *op, const char *does, const Flight &flight,
                          const char *meanwhile, int64_t byte, rt::Space space) {
  InFlightDiagnostic error = op->emitError();
  error << does << " byte " << byte << " of the " << rt::toString(space) << ", which '"
        << flight.start->getName().getStringRef() << "' on the stream " << flight.stream
        << meanwhile << "; nothing orders the two";
  error.attachNote(flight.start->getLoc())
      << (isa<pipe::SendOp>(flight.start)
              ? "it is sent here, and waited for when this pass runs again"
              : "it starts here and is waited for later");
  return failure();
}

LogicalResult overlap::checkPair(Operation *op, const Accesses &accesses, const Flight &flight) {
  for (const Access &write : accesses.writes) {
    for (const Access &other : flight.accesses.writes)
      if (auto byte = commonByte(write, other))
        return race(op, "writes", flight, " writes as well", *byte, write.space);
    for (const Access &other : flight.accesses.reads)
      if (auto byte = commonByte(write, other))
        return race(op, "writes", flight, " still reads", *byte, write.space);
  }
  for (const Access &read : accesses.reads)
    for (const Access &other : flight.accesses.writes)
      if (auto byte = commonByte(read, other))
        return race(op, "reads", flight, " still writes", *byte, read.space);
  return success();
}
