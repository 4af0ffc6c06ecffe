//===- Contents.cpp - see Contents.h ------------------------------------------------------------===//

#include "lib/Memory/Check/Contents.h"

using namespace mlir;
using namespace partita;
using namespace partita::memory::check;

void Contents::write(int number, Operation *by, int now) {
  scribble(contents[number].bytes, by, now, number);
  Content &content = contents[number];
  content.damages.clear();
  if (!content.isThere)
    there[static_cast<size_t>(content.bytes.space)].push_back(
        {content.bytes.begin, content.bytes.end, number});
  content.isThere = true;
}

void Contents::scribble(const Bytes &bytes, Operation *by, int now, int except) {
  std::vector<There> &list = there[static_cast<size_t>(bytes.space)];
  for (size_t i = 0; i < list.size();) {
    There each = list[i];
    if (each.end <= bytes.begin || bytes.end <= each.begin || each.number == except) {
      ++i;
      continue;
    }
    Content &content = contents[each.number];
    bool isWanted = content.lastRead >= now;
    if (isWanted && !analysis::commonByte(content.bytes, bytes)) {
      ++i;
      continue;
    }
    content.damages.push_back({bytes, by, now});
    bool isGone = bytes.begin <= each.begin && each.end <= bytes.end && bytes.view.isDense();
    if (isWanted && !isGone) {
      ++i;
      continue;
    }
    content.isThere = false;
    list[i] = list.back();
    list.pop_back();
  }
}

std::optional<Contents::Loss> Contents::findLoss(int number, const Bytes &bytes) const {
  for (const Content::Damage &damage : contents[number].damages)
    if (std::optional<int64_t> byte = analysis::commonByte(bytes, damage.bytes))
      return Loss{*byte, damage.by, damage.when};
  return std::nullopt;
}
