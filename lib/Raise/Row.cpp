//===- Row.cpp - see Row.h --------------------------------------------------------------------===//

#include "partita/Raise/Row.h"
#include <algorithm>
#include <cstring>

using namespace partita;
using namespace partita::raise;

static bool isSame(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; } // also NaN

void Row::append(int64_t count, double first, double step) {
  if (count <= 0)
    return;
  bool isRun =
      isExact(first) && isExact(step) && isExact(first + step * static_cast<double>(count - 1));
  if (step != 0 && count > 1 && !isRun) {
    for (int64_t i = 0; i < count; ++i)
      append(1, first + step * static_cast<double>(i));
    return;
  }
  if (count == 1)
    step = 0;
  int64_t begin = size();
  if (step == 0 && !all.empty() && all.back().step == 0 && isSame(all.back().first, first))
    all.back().end += count;
  else
    all.push_back({begin, begin + count, first, step});
}

Row Row::slice(int64_t offset, int64_t stride, int64_t size) const {
  Row result;
  for (const Run &run : all) {
    int64_t next = offset + result.size() * stride; // the first element not yet taken
    if (result.size() == size)
      break;
    if (next >= run.end)
      continue;
    int64_t count = std::min(size - result.size(), (run.end - next + stride - 1) / stride);
    result.append(count, run.at(next), run.step * static_cast<double>(stride));
  }
  return result;
}

std::vector<double> Row::elements() const {
  std::vector<double> result;
  result.reserve(size());
  for (const Run &run : all)
    for (int64_t j = run.begin; j < run.end; ++j)
      result.push_back(run.at(j));
  return result;
}

void raise::forEachStretch(llvm::ArrayRef<const Row *> rows,
                           llvm::function_ref<bool(llvm::ArrayRef<Row::Run>)> visit) {
  llvm::SmallVector<const Row::Run *, 4> next;
  for (const Row *row : rows)
    next.push_back(row->runs().begin());
  llvm::SmallVector<Row::Run, 4> parts(rows.size());
  for (int64_t begin = 0, size = rows.front()->size(); begin < size;) {
    int64_t end = size;
    for (const Row::Run *run : next)
      end = std::min(end, run->end);
    for (size_t i = 0; i < rows.size(); ++i) {
      parts[i] = {begin, end, next[i]->at(begin), next[i]->step};
      if (next[i]->end == end)
        ++next[i];
    }
    if (!visit(parts))
      return;
    begin = end;
  }
}
