//===- Repeats.cpp - sequences of equal tokens, worth writing once ----------------------------===//
//
// The suffix tree (the one LLVM's own outliners use) has every sequence that occurs several times
// and cannot be extended in all places. For consecutive layers such sequences span several layers
// and overlap, and where tokens have been taken already only a shorter one fits. So each sequence
// is also tried in the lengths at which its occurrences no longer overlap. Taking one sequence
// never makes another worth more, so re-evaluating the best entry of the queue suffices to find the
// best.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Outline/Repeats.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/SuffixTree.h"
#include <queue>

using namespace llvm;
using namespace partita::rt;

namespace {

/// Fewer calls than these are as easy to read as a function's name.
constexpr unsigned kLeastTokens = 6;
/// How many lines must be saved; the second is for sequences that occur only twice.
constexpr int64_t kLeastLines = 24, kLeastLinesOfTwo = 40;

struct Choice {
  int64_t saved = 0, score = 0;
  Repeat repeat;
};

class Chooser {
public:
  Chooser(ArrayRef<unsigned> tokens, ArrayRef<unsigned> lines, ArrayRef<unsigned> layers)
      : tokens(tokens), layers(layers), linesBefore(tokens.size() + 1, 0), free(tokens.size()) {
    for (auto [i, count] : enumerate(lines))
      linesBefore[i + 1] = linesBefore[i] + count;
    for (size_t i = 0; i < tokens.size(); ++i)
      free[i] = tokens.size() - i;
  }

  SmallVector<Repeat> run();

private:
  Choice best(const Repeat &candidate) const;
  Choice ofLength(const Repeat &candidate, unsigned length) const;
  void take(const Repeat &repeat);

  bool beginsLayer(unsigned i) const { return layers[i] && (i == 0 || layers[i - 1] != layers[i]); }
  bool areLayers(const Repeat &repeat) const;

  ArrayRef<unsigned> tokens, layers;
  std::vector<int64_t> linesBefore;
  std::vector<unsigned> free; ///< per token, how many from here on are not in a sequence yet
};

/// Returns true if two occurrences are in different layers. The token in the middle determines the
/// layer.
bool Chooser::areLayers(const Repeat &repeat) const {
  SmallSet<unsigned, 2> found;
  for (unsigned start : repeat.starts)
    found.insert(layers[start + repeat.length / 2]);
  return found.size() > 1 || (found.contains(0) && repeat.starts.size() > 2);
}

/// Returns what is saved if the occurrences are cut to this length.
Choice Chooser::ofLength(const Repeat &candidate, unsigned length) const {
  Choice choice;
  choice.repeat.length = length;
  size_t end = 0;
  int64_t atLayers = 0;
  for (unsigned start : candidate.starts)
    if (start >= end && free[start] >= length) {
      choice.repeat.starts.push_back(start);
      end = start + length;
      atLayers += beginsLayer(start);
    }
  auto count = static_cast<int64_t>(choice.repeat.starts.size());
  if (count < 2 || !areLayers(choice.repeat))
    return choice;
  unsigned first = choice.repeat.starts[0];
  int64_t lines = linesBefore[first + length] - linesBefore[first];
  choice.saved = (count - 1) * lines - count * (2 + lines / 8);
  choice.score = choice.saved + choice.saved * atLayers / (8 * count);
  return choice;
}

Choice Chooser::best(const Repeat &candidate) const {
  SmallSet<unsigned, 8> lengths;
  unsigned before = 0;
  for (auto [i, start] : enumerate(candidate.starts)) {
    lengths.insert(std::min(candidate.length, free[start]));
    if (i && start - before < candidate.length)
      lengths.insert(start - before);
    before = start;
    if (lengths.size() >= 32) // more lengths are unlikely to be better
      break;
  }
  Choice best;
  for (unsigned length : lengths) {
    if (length < kLeastTokens)
      continue;
    Choice choice = ofLength(candidate, length);
    bool two = choice.repeat.starts.size() == 2;
    if (choice.saved >= (two ? kLeastLinesOfTwo : kLeastLines) &&
        std::tuple(choice.score, choice.repeat.length) > std::tuple(best.score, best.repeat.length))
      best = std::move(choice);
  }
  return best;
}

void Chooser::take(const Repeat &repeat) {
  for (unsigned start : repeat.starts) {
    for (unsigned i = start; i < start + repeat.length; ++i)
      free[i] = 0;
    for (unsigned i = start; i > 0 && free[i - 1] > 0; --i)
      free[i - 1] = start - (i - 1);
  }
}

SmallVector<Repeat> Chooser::run() {
  std::vector<Repeat> candidates;
  SuffixTree tree(tokens, /*OutlinerLeafDescendants=*/true);
  for (SuffixTree::RepeatedSubstring &found : tree) {
    if (found.Length < kLeastTokens)
      continue;
    Repeat &candidate = candidates.emplace_back();
    candidate.length = found.Length;
    candidate.starts.assign(found.StartIndices.begin(), found.StartIndices.end());
    llvm::sort(candidate.starts);
  }
  // Equal candidates are ordered by position, since the tree's order is unspecified.
  llvm::sort(candidates, [](const Repeat &a, const Repeat &b) {
    return std::tuple(a.starts[0], a.length) < std::tuple(b.starts[0], b.length);
  });
  using Entry = std::pair<int64_t, int64_t>; // score, negated number of the candidate
  std::priority_queue<Entry> queue;
  auto push = [&](int64_t number, int64_t score) {
    if (score > 0)
      queue.push({score, -number});
  };
  for (auto [number, candidate] : enumerate(candidates))
    push(static_cast<int64_t>(number), best(candidate).score);
  SmallVector<Repeat> taken;
  while (!queue.empty()) {
    auto [score, number] = queue.top();
    queue.pop();
    Choice choice = best(candidates[-number]);
    if (choice.score < score) {
      push(-number, choice.score);
      continue;
    }
    take(choice.repeat);
    taken.push_back(std::move(choice.repeat));
    push(-number, best(candidates[-number]).score);
  }
  llvm::sort(taken, [](const Repeat &a, const Repeat &b) { return a.starts[0] < b.starts[0]; });
  return taken;
}

} // namespace

SmallVector<Repeat> partita::rt::chooseRepeats(ArrayRef<unsigned> tokens, ArrayRef<unsigned> lines,
                                               ArrayRef<unsigned> layers) {
  return tokens.empty() ? SmallVector<Repeat>() : Chooser(tokens, lines, layers).run();
}
