//===- NearestNames.cpp - what a user probably meant ------------------------------------------===//

#include "partita/Support/NearestNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

using namespace llvm;

/// Where names begin or end, or a part of them does.
static bool isBoundary(StringRef name, size_t at) {
  return at == 0 || at == name.size() || name[at - 1] == '.' || name[at] == '.' ||
         name[at - 1] == '/' || name[at] == '/';
}

/// The pattern with what it lacks before or after, so that it matches some of the names: that
/// which adds least to the first of them.
static std::string completed(StringRef pattern, ArrayRef<StringRef> names) {
  auto glob = GlobPattern::create(pattern);
  if (!glob) {
    consumeError(glob.takeError());
    return "";
  }
  std::string best;
  for (StringRef name : names) {
    for (size_t begin = 0; begin < name.size(); ++begin)
      for (size_t end = name.size(); end > begin; --end) {
        std::string full = (name.take_front(begin) + pattern + name.drop_front(end)).str();
        if ((best.empty() || full.size() < best.size()) && isBoundary(name, begin) &&
            isBoundary(name, end) && glob->match(name.slice(begin, end)))
          best = full;
      }
    if (!best.empty())
      return best;
  }
  return best;
}

std::string partita::nearestNames(StringRef pattern, ArrayRef<StringRef> names) {
  if (std::string full = completed(pattern, names); !full.empty())
    if (auto glob = GlobPattern::create(full)) {
      auto matches = make_filter_range(names, [&](StringRef name) { return glob->match(name); });
      size_t count = std::distance(matches.begin(), matches.end());
      if (count > 0)
        return "; '" + full + "' matches '" + (*matches.begin()).str() + "'" +
               (count > 1 ? " and " + std::to_string(count - 1) + " more" : "");
    }
  std::string said = pattern.str();
  erase_if(said, [](char c) { return c == '*' || c == '?'; });
  SmallVector<std::pair<unsigned, StringRef>> near;
  for (StringRef name : names)
    near.push_back({name.edit_distance(said), name});
  sort(near);
  near.truncate(std::min<size_t>(near.size(), 3));
  std::string text;
  for (auto &[distance, name] : near)
    text += (text.empty() ? "; the nearest names are '" : ", '") + name.str() + "'";
  return text;
}
