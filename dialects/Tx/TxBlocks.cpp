//===- TxBlocks.cpp - #tx.blocks: syntax, verification, density -----------------------------------===//

#include "dialects/Tx/Tx.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;
using partita_rt::BlockLayout;
using partita_rt::BlockPair;
using partita_rt::BlockTerm;
using partita_rt::BlockTermKind;

#define GET_ATTRDEF_CLASSES
#include "dialects/Tx/TxBlocks.cpp.inc"

void TxDialect::registerBlocks() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Tx/TxBlocks.cpp.inc"
      >();
}

//===------------------------------------------------------------------------------------------------===//
// Syntax
//===------------------------------------------------------------------------------------------------===//

static constexpr StringLiteral kTermNames[] = {"band", "squares", "columns", "rows"};

static ParseResult parseTerm(AsmParser &parser, StringRef name, BlockTerm &term) {
  const auto *known = llvm::find(kTermNames, name);
  if (known == std::end(kTermNames))
    return parser.emitError(parser.getCurrentLocation())
           << "expected band, squares, columns, rows or block, not '" << name << "'";
  term.kind = BlockTermKind(known - std::begin(kTermNames));
  if (parser.parseInteger(term.begin) || parser.parseKeyword("to") || parser.parseInteger(term.end))
    return failure();
  if (term.kind == BlockTermKind::Band)
    return success();
  if (parser.parseKeyword("by") || parser.parseInteger(term.period))
    return failure();
  if (term.kind != BlockTermKind::Squares &&
      (parser.parseKeyword("width") || parser.parseInteger(term.width)))
    return failure();
  term.below = succeeded(parser.parseOptionalKeyword("below"));
  return success();
}

static FailureOr<BlockPatternAttr> parsePattern(AsmParser &parser) {
  SmallVector<BlockTerm> terms;
  SmallVector<BlockPair> pairs;
  SMLoc loc = parser.getCurrentLocation();
  auto element = [&]() -> ParseResult {
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    if (name != "block")
      return parseTerm(parser, name, terms.emplace_back());
    BlockPair &pair = pairs.emplace_back();
    return failure(parser.parseInteger(pair.row) || parser.parseInteger(pair.column));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, element))
    return failure();
  bool lower = succeeded(parser.parseOptionalKeyword("lower"));
  auto pattern = BlockPatternAttr::getChecked([&] { return parser.emitError(loc); },
                                              parser.getContext(), lower, terms, pairs);
  if (!pattern)
    return failure();
  return pattern;
}

static void printPattern(AsmPrinter &printer, BlockPatternAttr pattern) {
  printer << "[";
  llvm::ListSeparator comma;
  for (const BlockTerm &term : pattern.getTerms()) {
    printer << StringRef(comma) << kTermNames[size_t(term.kind)] << " " << term.begin << " to "
            << term.end;
    if (term.kind != BlockTermKind::Band)
      printer << " by " << term.period;
    if (term.kind == BlockTermKind::Columns || term.kind == BlockTermKind::Rows)
      printer << " width " << term.width;
    if (term.below)
      printer << " below";
  }
  for (const BlockPair &pair : pattern.getPairs())
    printer << StringRef(comma) << "block " << pair.row << " " << pair.column;
  printer << (pattern.getLower() ? "] lower" : "]");
}

Attribute BlockPatternAttr::parse(AsmParser &parser, Type) {
  FailureOr<BlockPatternAttr> pattern = BlockPatternAttr();
  if (parser.parseLess() || failed(pattern = parsePattern(parser)) || parser.parseGreater())
    return {};
  return *pattern;
}
void BlockPatternAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printPattern(printer, *this);
  printer << ">";
}

