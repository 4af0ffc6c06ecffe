//===- PlacementRule.cpp - applies a rule to placements ---------------------------------------===//
//
// Each mesh axis is independent. If the axis splits letter L in any operand (or, for letters that
// only results have, in a result):
//   - an operand with L must be sharded there; one without L must be replicated (its cotangent is
//     then a partial sum: Megatron's f, data parallelism's all-reduce);
//   - a result with L is sharded there; one without L, which the rule marks '+', is partial.
// If it splits nothing here, every rank computes everything:
//   - a partial operand passes through an op that is linear in it; anything else is rejected;
//   - if any operand is replicated, so are the results, and all operands must be.
// If it splits the elements of an operand flat, the op must be elementwise: all operands with
// dimensions have the same ones by the rule and are split flat, too, as are the results.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

namespace {

class RuleApplication {
public:
  RuleApplication(const ShardRule &rule, ArrayRef<Layout> operands, ArrayRef<bool> carriesCotangent,
                  MutableArrayRef<Layout> results, RuleProblem &problem)
      : rule(rule), operands(operands), carriesCotangent(carriesCotangent), results(results),
        problem(problem) {}

  bool run() {
    SmallVector<ArrayRef<int64_t>> operandShapes, resultShapes;
    for (const Layout &operand : operands)
      operandShapes.push_back(operand.shape);
    for (const Layout &result : results)
      resultShapes.push_back(result.shape);
    if (!rule.letterSizes(operandShapes, resultShapes, sizes, problem.text))
      return false;
    llvm::SetVector<StringAttr> axes;
    for (const Layout &operand : operands)
      operand.axes(axes);
    for (const Layout &result : results)
      for (const DimSplit &splits : result.splits)
        for (const AxisSplit &split : splits)
          axes.insert(split.axis);
    // Results take their splits operand by operand, so several axes on one dimension keep the
    // operand's order.
    for (StringAttr axis : axes)
      if (!(isFlat(axis) ? applyFlat(axis) : apply(axis)))
        return false;
    return sameOrder();
  }

private:
  bool refuse(int operand, StringAttr axis, Kind wanted, const Twine &text, int against = -1) {
    problem.operand = operand;
    problem.against = against;
    problem.axis = axis;
    problem.wanted = wanted;
    problem.text = text.str();
    return false;
  }

  static std::string sharded(int dim, const Blocks &blocks) {
    return blocks == 1 ? llvm::formatv("sharded({0})", dim).str()
                       : llvm::formatv("sharded({0}) in {1}{2} blocks", dim, blocks.count,
                                       blocks.mirrored ? " mirrored" : "")
                             .str();
  }

  static std::string have(const Layout &layout, StringAttr axis) {
    int dim = layout.dimOf(axis);
    return dim >= 0 ? sharded(dim, layout.blocksOf(axis)) : toString(layout.kind(axis)).str();
  }

  static std::string describe(int operand) {
    return operand < 0 ? "a result" : llvm::formatv("operand {0}", operand).str();
  }

  /// Sets `found` to the letter that `axis` splits in one operand or result, if that agrees with
  /// others.
  bool consider(StringAttr axis, const RulePattern &pattern, const Layout &layout, int operand,
                std::optional<LetterSplit> &found) {
    int dim = layout.dimOf(axis);
    if (dim < 0 || pattern.firstIndexOf >= 0)
      return true;
    if (pattern.dims[dim].letters.empty())
      return refuse(
          operand, axis, Kind::Invariant,
          llvm::formatv(
              "dimension {0} of {1} has size one by the rule and cannot be split over {2}", dim,
              describe(operand), axis.getValue()));
    auto split = splitLetter(pattern.dims[dim], layout.blocksOf(axis), sizes);
    if (!split)
      return refuse(operand, axis, Kind::Invariant,
                    llvm::formatv("{0} splits {1} blocks of dimension {2} of {3}, between which "
                                  "no letter begins",
                                  axis.getValue(), layout.blocksOf(axis).count, dim,
                                  describe(operand)));
    if (found && found->letter != split->letter)
      return refuse(operand, axis, Kind::Invariant,
                    llvm::formatv("{0} splits letter {1} of {2} but letter {3} elsewhere",
                                  axis.getValue(), rule.letters[split->letter].name,
                                  describe(operand), rule.letters[found->letter].name),
                    splitter);
    if (!found) {
      found = split;
      splitter = operand;
    }
    return true;
  }

  bool isFlat(StringAttr axis) const {
    return llvm::any_of(operands,
                        [&](const Layout &layout) { return layout.kind(axis) == Kind::Flat; });
  }

