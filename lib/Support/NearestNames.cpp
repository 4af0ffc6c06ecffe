//===- NearestNames.cpp - what a user probably meant ------------------------------------------===//

#include "partita/Support/NearestNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace llvm;

std::string partita::nearestNames(StringRef pattern, ArrayRef<StringRef> names) {
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
