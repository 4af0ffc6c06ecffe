// Finds the known word nearest to an unknown one, for messages.

#ifndef PARTITA_RT_NEAREST_H
#define PARTITA_RT_NEAREST_H

#include <algorithm>
#include <string>
#include <vector>

namespace partita_rt {

/// Returns the edit distance: letters inserted, removed or replaced.
inline int editDistance(const std::string &a, const std::string &b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = int(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = int(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

/// Returns the nearest of at least one word; the first of several equally near.
inline std::string nearestOf(const std::string &word, const std::vector<std::string> &known) {
  return *std::min_element(known.begin(), known.end(),
                           [&](const std::string &a, const std::string &b) {
                             return editDistance(word, a) < editDistance(word, b);
                           });
}

} // namespace partita_rt

#endif // PARTITA_RT_NEAREST_H
