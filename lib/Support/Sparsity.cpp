//===- Sparsity.cpp - DeepSpeed's layouts of block-sparse attention -----------------------------===//

#include "partita/Support/Sparsity.h"
#include "partita/Support/NearestNames.h"
#include "runtime/include/partita_rt/random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace partita;
using namespace partita_rt;
using llvm::StringLiteral;
using llvm::StringRef;
using llvm::Twine;

//===------------------------------------------------------------------------------------------===//
// Text
//===------------------------------------------------------------------------------------------===//

namespace {

constexpr int64_t kMostBlocks = 1 << 20;

constexpr StringLiteral kModes[] = {"fixed",        "variable",       "bigbird",
                                    "bslongformer", "sliding-window", "dense"};

constexpr unsigned of(Sparsity::Mode mode) { return 1u << mode; }
constexpr unsigned kLocal = of(Sparsity::Fixed), kVariable = of(Sparsity::Variable),
                   kBigBird = of(Sparsity::BigBird), kLongformer = of(Sparsity::BSLongformer),
                   kSliding = of(Sparsity::SlidingWindow), kAll = ~0u;

/// Reads a value into a Sparsity; returns what was expected instead, or "".
using Read = std::string (*)(StringRef, Sparsity &);

std::string readNumber(StringRef text, int64_t least, int64_t most, int64_t &number) {
  int64_t read;
  if (text.getAsInteger(10, read) || read < least || read > most)
    return ("an integer from " + Twine(least) + " to " + Twine(most)).str();
  number = read;
  return {};
}

template <auto member, int64_t least> std::string readCount(StringRef text, Sparsity &sparsity) {
  return readNumber(text, least, kMostBlocks, sparsity.*member);
}

template <auto member> std::string readFlag(StringRef text, Sparsity &sparsity) {
  if (text != "true" && text != "false")
    return "true or false";
  sparsity.*member = text == "true";
  return {};
}

template <auto member, int64_t least> std::string readList(StringRef text, Sparsity &sparsity) {
  llvm::SmallVector<StringRef> words;
  text.split(words, ':');
  (sparsity.*member).clear();
  for (StringRef word : words)
    if (std::string expected =
            readNumber(word, least, kMostBlocks, (sparsity.*member).emplace_back());
        !expected.empty())
      return "integers from " + std::to_string(least) + " to " + std::to_string(kMostBlocks) +
             " with ':' between them, such as 4:8";
  return {};
}

std::string readDirection(StringRef text, Sparsity &sparsity) {
  if (text != "bidirectional" && text != "unidirectional")
    return "bidirectional or unidirectional";
  sparsity.unidirectional = text == "unidirectional";
  return {};
}

struct KeyRow {
  StringLiteral name;
  unsigned modes;
  Read read;
};
constexpr KeyRow kKeys[] = {
    {"block", kAll, readCount<&Sparsity::block, 1>},
    {"different_layout_per_head", kAll & ~kSliding, readFlag<&Sparsity::differentLayoutPerHead>},
    {"num_local_blocks", kLocal, readCount<&Sparsity::numLocalBlocks, 1>},
    {"num_global_blocks", kLocal | kBigBird, readCount<&Sparsity::numGlobalBlocks, 1>},
    {"attention", kAll & ~of(Sparsity::Dense), readDirection},
    {"horizontal_global_attention", kLocal | kVariable,
     readFlag<&Sparsity::horizontalGlobalAttention>},
    {"num_different_global_patterns", kLocal, readCount<&Sparsity::numDifferentGlobalPatterns, 1>},
    {"num_random_blocks", kVariable | kBigBird, readCount<&Sparsity::numRandomBlocks, 0>},
    {"local_window_blocks", kVariable, readList<&Sparsity::localWindowBlocks, 1>},
    {"global_block_indices", kVariable | kLongformer, readList<&Sparsity::globalBlockIndices, 0>},
    {"global_block_end_indices", kVariable | kLongformer,
     readList<&Sparsity::globalBlockEndIndices, 0>},
    {"num_sliding_window_blocks", kBigBird | kLongformer | kSliding,
     readCount<&Sparsity::numSlidingWindowBlocks, 1>},
    {"seed", kVariable | kBigBird, readCount<&Sparsity::seed, 0>},
};

/// What DeepSpeed's classes refuse whatever the sequence.
std::string checkTogether(const Sparsity &s) {
  if (s.horizontalGlobalAttention && s.unidirectional)
    return "horizontal_global_attention needs attention=bidirectional: a global block would see "
           "later ones";
  if (s.mode == Sparsity::Fixed) {
    int64_t most = s.numLocalBlocks / s.numGlobalBlocks;
    if (s.numLocalBlocks % s.numGlobalBlocks != 0)
      return ("num_local_blocks is " + Twine(s.numLocalBlocks) + ", which num_global_blocks, " +
              Twine(s.numGlobalBlocks) + ", does not divide")
          .str();
    if (s.numDifferentGlobalPatterns > 1 && !s.differentLayoutPerHead)
      return ("num_different_global_patterns is " + Twine(s.numDifferentGlobalPatterns) +
              ", which needs different_layout_per_head=true")
          .str();
    if (s.numDifferentGlobalPatterns > most)
      return ("num_different_global_patterns is " + Twine(s.numDifferentGlobalPatterns) +
              ", but a local window of " + Twine(s.numLocalBlocks) + " blocks with " +
              Twine(s.numGlobalBlocks) + " global has at most " + Twine(most))
          .str();
  }
  if (s.globalBlockEndIndices.empty())
    return {};
  if (s.globalBlockEndIndices.size() != s.globalBlockIndices.size())
    return ("global_block_end_indices has " + Twine(s.globalBlockEndIndices.size()) +
            " numbers for " + Twine(s.globalBlockIndices.size()) + " of global_block_indices")
        .str();
  for (auto [begin, end] : llvm::zip_equal(s.globalBlockIndices, s.globalBlockEndIndices))
    if (begin >= end)
      return ("global blocks from " + Twine(begin) + " to " + Twine(end) +
              " (exclusive) are none; each of global_block_end_indices must be larger than its "
              "global_block_indices")
          .str();
  return {};
}

/// "; did you mean 'x'?", or all that there are.
std::string suggestion(StringRef word, llvm::ArrayRef<StringRef> known) {
  StringRef near = nearestName(word, known);
  return near.empty() ? "; there are " + llvm::join(known, ", ")
                      : "; did you mean '" + near.str() + "'?";
}

const KeyRow *findRow(StringRef key) {
  return llvm::find_if(kKeys, [&](const KeyRow &row) { return row.name == key; });
}

} // namespace