  /// Returns true if the op is elementwise.
  bool isElementwise() const {
    const RulePattern *first = nullptr;
    auto same = [&](const RulePattern &pattern) {
      if (pattern.dims.empty())
        return true;
      first = first ? first : &pattern;
      return pattern.firstIndexOf < 0 && pattern.dims.size() == first->dims.size() &&
             llvm::all_of(
                 llvm::zip(pattern.dims, first->dims),
                 [](auto pair) { return std::get<0>(pair).letters == std::get<1>(pair).letters; });
    };
    return llvm::all_of(rule.operands, same) && llvm::all_of(rule.results, same) &&
           llvm::none_of(rule.letters, [](const RuleLetter &l) {
             return l.never || l.byForm || l.lacksFirstIndex || l.summed || l.max;
           });
  }

  bool applyFlat(StringAttr axis) {
    if (!isElementwise())
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("{0} splits the elements of an operand flat, and the op does not "
                                  "treat each element alone",
                                  axis.getValue()));
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands)) {
      Kind kind = layout.kind(axis);
      bool full = kind == Kind::Replicated || (kind == Kind::Invariant && !carriesCotangent[i]);
      if (pattern.dims.empty() ? !full : kind != Kind::Flat)
        return refuse(
            static_cast<int>(i), axis, pattern.dims.empty() ? Kind::Replicated : Kind::Flat,
            llvm::formatv("{0} splits the elements flat: operand {1} must be {2}, it is {3}",
                          axis.getValue(), i, pattern.dims.empty() ? "replicated" : "flat",
                          have(layout, axis)));
    }
    for (auto [pattern, layout] : llvm::zip(rule.results, results))
      layout.set(axis, pattern.dims.empty() ? Kind::Replicated : Kind::Flat);
    return true;
  }

  bool apply(StringAttr axis) {
    std::optional<LetterSplit> split;
    splitter = -1;
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      if (!consider(axis, pattern, layout, static_cast<int>(i), split))
        return false;
    for (auto [pattern, layout] : llvm::zip(rule.results, results))
      if (!consider(axis, pattern, layout, -1, split))
        return false;
    return split ? applySplit(axis, *split) : applyFull(axis);
  }

  bool applySplit(StringAttr axis, LetterSplit split) {
    const RuleLetter &l = rule.letters[split.letter];
    if (l.never || l.byForm)
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("letter {0} cannot be split, it is split over {1}", l.name,
                                  axis.getValue()),
                    splitter);
    if (!allows(l, split.blocks))
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("letter {0} cannot be split in blocks, it is split over {1}",
                                  l.name, axis.getValue()),
                    splitter);
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      if (!checkOperand(axis, split, static_cast<int>(i), pattern, layout))
        return false;
    for (auto [pattern, layout] : llvm::zip(rule.results, results)) {
      int dim = pattern.dimOf(split.letter);
      if (dim < 0) {
        layout.set(axis, l.max ? Kind::Max : Kind::Partial);
        continue;
      }
      if (layout.dimOf(axis) != dim || !splits(pattern.dims[dim], layout.blocksOf(axis), split))
        layout.shard(axis, dim, blocksOfDim(pattern.dims[dim], split, sizes));
    }
    return true;
  }

  /// Returns true if these blocks of the dimension split the letter like this.
  bool splits(const RuleDim &dim, Blocks blocks, LetterSplit split) {
    auto found = splitLetter(dim, blocks, sizes);
    return found && *found == split;
  }

  bool checkOperand(StringAttr axis, LetterSplit split, int i, const RulePattern &pattern,
                    const Layout &layout) {
    const RuleLetter &l = rule.letters[split.letter];
    bool isFirstIndex = pattern.firstIndexOf == static_cast<int>(split.letter);
    if (isFirstIndex && split.blocks != 1 && !pattern.firstPerBlock)
      return refuse(-1, axis, Kind::Invariant,
                    llvm::formatv("letter {0} cannot be split in blocks, for its shards need one "
                                  "first index",
                                  l.name));
    int dim = isFirstIndex ? 0 : pattern.dimOf(split.letter);
    Kind kind = layout.kind(axis);
    Blocks blocks = isFirstIndex ? split.blocks
                    : dim < 0    ? Blocks()
                                 : blocksOfDim(pattern.dims[dim], split, sizes);
    bool right =
        dim >= 0 ? layout.dimOf(axis) == dim &&
                       (isFirstIndex ? layout.blocksOf(axis) == blocks
                                     : splits(pattern.dims[dim], layout.blocksOf(axis), split))
                 : kind == Kind::Replicated || (kind == Kind::Invariant && !carriesCotangent[i]);
    if (right)
      return true;
    return refuse(i, axis, dim >= 0 ? Kind::Sharded : Kind::Replicated,
                  llvm::formatv("letter {0} is split over {1}: operand {2} must be {3}, it is {4}",
                                l.name, axis.getValue(), i,
                                dim >= 0 ? sharded(dim, blocks) : "replicated", have(layout, axis)),
                  splitter);
  }

  bool applyFull(StringAttr axis) {
    SmallVector<unsigned> partial, replicated;
    for (auto [i, layout] : llvm::enumerate(operands)) {
      if (layout.kind(axis) == Kind::Max)
        return refuse(static_cast<int>(i), axis, Kind::Invariant,
                      llvm::formatv("operand {0} is a maximum per rank of {1}, to be completed "
                                    "before it is used",
                                    i, axis.getValue()));
      if (layout.kind(axis) == Kind::Partial)
        partial.push_back(i);
      if (layout.kind(axis) == Kind::Replicated)
        replicated.push_back(i);
    }
    if (!partial.empty())
      return applyPartial(axis, partial);
    for (auto [i, layout] : llvm::enumerate(operands))
      if (!replicated.empty() && layout.kind(axis) == Kind::Invariant && carriesCotangent[i])
        return refuse(
            static_cast<int>(i), axis, Kind::Replicated,
            llvm::formatv(
                "operand {0} is replicated over {1}: operand {2} must be too, it is invariant",
                replicated.front(), axis.getValue(), i),
            static_cast<int>(replicated.front()));
    for (Layout &layout : results)
      layout.set(axis, replicated.empty() ? Kind::Invariant : Kind::Replicated);
    return true;
  }

  bool applyPartial(StringAttr axis, ArrayRef<unsigned> partial) {
    Linearity linearity = rule.operands[partial.front()].linearity;
    for (auto [i, pattern] : llvm::enumerate(rule.operands)) {
      bool isPartial = llvm::is_contained(partial, i);
      Kind kind = operands[i].kind(axis);
      if (isPartial && (pattern.linearity == Linearity::None ||
                        (linearity == Linearity::Separately && i != partial.front())))
        return refuse(
            static_cast<int>(i), axis, Kind::Invariant,
            llvm::formatv("operand {0} is a partial sum over {1}, and the op is not linear in it",
                          i, axis.getValue()));
      if (isPartial)
        continue;
      if (linearity == Linearity::Together && pattern.linearity == Linearity::Together)
        return refuse(static_cast<int>(i), axis, Kind::Partial,
                      llvm::formatv("operand {0} is a partial sum over {1} but operand {2} is {3}",
                                    partial.front(), axis.getValue(), i, have(operands[i], axis)),
                      static_cast<int>(partial.front()));
      if (kind == Kind::Invariant && carriesCotangent[i])
        return refuse(
            static_cast<int>(i), axis, Kind::Replicated,
            llvm::formatv(
                "operand {0} is a partial sum over {1}: operand {2} must be replicated, it is "
                "invariant",
                partial.front(), axis.getValue(), i),
            static_cast<int>(partial.front()));
    }
    for (Layout &layout : results)
      layout.set(axis, Kind::Partial);
    return true;
  }

  /// Returns the axes on each letter of a split dimension, in order.
  SmallVector<std::pair<unsigned, DimSplit>> lettersOf(const RuleDim &dim, const DimSplit &axes) {
    SmallVector<std::pair<unsigned, DimSplit>> found;
    for (const AxisSplit &axis : axes)
      if (auto split = splitLetter(dim, axis.blocks, sizes)) {
        if (found.empty() || found.back().first != split->letter)
          found.push_back({split->letter, {}});
        found.back().second.push_back({axis.axis, split->blocks});
      }
    return found;
  }

  /// Checks that several axes on one letter are in the same order everywhere, since the order
  /// determines who has what.
  bool sameOrder() {
    SmallVector<DimSplit> order(rule.letters.size());
    for (auto [i, pattern, layout] : llvm::enumerate(rule.operands, operands))
      for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits))
        for (auto &[letter, split] : lettersOf(dim, axes)) {
          if (order[letter].empty())
            order[letter] = split;
          else if (!(order[letter] == split))
            return refuse(
                static_cast<int>(i), axes.front().axis, Kind::Sharded,
                llvm::formatv("the axes on letter {0} are in another order in operand {1}",
                              rule.letters[letter].name, i));
        }
    for (auto [pattern, layout] : llvm::zip(rule.results, results))
      for (auto [dim, axes] : llvm::zip(pattern.dims, layout.splits)) {
        DimSplit ordered;
        if (dim.isPart())
          continue; // the rest of the dimension has no letter
        for (unsigned letter : dim.letters)
          for (const AxisSplit &split : order[letter])
            ordered.push_back({split.axis, blocksOfDim(dim, {letter, split.blocks}, sizes)});
        if (ordered.size() == axes.size())
          axes = ordered;
      }
    return true;
  }

  const ShardRule &rule;
  ArrayRef<Layout> operands;
  ArrayRef<bool> carriesCotangent;
  MutableArrayRef<Layout> results;
  RuleProblem &problem;
  SmallVector<int64_t> sizes; // of the letters
  int splitter = -1;          // the first operand in which the axis splits a letter
};

} // namespace

