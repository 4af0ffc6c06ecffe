//===- PassStatistic.cpp - what passes have changed, counted ----------------------------------===//

#include "partita/Support/PassStatistic.h"
#include <map>
#include <mutex>

using namespace partita;

namespace {

/// Passes are destroyed on any thread.
struct Totals {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::pair<uint64_t, const char *>> counts;
};

Totals &totals() {
  static Totals all;
  return all;
}

} // namespace

PassStatistic::~PassStatistic() {
  if (count == 0)
    return;
  std::lock_guard lock(totals().mutex);
  auto &[sum, what] = totals().counts[{pass.str(), name}];
  sum += count;
  what = description;
}

void partita::printPassStatistics(llvm::raw_ostream &os) {
  std::lock_guard lock(totals().mutex);
  for (const auto &[key, total] : totals().counts)
    os << key.first << ": " << total.first << " " << key.second << " (" << total.second << ")\n";
}