std::vector<StringRef> partita::sparsityKeys(StringRef mode) {
  std::vector<StringRef> keys;
  auto number = unsigned(llvm::find(kModes, mode) - std::begin(kModes));
  for (const KeyRow &row : kKeys)
    if (row.modes >> number & 1)
      keys.push_back(row.name);
  return keys;
}

std::string partita::parseSparsity(StringRef text, Sparsity &sparsity) {
  sparsity = {};
  llvm::SmallVector<StringRef> words;
  llvm::SmallVector<StringRef> seen;
  text.split(words, ',');
  StringRef mode = "fixed";
  for (StringRef word : words) {
    auto [key, value] = word.split('=');
    if (word.find('=') == StringRef::npos || key.empty() || value.empty())
      return ("'" + word + "' is not of the form key=value, such as mode=fixed").str();
    if (llvm::is_contained(seen, key))
      return ("'" + key + "' is given twice").str();
    seen.push_back(key);
    if (key == "mode")
      mode = value;
  }
  const auto *known = llvm::find(kModes, mode);
  llvm::SmallVector<StringRef> modes(std::begin(kModes), std::end(kModes));
  if (known == std::end(kModes))
    return ("there is no mode '" + mode + "'").str() + suggestion(mode, modes);
  sparsity.mode = Sparsity::Mode(known - std::begin(kModes));
  // The defaults of DeepSpeed's classes of these modes.
  sparsity.numRandomBlocks = sparsity.mode == Sparsity::BigBird;
  sparsity.unidirectional = sparsity.mode == Sparsity::SlidingWindow;
  for (StringRef word : words) {
    auto [key, value] = word.split('=');
    if (key == "mode")
      continue;
    const KeyRow *row = findRow(key);
    std::vector<StringRef> keys = sparsityKeys(mode);
    if (row == std::end(kKeys) || !llvm::is_contained(keys, key))
      return ("mode " + mode + " has no key '" + key + "'").str() + suggestion(key, keys);
    if (std::string expected = row->read(value, sparsity); !expected.empty())
      return ("'" + key + "' is '" + value + "', expected " + expected).str();
  }
  return checkTogether(sparsity);
}

