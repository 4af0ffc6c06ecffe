// Looks up one option in a program's command line, for whoever needs it before or beside the program:
// `partita run`, and ranks that have not met yet. The program itself checks all options. The compiler
// includes this header, so it includes no other header of the runtime.

#ifndef PARTITA_RT_OPTION_WORDS_H
#define PARTITA_RT_OPTION_WORDS_H

#include <optional>
#include <string>
#include <string_view>

namespace partita_rt {

/// Returns the value of an option, "--name VALUE" or "--name=VALUE", the last one if there are several.
/// `words`: a range of texts.
template <typename Words>
std::optional<std::string> optionValue(const Words &words, std::string_view name) {
  std::optional<std::string> value;
  bool isNext = false;
  for (const auto &each : words) {
    std::string_view word(each);
    if (isNext)
      value = word;
    isNext = !isNext && word == name;
    if (word.size() > name.size() && word[name.size()] == '=' &&
        word.substr(0, name.size()) == name)
      value = word.substr(name.size() + 1);
  }
  return value;
}

} // namespace partita_rt

#endif // PARTITA_RT_OPTION_WORDS_H
