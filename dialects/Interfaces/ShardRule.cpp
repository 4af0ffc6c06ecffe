//===- ShardRule.cpp - parses an op's rule ----------------------------------------------------===//

#include "dialects/Interfaces/ShardRule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;

int RulePattern::dimOf(unsigned letter) const {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (llvm::is_contained(dim.letters, letter))
      return static_cast<int>(i);
  return -1;
}

namespace {

/// Parses one rule. `leading` is the number of dimensions that `*` stands for, set by the first
/// pattern with a `*`.
class Parser {
public:
  Parser(ShardRule &rule, std::string &error) : rule(rule), error(error) {}

  bool side(StringRef text, ArrayRef<int64_t> ranks, SmallVectorImpl<RulePattern> &patterns) {
    SmallVector<StringRef> parts;
    if (!text.trim().empty() || !ranks.empty())
      text.split(parts, ',');
    while (parts.size() > ranks.size() && parts.back().trim().starts_with("@"))
      rule.letters[letter(parts.pop_back_val().trim().drop_front())].lacksFirstIndex = true;
    if (parts.size() != ranks.size())
      return fail(llvm::formatv("has {0} patterns for {1} values", parts.size(), ranks.size()));
    for (auto [part, rank] : llvm::zip(parts, ranks))
      if (!pattern(part.trim(), rank, patterns.emplace_back()))
        return false;
    return true;
  }

private:
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }

  unsigned letter(const Twine &name) {
    std::string text = name.str();
    for (auto [i, l] : llvm::enumerate(rule.letters))
      if (l.name == text)
        return i;
    rule.letters.push_back({text});
    return rule.letters.size() - 1;
  }

  void mark(unsigned l, StringRef &text) {
    if (text.consume_front("+"))
      rule.letters[l].summed = true;
    else if (text.consume_front(">"))
      rule.letters[l].max = true;
    else if (text.consume_front("^"))
      rule.letters[l].never = true, rule.letters[l].byForm |= text.consume_front("!");
    else if (text.consume_front("!"))
      rule.letters[l].byForm = true;
    else if (text.consume_front("|"))
      (text.consume_front("=") ? rule.letters[l].alike : rule.letters[l].unbroken) = true;
  }

  static StringRef afterLetter(StringRef text) {
    return text.starts_with("[") ? text.drop_front(std::min(text.find(']') + 1, text.size()))
                                 : text;
  }

  bool pattern(StringRef text, int64_t rank, RulePattern &result) {
    if (text.consume_front("@")) {
      result.firstPerBlock = text.consume_back("*");
      if (rank != 1 || text.size() != 1 || !llvm::isAlpha(text.front()))
        return fail(llvm::formatv("'@{0}' does not fit a value of rank {1}", text, rank));
      result.firstIndexOf = static_cast<int>(letter(text));
      result.dims.emplace_back();
      return true;
    }
    if (text.consume_front("~~"))
      result.linearity = Linearity::Together;
    else if (text.consume_front("~"))
      result.linearity = Linearity::Separately;
    int64_t named = 0;
    for (StringRef rest = text; !(rest = rest.ltrim()).empty(); ++named)
      rest = rest.front() == '(' ? rest.drop_front(std::min(rest.find(')') + 1, rest.size()))
                                 : afterLetter(rest.ltrim("#").drop_front(1).ltrim("+>^!|="));
    bool hasStar = text.contains('*');
    if (hasStar && leading < 0)
      leading = rank - (named - 1);
    if (rank != named - hasStar + (hasStar ? leading : 0) || leading < -1)
      return fail(llvm::formatv("pattern '{0}' does not fit a value of rank {1}", text, rank));
    while (!(text = text.ltrim()).empty())
      if (!dim(text, result))
        return false;
    return true;
  }

  bool dim(StringRef &text, RulePattern &result) {
    if (text.consume_front("1")) {
      result.dims.emplace_back();
      return true;
    }
    if (text.consume_front("*")) {
      StringRef flags = text;
      for (int64_t i = 0; i < leading; ++i) {
        text = flags;
        unsigned l = letter("*" + Twine(i));
        mark(l, text);
        result.dims.push_back({{l}});
      }
      if (leading == 0)
        text = text.ltrim("+>^!|");
      return true;
    }
    if (text.consume_front("(")) {
      RuleDim group;
      while (!(text = text.ltrim()).empty() && !text.consume_front(")")) {
        if (!llvm::isAlpha(text.front()))
          return fail("expects letters in '(...)'");
        group.letters.push_back(letter(text.take_front(1)));
        text = text.drop_front();
        mark(group.letters.back(), text);
      }
      result.dims.push_back(group);
      return true;
    }
    bool perShard = text.consume_front("#");
    if (text.empty() || !llvm::isAlpha(text.front()))
      return fail(llvm::formatv("does not know '{0}'", text.take_front(1)));
    unsigned l = letter(text.take_front(1));
    text = text.drop_front();
    mark(l, text);
    RuleDim &added = result.dims.emplace_back(RuleDim{{l}, perShard});
    if (text.consume_front("[") &&
        (text.consumeInteger(10, added.first) || !text.consume_front("/") ||
         text.consumeInteger(10, added.full) || !text.consume_front("]") || added.full < 1))
      return fail("expects '[FIRST/FULL]' after a letter that is part of a dimension");
    return true;
  }

