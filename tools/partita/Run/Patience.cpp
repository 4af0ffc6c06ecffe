//===- Patience.cpp - how long `partita run` waits for what ----------------------------------===//

#include "tools/partita/Run/Patience.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <cstdlib>

using namespace llvm;
using namespace partita::tool;

namespace {

struct Row {
  Patience what;
  StringRef name;
  int seconds;
};

} // namespace

static constexpr const char *kVariable = "PARTITA_PATIENCE";
static const Row kRows[] = {
    {Patience::Discovery, "discovery", 60}, {Patience::Folder, "folder", 30},
    {Patience::Hosts, "hosts", 600},        {Patience::Launcher, "launcher", 10},
    {Patience::Lock, "lock", 30},           {Patience::Mark, "mark", 5},
    {Patience::Orphans, "orphans", 120}};

/// Reads "NAME:SECONDS". Returns false if it is not that.
static bool readWord(StringRef word, StringRef &name, int &seconds) {
  StringRef number;
  std::tie(name, number) = word.split(':');
  return any_of(kRows, [&](const Row &row) { return row.name == name; }) &&
         !number.getAsInteger(10, seconds) && seconds >= 1 && seconds <= 1'000'000;
}

static SmallVector<StringRef> words() {
  const char *text = std::getenv(kVariable);
  SmallVector<StringRef> all;
  StringRef(text ? text : "").split(all, ',', -1, /*KeepEmpty=*/false);
  return all;
}

int partita::tool::secondsOf(Patience what) {
  const Row &row = *find_if(kRows, [&](const Row &each) { return each.what == what; });
  int seconds = row.seconds, given = 0;
  for (StringRef word : words())
    if (StringRef name; readWord(word, name, given) && name == row.name)
      seconds = given;
  return seconds;
}

std::string partita::tool::textOf(Patience what) {
  int seconds = secondsOf(what);
  return seconds >= 120 && seconds % 60 == 0 ? std::to_string(seconds / 60) + " minutes"
                                             : std::to_string(seconds) + " s";
}

std::string partita::tool::problemOfPatience() {
  StringSet<> seen;
  for (StringRef word : words()) {
    StringRef name;
    int seconds = 0;
    if (!readWord(word, name, seconds))
      return (Twine(kVariable) + ": '" + word + "' is not NAME:SECONDS, where NAME is one of " +
              join(map_range(kRows, [](const Row &row) { return row.name; }), ", ") +
              " and SECONDS from 1 to 1000000")
          .str();
    if (!seen.insert(name).second)
      return (Twine(kVariable) + ": '" + name + "' is given twice").str();
  }
  return {};
}