Attribute BlocksAttr::parse(AsmParser &parser, Type) {
  int64_t size;
  SmallVector<BlockPatternAttr> patterns;
  SmallVector<int32_t> heads;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(size))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("heads"))) {
      if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                         [&] { return parser.parseInteger(heads.emplace_back()); }))
        return {};
      break;
    }
    FailureOr<BlockPatternAttr> pattern = parsePattern(parser);
    if (failed(pattern))
      return {};
    patterns.push_back(*pattern);
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), size, patterns,
                    heads);
}
void BlocksAttr::print(AsmPrinter &printer) const {
  printer << "<" << getSize();
  for (BlockPatternAttr pattern : getPatterns()) {
    printer << ", ";
    printPattern(printer, pattern);
  }
  if (isPerHead()) {
    printer << ", heads [";
    llvm::interleaveComma(getHeads(), printer);
    printer << "]";
  }
  printer << ">";
}

//===------------------------------------------------------------------------------------------------===//
// Verification
//===------------------------------------------------------------------------------------------------===//

LogicalResult BlockPatternAttr::verify(function_ref<InFlightDiagnostic()> error, bool,
                                       ArrayRef<BlockTerm> terms, ArrayRef<BlockPair> pairs) {
  for (const BlockTerm &term : terms) {
    StringRef name = kTermNames[size_t(term.kind)];
    bool isBand = term.kind == BlockTermKind::Band;
    for (int64_t number : {term.begin, term.end, term.period, term.width})
      if (number >= kMostBlocks || number <= -kMostBlocks)
        return error() << name << " has a number " << number << ", expected fewer than "
                       << kMostBlocks << " blocks";
    if (isBand ? term.begin > term.end : term.begin < 0 || term.begin >= term.end)
      return error() << name << " from " << term.begin << " to " << term.end << " has no blocks";
    if (isBand)
      continue;
    if (term.period < 1 || term.width < 1 || term.width > term.period)
      return error() << name << " has width " << term.width << " of a period of " << term.period
                     << ", expected 1 to the period";
  }
  auto key = [](const BlockPair &pair) { return std::pair(pair.row, pair.column); };
  for (auto [i, pair] : llvm::enumerate(pairs))
    if (pair.row < 0 || pair.column < 0 || (i > 0 && key(pairs[i - 1]) >= key(pair)))
      return error() << "block " << pair.row << " " << pair.column
                     << " is not after the one before, by row and column";
  return success();
}

LogicalResult BlocksAttr::verify(function_ref<InFlightDiagnostic()> error, int64_t size,
                                 ArrayRef<BlockPatternAttr> patterns, ArrayRef<int32_t> heads) {
  if (size < 1 || size >= kMostBlocks)
    return error() << "a block has " << size << " positions, expected at least 1";
  if (patterns.empty())
    return error() << "expected a pattern";
  if ((patterns.size() > 1) != !heads.empty())
    return error() << patterns.size() << " patterns for a list of " << heads.size()
                   << " heads; several patterns need one, a single pattern none";
  for (int32_t head : heads)
    if (head < 0 || head >= int64_t(patterns.size()))
      return error() << "head with pattern " << head << " of " << patterns.size();
  return success();
}

BlockLayout BlockPatternAttr::rows(int64_t size, int64_t n) const {
  return {int32_t(size),     int32_t(n),
          getLower(),        int32_t(getTerms().size()),
          getTerms().data(), int32_t(getPairs().size()),
          getPairs().data()};
}

/// The first row whose diagonal block no term is known to have: most layouts have windows that cover it.
static int64_t diagonalEnd(const BlockLayout &layout) {
  int64_t end = 0;
  for (bool grows = true; grows && end < layout.n;) {
    grows = false;
    for (const BlockTerm &term : ArrayRef(layout.terms, layout.termCount)) {
      bool isBand = term.kind == BlockTermKind::Band && term.begin <= 0 && term.end >= 0;
      bool isSquare = term.kind == BlockTermKind::Squares && term.begin <= end && term.end > end;
      if (!isBand && !isSquare)
        continue;
      end = isBand ? layout.n : std::min<int64_t>(term.end, layout.n);
      grows = true;
    }
  }
  return end;
}