  ShardRule &rule;
  std::string &error;
  int64_t leading = -1;
};

} // namespace

static std::optional<ShardRule> parse(StringRef text, ArrayRef<int64_t> operandRanks,
                                      ArrayRef<int64_t> resultRanks, std::string &error) {
  ShardRule rule;
  auto [operands, results] = text.split("->");
  Parser parser(rule, error);
  if (!parser.side(operands, operandRanks, rule.operands) ||
      !parser.side(results, resultRanks, rule.results)) {
    error = llvm::formatv("rule '{0}' {1}", text, error).str();
    return std::nullopt;
  }
  for (auto [i, letter] : llvm::enumerate(rule.letters)) {
    auto has = [&, l = static_cast<unsigned>(i)](const RulePattern &p) { return p.contains(l); };
    if (!letter.summed && !letter.max && !letter.never && !letter.byForm &&
        llvm::any_of(rule.operands, has) && !llvm::all_of(rule.results, has)) {
      error = llvm::formatv("rule '{0}': letter {1} is missing in a result and marked with none of "
                            "'+', '>', '^' and '!'",
                            text, letter.name)
                  .str();
      return std::nullopt;
    }
  }
  return rule;
}

const ShardRule *ShardRule::get(StringRef text, ArrayRef<int64_t> operandRanks,
                                ArrayRef<int64_t> resultRanks, std::string &error) {
  static thread_local llvm::StringMap<ShardRule> known;
  llvm::SmallString<128> key(text);
  for (ArrayRef<int64_t> ranks : {operandRanks, resultRanks}) {
    key += ';';
    for (int64_t rank : ranks)
      key += static_cast<char>('0' + rank);
  }
  if (auto found = known.find(key); found != known.end())
    return &found->second;
  std::optional<ShardRule> parsed = parse(text, operandRanks, resultRanks, error);
  return parsed ? &known.try_emplace(key, std::move(*parsed)).first->second : nullptr;
}

bool ShardRule::letterSizes(ArrayRef<ArrayRef<int64_t>> operandShapes,
                            ArrayRef<ArrayRef<int64_t>> resultShapes,
                            SmallVectorImpl<int64_t> &sizes, std::string &error) const {
  sizes.assign(letters.size(), -1);
  // Single letters first, then groups: a group's size divided by those of its known letters is the
  // size of its one unknown letter, which another group may need.
  bool found = true;
  for (bool groups = false; found || !groups; groups = true) {
    found = !groups;
    auto visit = [&](const RulePattern &pattern, ArrayRef<int64_t> shape) {
      for (auto [dim, size] : llvm::zip(pattern.dims, shape)) {
        if (dim.letters.empty() || dim.perShard || dim.isPart() ||
            (dim.letters.size() > 1) != groups)
          continue;
        int64_t rest = size;
        int unknown = -1, unknowns = 0;
        for (unsigned l : dim.letters) {
          if (sizes[l] < 0)
            unknown = static_cast<int>(l), ++unknowns;
          else if (sizes[l] == 0 || rest % sizes[l] != 0 || (!groups && sizes[l] != size)) {
            error = llvm::formatv("dimension {0} is {1} in one operand and {2} in another",
                                  letters[l].name, sizes[l], size)
                        .str();
            return false;
          } else
            rest /= sizes[l];
        }
        if (unknowns == 1) {
          sizes[unknown] = rest;
          found = true;
        }
      }
      return true;
    };
    for (auto [pattern, shape] : llvm::zip(operands, operandShapes))
      if (!visit(pattern, shape))
        return false;
    for (auto [pattern, shape] : llvm::zip(results, resultShapes))
      if (!visit(pattern, shape))
        return false;
  }
  return true;
}

bool ShardRule::reduces() const {
  return llvm::any_of(letters, [](const RuleLetter &letter) { return letter.summed; });
}

bool ShardRule::contracts() const {
  // Not by the mark: a kernel may sum over a letter along which its op cannot be split.
  for (unsigned letter = 0; letter < letters.size(); ++letter) {
    auto contains = [&](const RulePattern &pattern) { return pattern.contains(letter); };
    if (llvm::count_if(operands, contains) > 1 && llvm::none_of(results, contains))
      return true;
  }
  return false;
}
