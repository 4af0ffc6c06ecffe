//===- LayerNames.cpp - the common part of layers' names --------------------------------------===//

#include "lib/Outline/LayerNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace partita::rt;

static std::vector<std::string> wordsOf(StringRef name) {
  std::vector<std::string> words;
  SmallVector<StringRef> parts;
  SplitString(name, parts, "._");
  for (StringRef part : parts)
    words.push_back(part.str());
  return words;
}

static bool isNumber(StringRef word) { return !word.empty() && all_of(word, isDigit); }

LayerLabel LayerLabel::of(StringRef name) {
  LayerLabel label;
  SmallVector<StringRef> parts;
  if (name.contains('.'))
    SplitString(name, parts, ".");
  else
    SplitString(name, parts, "_");
  for (auto [i, part] : enumerate(parts)) {
    bool isLast = i + 1 == parts.size(); // a trailing number in a variable name is a running one
    if (i == 0 || !isNumber(part) || (isLast && !name.contains('.')))
      continue;
    for (StringRef word : ArrayRef(parts).take_front(i))
      label.kind.push_back(word.str());
    label.number = part.str();
    break;
  }
  return label;
}

std::string LayerLabel::text() const { return isNone() ? "" : join(kind, ".") + "." + number; }

std::string partita::rt::mostFrequent(ArrayRef<std::string> texts) {
  StringMap<unsigned> counts;
  for (const std::string &text : texts)
    ++counts[text];
  std::string best;
  unsigned most = 0;
  for (const std::string &text : texts)
    if (unsigned count = counts.lookup(text); count > most) {
      most = count;
      best = text;
    }
  return best;
}

/// Returns the difference of two numbers: 1 if `number` comes directly after `from`.
static int64_t distance(StringRef number, StringRef from) {
  int64_t a = 0, b = 0;
  return number.getAsInteger(10, a) || from.getAsInteger(10, b) ? 0 : a - b;
}

/// Returns a name's words without its layer's.
static std::vector<std::string> withoutLayer(StringRef name, const LayerLabel &layer) {
  std::vector<std::string> words = wordsOf(name), kind;
  for (const std::string &part : layer.kind)
    append_range(kind, wordsOf(part));
  size_t count = kind.size();
  if (kind.empty() || words.size() <= count || !isNumber(words[count]) ||
      !std::equal(kind.begin(), kind.end(), words.begin()))
    return words;
  int64_t away = distance(words[count], layer.number);
  std::vector<std::string> rest(words.begin() + static_cast<std::ptrdiff_t>(count) + 1,
                                words.end());
  if (rest.empty())
    rest = kind;
  if (away == 1 || away == -1)
    rest.insert(rest.begin(), away == 1 ? "next" : "previous");
  return rest;
}

std::string partita::rt::commonName(ArrayRef<std::string> names, ArrayRef<LayerLabel> layers) {
  std::vector<std::string> rests;
  for (auto [name, layer] : zip(names, layers))
    rests.push_back(join(withoutLayer(name, layer), "_"));
  std::string common = mostFrequent(rests);
  if (all_equal(rests))
    return common;
  // Names that differ only in trailing numbers lose these, unless most names agree anyway.
  std::vector<std::string> trimmed;
  for (StringRef rest : rests) {
    while (rest.contains('_') && isNumber(rest.rsplit('_').second))
      rest = rest.rsplit('_').first;
    trimmed.push_back(rest.str());
  }
  return llvm::count(rests, common) * 2 > static_cast<int64_t>(rests.size())
             ? common
             : mostFrequent(trimmed);
}

std::string partita::rt::commonComment(ArrayRef<std::string> comments) {
  std::vector<std::string> rests;
  for (StringRef comment : comments) {
    std::string label = LayerLabel::of(comment).text();
    if (!label.empty()) {
      comment.consume_back(", backward");
      comment.consume_front(label);
      comment.consume_front(".");
    }
    rests.push_back(comment.str());
  }
  return mostFrequent(rests);
}
