// Compares the ranks' builds (same_build.h).

#include "common/run/same_build.h"
#include "common/grouped.h"
#include "common/mesh/mesh.h"
#include "common/mesh/place.h"
#include "common/tensors/mapped_file.h"
#include "partita_rt/fingerprint.h"

#include <iterator>
#include <sstream>

namespace partita_rt {

/// What may differ, the most telling first; a line of the text each, after the host.
static const char *const kParts[] = {"program", "compiler", "mesh", "executable"};

static std::string executableText() {
  try {
    MappedFile file("/proc/self/exe", "executable");
    uint64_t hash = fingerprint(file.data(), file.size(), file.size());
    return grouped(file.size()) + " bytes with fingerprint " + fingerprintText(hash);
  } catch (const Error &error) {
    return error.what();
  }
}

std::string buildText(const Program &program) {
  return hostName() + "\n" + program.name + "\n" + program.compiler + "\n" + meshText(program) +
         "\n" + executableText();
}

static std::vector<std::string> linesOf(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  lines.resize(1 + std::size(kParts));
  return lines;
}

std::string differingBuilds(const std::vector<std::string> &texts) {
  std::vector<std::string> first = linesOf(texts[0]);
  for (size_t r = 1; r < texts.size(); ++r) {
    std::vector<std::string> other = linesOf(texts[r]);
    for (size_t i = 0; i < std::size(kParts); ++i)
      if (first[1 + i] != other[1 + i])
        return "ranks run programs of different builds: the " + std::string(kParts[i]) +
               " of rank 0 on " + first[0] + " is " + first[1 + i] + ", that of rank " +
               std::to_string(r) + " on " + other[0] + " is " + other[1 + i] +
               "; start the same build everywhere";
  }
  return "";
}

} // namespace partita_rt
