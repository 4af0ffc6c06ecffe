//===- ProgramWords.cpp - what a program's command line says to its supervisor --------------===//

#include "tools/partita/Run/ProgramWords.h"
#include "runtime/include/partita_rt/option_words.h"
#include "runtime/include/partita_rt/timeout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace partita::tool;

ProgramWords partita::tool::readWords(ArrayRef<std::string> arguments) {
  ProgramWords words;
  words.folder = partita_rt::optionValue(arguments, "--checkpoint").value_or("");
  words.log = partita_rt::optionValue(arguments, "--log").value_or("");
  std::string count = partita_rt::optionValue(arguments, "--steps").value_or("");
  if (int64_t steps; !StringRef(count).getAsInteger(10, steps))
    words.steps = steps;
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef word = arguments[i], name = word.split('=').first;
    if (name == "--resume") {
      words.resumes = true;
      if (name == word && i + 1 < arguments.size() && arguments[i + 1] == "auto")
        ++i;
      continue;
    }
    if (name == "--overwrite")
      continue;
    words.again.push_back(word.str());
  }
  words.again.insert(words.again.end(), {"--resume", "auto"});
  return words;
}

double partita::tool::timeoutOf(llvm::ArrayRef<char *> arguments) {
  auto words = arguments.take_while([](char *word) { return word; });
  if (std::optional<double> given = partita_rt::timeoutIn(words))
    return *given;
  return partita_rt::secondsIn(partita_rt::timeoutInEnvironment())
      .value_or(partita_rt::kTimeoutSeconds);
}