//===------------------------------------------------------------------------------------------===//
// Layouts
//===------------------------------------------------------------------------------------------===//

namespace {

/// Builds the pattern of one head. Method by method what the SparsityConfig classes mark.
class PatternBuilder {
public:
  PatternBuilder(const Sparsity &sparsity, int64_t n, int64_t head)
      : s(sparsity), n(int32_t(n)), head(head) {}

  BlockPattern build();

private:
  void add(BlockTermKind kind, int64_t begin, int64_t end, int64_t period = 1, int64_t width = 1,
           bool below = false) {
    pattern.terms.push_back(
        {kind, int32_t(begin), int32_t(end), int32_t(period), int32_t(width), below});
  }
  /// Columns that all see, and rows that see all.
  void addGlobal(int64_t begin, int64_t end, int64_t period, int64_t width, bool rows, bool below) {
    add(BlockTermKind::Columns, begin, end, period, width, below);
    if (rows)
      add(BlockTermKind::Rows, begin, end, period, width);
  }
  void addLocalWindows();
  void addFixedGlobals();
  void addListedGlobals(bool rows, bool below);
  void addSliding(int64_t after) {
    add(BlockTermKind::Band, -(s.numSlidingWindowBlocks / 2), after);
  }
  void drawBlocks(bool upToRow);

