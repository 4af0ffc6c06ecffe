// Compares what the ranks were started for (same_options.h).

#include "common/run/same_options.h"
#include "common/mesh/place.h"

#include <map>
#include <sstream>

namespace partita_rt {

std::string sessionText(const Session &session) {
  std::string text = hostName() + "\n";
  for (const auto &[name, value] : session.options.given)
    text += name + "\t" + (value.empty() ? "" : " " + value) + "\n";
  for (auto [name, samples] :
       {std::pair("--data of", session.dataFile.get()), {"--eval-data of", session.evalFile.get()}})
    if (samples)
      text += std::string(name) + "\t " + samples->identity() + "\n";
  return text;
}

/// Reads a text: what follows each name.
static std::map<std::string, std::string> valuesOf(const std::string &text, std::string &host) {
  std::istringstream stream(text);
  std::getline(stream, host);
  std::map<std::string, std::string> values;
  for (std::string line; std::getline(stream, line);) {
    size_t tab = line.find('\t');
    values[line.substr(0, tab)] = tab == std::string::npos ? "" : line.substr(tab + 1);
  }
  return values;
}

std::string differingSessions(const std::vector<std::string> &texts) {
  std::string firstHost, host;
  std::map<std::string, std::string> first = valuesOf(texts[0], firstHost);
  auto has = [](std::map<std::string, std::string> &values, const std::string &name) {
    auto found = values.find(name);
    return found == values.end() ? " has no " + name : " has " + name + found->second;
  };
  for (size_t r = 1; r < texts.size(); ++r) {
    std::map<std::string, std::string> other = valuesOf(texts[r], host), all = first;
    all.insert(other.begin(), other.end());
    for (const auto &[name, value] : all) {
      std::string its = has(other, name), firsts = has(first, name);
      if (its != firsts)
        return "ranks were started with different options: rank " + std::to_string(r) + " on " +
               host + its + ", rank 0 on " + firstHost + firsts;
    }
  }
  return "";
}

} // namespace partita_rt