/// Returns those blocks of the full dimension that make up the part.
static std::optional<LetterSplit> splitPart(const RuleDim &dim, const Blocks &blocks,
                                            int64_t size) {
  int64_t begin = 0;
  SmallVector<int64_t> inside;
  if (blocks.mirrored) // a part need not begin with a block that is dealt forwards
    return std::nullopt;
  for (int64_t block : blocks.sizesIn(dim.full)) {
    int64_t end = begin + block;
    if (begin >= dim.first && end <= dim.first + size)
      inside.push_back(block);
    else if (end > dim.first && begin < dim.first + size)
      return std::nullopt;
    begin = end;
  }
  if (inside.empty())
    return std::nullopt;
  return LetterSplit{dim.letters.front(), Blocks::of(inside)};
}

bool partita::par::allows(const RuleLetter &letter, const Blocks &blocks) {
  return blocks == 1 ||
         !(letter.unbroken || letter.lacksFirstIndex || (letter.alike && !blocks.sizes.empty()));
}

std::optional<LetterSplit> partita::par::splitLetter(const RuleDim &dim, Blocks split,
                                                     ArrayRef<int64_t> letterSizes) {
  if (dim.isPart())
    return splitPart(dim, split, letterSizes[dim.letters.front()]);
  if (!split.sizes.empty() && !dim.letters.empty()) { // per element of the inner factors
    int64_t others = 1;
    for (unsigned letter : ArrayRef(dim.letters).drop_front())
      others *= letterSizes[letter];
    SmallVector<int64_t> sizes(split.sizes.begin(), split.sizes.end());
    for (int64_t &size : sizes) {
      if (size % others != 0)
        return std::nullopt;
      size /= others;
    }
    return LetterSplit{dim.letters.front(), Blocks::of(sizes)};
  }
  int64_t blocks = split.count;
  for (unsigned letter : dim.letters) {
    int64_t size = letterSizes[letter];
    if (blocks < size || letter == dim.letters.back()) {
      if (size <= 0 || size % blocks != 0 || (split.mirrored && blocks % 2 != 0))
        return std::nullopt;
      return LetterSplit{letter, Blocks::equal(blocks, split.mirrored)};
    }
    if (size <= 0 || blocks % size != 0)
      return std::nullopt;
    blocks /= size;
  }
  return std::nullopt;
}