  const Sparsity &s;
  int32_t n;
  int64_t head;
  BlockPattern pattern;
};

/// The last window size repeats.
void PatternBuilder::addLocalWindows() {
  int64_t begin = 0;
  for (auto [i, size] : llvm::enumerate(s.localWindowBlocks)) {
    bool isLast = i + 1 == s.localWindowBlocks.size();
    int64_t end = isLast ? n : std::min<int64_t>(begin + size, n);
    if (begin < end)
      add(BlockTermKind::Squares, begin, end, size, 1, s.unidirectional);
    begin += size;
  }
}

/// The last blocks of each window; other heads have the ones before. A short last window has those at the same
/// place or, if they end behind it, at the end of the sequence.
void PatternBuilder::addFixedGlobals() {
  int64_t local = s.numLocalBlocks, global = s.numGlobalBlocks, end = n - n % local;
  int64_t first = local - (1 + head % s.numDifferentGlobalPatterns) * global;
  if (first < end)
    addGlobal(first, end, local, global, s.horizontalGlobalAttention, s.unidirectional);
  if (end == n)
    return;
  int64_t start = std::min<int64_t>(end + first, n - global);
  addGlobal(start, start + global, global, global, s.horizontalGlobalAttention, s.unidirectional);
}

void PatternBuilder::addListedGlobals(bool rows, bool below) {
  for (auto [i, begin] : llvm::enumerate(s.globalBlockIndices)) {
    int64_t end = s.globalBlockEndIndices.empty() ? begin + 1 : s.globalBlockEndIndices[i];
    addGlobal(begin, end, end - begin, end - begin, rows, below);
  }
}

/// Different columns for each row, by Floyd's algorithm; with `upToRow` among those up to the diagonal, all of them
/// where there are no more. Blocks of terms are left out.
void PatternBuilder::drawBlocks(bool upToRow) {
  BlockLayout terms = rowsOf(pattern, s.block, n);
  uint64_t key = mix64(mix64(uint64_t(s.seed)) + uint64_t(head));
  std::vector<BlockPair> drawn;
  for (int32_t row = 0; row < n; ++row) {
    int64_t among = upToRow ? row + 1 : n, count = std::min(s.numRandomBlocks, among);
    std::vector<int32_t> columns;
    for (int64_t last = among - count; last < among; ++last) {
      uint64_t word = mix64(key + uint64_t(row) * uint64_t(n) + uint64_t(last));
      auto column = int32_t(word % uint64_t(last + 1));
      columns.push_back(llvm::is_contained(columns, column) ? int32_t(last) : column);
    }
    llvm::sort(columns);
    for (int32_t column : columns)
      if ((!pattern.lower || column <= row) && !isComputed(terms, row, column))
        drawn.push_back({row, column});
  }
  pattern.blocks = std::move(drawn);
}

BlockPattern PatternBuilder::build() {
  switch (s.mode) {
  case Sparsity::Fixed:
    add(BlockTermKind::Squares, 0, n, s.numLocalBlocks, 1, s.unidirectional);
    addFixedGlobals();
    break;
  case Sparsity::Variable:
    addLocalWindows();
    addListedGlobals(s.horizontalGlobalAttention, s.unidirectional);
    drawBlocks(/*upToRow=*/false);
    break;
  case Sparsity::BigBird:
    pattern.lower = s.unidirectional;
    addSliding(s.numSlidingWindowBlocks / 2);
    addGlobal(0, s.numGlobalBlocks, 1, 1, /*rows=*/true, /*below=*/false);
    drawBlocks(s.unidirectional);
    break;
  case Sparsity::BSLongformer:
    pattern.lower = s.unidirectional;
    addSliding(s.numSlidingWindowBlocks / 2);
    addListedGlobals(/*rows=*/true, /*below=*/false);
    break;
  case Sparsity::SlidingWindow:
    addSliding(s.unidirectional ? 0 : s.numSlidingWindowBlocks / 2);
    break;
  case Sparsity::Dense:
    add(BlockTermKind::Band, 1 - n, n - 1);
    break;
  }
  return std::move(pattern);
}

/// What DeepSpeed's classes refuse, or ignore, for a sequence of `n` blocks.
std::string checkBlocks(const Sparsity &s, int64_t n) {
  auto check = [&](StringRef key, int64_t count) -> std::string {
    if (count <= n)
      return {};
    return (key + " is " + Twine(count) + ", but the sequence has " + Twine(n) + " blocks of " +
            Twine(s.block))
        .str();
  };
  unsigned mode = of(s.mode);
  std::string problem;
  if (mode & (kVariable | kBigBird))
    problem = check("num_random_blocks", s.numRandomBlocks);
  if (problem.empty() && mode & (kLocal | kBigBird))
    problem = check("num_global_blocks", s.numGlobalBlocks);
  if (problem.empty() && mode & (kBigBird | kLongformer | kSliding))
    problem = check("num_sliding_window_blocks", s.numSlidingWindowBlocks);
  if (!problem.empty() || !(mode & (kVariable | kLongformer)))
    return problem;
  for (int64_t index : s.globalBlockIndices)
    if (index >= n)
      return ("global_block_indices has " + Twine(index) + ", but the sequence has blocks 0 to " +
              Twine(n - 1) + " of " + Twine(s.block))
          .str();
  for (int64_t end : s.globalBlockEndIndices)
    if (end > n)
      return ("global_block_end_indices has " + Twine(end) + ", but the sequence has " + Twine(n) +
              " blocks of " + Twine(s.block))
          .str();
  return {};
}

bool isSame(const BlockPattern &a, const BlockPattern &b) {
  auto term = [](const BlockTerm &t) {
    return std::tuple(t.kind, t.begin, t.end, t.period, t.width, t.below);
  };
  auto pair = [](const BlockPair &p) { return std::pair(p.row, p.column); };
  return a.lower == b.lower &&
         llvm::equal(llvm::map_range(a.terms, term), llvm::map_range(b.terms, term)) &&
         llvm::equal(llvm::map_range(a.blocks, pair), llvm::map_range(b.blocks, pair));
}

} // namespace

std::string partita::layOut(const Sparsity &sparsity, int64_t n, int64_t heads,
                            HeadPatterns &result) {
  result = {};
  if (std::string problem = checkBlocks(sparsity, n); !problem.empty())
    return problem;
  for (int64_t head = 0; head < (sparsity.differentLayoutPerHead ? heads : 1); ++head) {
    BlockPattern pattern = PatternBuilder(sparsity, n, head).build();
    auto known = llvm::find_if(result.patterns,
                               [&](const BlockPattern &each) { return isSame(each, pattern); });
    result.ofHead.push_back(int32_t(known - result.patterns.begin()));
    if (known == result.patterns.end())
      result.patterns.push_back(std::move(pattern));
  }
  if (result.patterns.size() == 1)
    result.ofHead.clear();
  return {};
}