std::optional<int64_t> tx::firstEmptyRow(const BlockLayout &layout, OtherMask mask) {
  // A query sees its own block if that is computed, whatever the other masks.
  for (int64_t row = diagonalEnd(layout); row < layout.n; ++row) {
    // The last query of a row of blocks sees the fewest keys before the row.
    int64_t last = (row + 1) * layout.size - 1, first = 0;
    if (mask.window)
      first = std::max<int64_t>(0, last + 1 - mask.window) / layout.size;
    if (nextBlock(layout, int32_t(row), int32_t(first)) >= (mask.causal ? row + 1 : layout.n))
      return row;
  }
  return std::nullopt;
}

/// Is there a number behind the last of n blocks?
static bool endsBehind(BlockPatternAttr pattern, int64_t n) {
  return llvm::any_of(pattern.getTerms(),
                      [&](const BlockTerm &term) {
                        return term.kind != BlockTermKind::Band && term.end > n;
                      }) ||
         llvm::any_of(pattern.getPairs(),
                      [&](const BlockPair &pair) { return pair.row >= n || pair.column >= n; });
}

std::string BlocksAttr::problemFor(int64_t sequence, int64_t keySequence, int64_t heads,
                                   OtherMask mask) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  int64_t size = getSize(), n = sequence / size;
  if (sequence != keySequence)
    os << "has blocks of self-attention for " << sequence << " queries and " << keySequence
       << " keys";
  else if (sequence % size != 0)
    os << "has blocks of " << size << ", which does not divide a sequence of " << sequence;
  else if (isPerHead() && int64_t(getHeads().size()) != heads)
    os << "has patterns of " << getHeads().size() << " heads, and " << heads << " heads";
  if (!text.empty())
    return text;
  for (auto [i, pattern] : llvm::enumerate(getPatterns())) {
    if (endsBehind(pattern, n)) {
      os << "has a pattern that ends behind the last of " << n << " blocks";
      return text;
    }
    std::optional<int64_t> row = firstEmptyRow(pattern.rows(size, n), mask);
    if (!row)
      continue;
    os << "computes no block that queries " << *row * size << " to " << (*row + 1) * size - 1
       << " (row " << *row << " of blocks) see";
    if (isPerHead())
      os << " in head " << llvm::find(getHeads(), int32_t(i)) - getHeads().begin();
    return text;
  }
  return text;
}

/// The blocks that are computed in each step of a ring, of all ranks together; `sequence` is counted in blocks.
static SmallVector<int64_t> countBySteps(BlockPatternAttr pattern, const SharedSequence &sequence) {
  SmallVector<int64_t> counts(sequence.ranks);
  BlockLayout layout = pattern.rows(1, sequence.length);
  auto part = int32_t(sequence.partLength());
  for (int32_t row = 0; row < layout.n; ++row)
    for (int32_t at = 0; (at = nextBlock(layout, row, at)) < layout.n;) {
      int32_t end = (at / part + 1) * part;
      int64_t behind = sequence.rankOfPart(row / part) - sequence.rankOfPart(at / part);
      counts[(behind + sequence.ranks) % sequence.ranks] +=
          countBlocksOfRow(layout, row, end) - countBlocksOfRow(layout, row, at);
      at = end;
    }
  return counts;
}