Blocks partita::par::blocksOfDim(const RuleDim &dim, LetterSplit split,
                                 ArrayRef<int64_t> letterSizes) {
  int64_t size = letterSizes[split.letter], outer = 1, inner = 1;
  if (dim.isPart() && dim.full % size == 0 && dim.first % size == 0 && split.blocks.sizes.empty())
    return dim.full / size *
           split.blocks.count; // mirrored ones are no blocks of a part (splitPart)
  SmallVector<int64_t> sizes;
  if (dim.isPart()) {
    SmallVector<int64_t> inside = split.blocks.sizesIn(size);
    int64_t behind = dim.full - dim.first - size;
    if (dim.first > 0)
      sizes.push_back(dim.first);
    sizes.append(inside);
    if (behind > 0)
      sizes.push_back(behind);
    return Blocks::of(sizes);
  }
  bool before = true;
  for (unsigned letter : dim.letters) {
    before &= letter != split.letter;
    if (letter != split.letter)
      (before ? outer : inner) *= letterSizes[letter];
  }
  if (split.blocks.sizes.empty())
    return Blocks::equal(outer * split.blocks.count, split.blocks.mirrored);
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t block : split.blocks.sizes)
      sizes.push_back(block * inner);
  return Blocks::of(sizes);
}

bool partita::par::placeResults(const ShardRule &rule, ArrayRef<Layout> operands,
                                ArrayRef<bool> carriesCotangent, MutableArrayRef<Layout> results,
                                RuleProblem &problem) {
  return RuleApplication(rule, operands, carriesCotangent, results, problem).run();
}