/// One of these counts. They look at every row (0.1 s at a million tokens), and every pass that weighs work asks for them
/// of all attentions, which usually have the same few patterns: a thread's last counts are kept, by what was counted.
static int64_t countOnce(BlockPatternAttr pattern, const SharedSequence &sequence, int64_t step) {
  struct Count {
    SharedSequence sequence;
    bool lower;
    SmallVector<BlockTerm, 4> terms;
    SmallVector<BlockPair, 0> pairs;
    SmallVector<int64_t, 1> blocks;
  };
  constexpr size_t most = 64; // as many as heads with patterns of their own
  static thread_local SmallVector<Count, 0> known;
  static thread_local size_t oldest = 0;
  auto key = [](const SharedSequence &of) { return std::tuple(of.length, of.ranks, of.runs); };
  for (const Count &each : known)
    if (key(each.sequence) == key(sequence) && each.lower == pattern.getLower() &&
        ArrayRef(each.terms) == pattern.getTerms() && ArrayRef(each.pairs) == pattern.getPairs())
      return each.blocks[step];
  Count count{sequence, pattern.getLower(), SmallVector<BlockTerm, 4>(pattern.getTerms()),
              SmallVector<BlockPair, 0>(pattern.getPairs()),
              SmallVector<int64_t, 1>(countBySteps(pattern, sequence))};
  int64_t blocks = count.blocks[step];
  if (known.size() < most)
    known.push_back(std::move(count));
  else
    known[oldest++ % most] = std::move(count);
  return blocks;
}

double BlocksAttr::density(int64_t sequence) const { return densityOfStep({sequence}, 0); }

double BlocksAttr::densityOfStep(SharedSequence sequence, int64_t behind) const {
  SharedSequence inBlocks{sequence.length / getSize(), sequence.ranks, sequence.runs};
  SmallVector<double> counts;
  for (BlockPatternAttr pattern : getPatterns())
    counts.push_back(double(countOnce(pattern, inBlocks, behind)));
  double sum = 0;
  for (int32_t head : getHeads())
    sum += counts[head];
  double mean = isPerHead() ? sum / double(getHeads().size()) : counts[0],
         n = double(inBlocks.length);
  return mean * double(sequence.ranks) / (n * n);
}

//===------------------------------------------------------------------------------------------------===//
// Steps of a ring
//===------------------------------------------------------------------------------------------------===//

llvm::SmallBitVector tx::stepsWithWork(const SharedSequence &queries, const SharedSequence &keys,
                                       OtherMask mask, BlocksAttr blocks) {
  int64_t ranks = queries.ranks, size = blocks ? blocks.getSize() : 1;
  llvm::SmallBitVector steps(ranks);
  if (!queries.isOfWhole(size) || !keys.isOfWhole(size))
    return steps.set();
  auto mark = [&](int64_t query, int64_t key) {
    int64_t behind = queries.rankOfPart(query) - keys.rankOfPart(key);
    steps.set((behind + ranks) % ranks);
  };
  int64_t ahead = keys.length - queries.length; // of the last key before the last query
  for (int64_t i = 0; !blocks && i < queries.parts(); ++i)
    for (int64_t j = 0; j < keys.parts(); ++j) {
      int64_t query = i * queries.partLength() + ahead, key = j * keys.partLength();
      bool isPast = !mask.causal || key < query + queries.partLength(),
           isInside = !mask.window || key + keys.partLength() > query + 1 - mask.window;
      if (isPast && isInside)
        mark(i, j);
    }
  if (!blocks)
    return steps;
  int64_t part = queries.partLength() / size, n = queries.length / size;
  for (BlockPatternAttr pattern : blocks.getPatterns()) {
    BlockLayout layout = pattern.rows(size, n);
    for (int64_t row = n; row-- > 0 && !steps.all();) { // causal: the last row sees most
      int64_t end = mask.causal ? row + 1 : n, first = row * size + 1 - mask.window;
      int64_t at = mask.window ? std::max<int64_t>(0, first) / size : 0;
      while ((at = nextBlock(layout, int32_t(row), int32_t(at))) < end) {
        mark(row / part, at / part);
        at = (at / part + 1) * part;
      }
    }
  }
  return steps;
}

tx::RingShifts::RingShifts(const llvm::SmallBitVector &withWork)
    : keys(std::max(withWork.find_last(), 0)), gradients(0) {
  if (int first = withWork.find_next(0); first > 0) // the gradients begin with another rank's keys
    gradients = keys - first + std::min(keys, int64_t(withWork.size()) - keys);
}
