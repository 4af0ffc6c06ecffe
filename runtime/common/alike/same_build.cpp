// Compares the ranks' builds (same_build.h).

#include "common/alike/same_build.h"
#include "common/alike/rank_facts.h"
#include "common/grouped.h"
#include "common/mesh/mesh.h"
#include "common/tensors/mapped_file.h"
#include "partita_rt/fingerprint.h"

namespace partita_rt {

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
  return factsText({{"program", program.name},
                    {"compiler", program.compiler},
                    {"mesh", meshText(program)},
                    {"executable", executableText()}});
}

std::string differingBuilds(const std::vector<std::string> &texts) {
  std::optional<RankDifference> found = firstDifference(texts);
  if (!found)
    return "";
  return "ranks run programs of different builds: the " + found->name + " of rank 0 on " +
         found->firstHost + " is " + found->first.value_or("") + ", that of rank " +
         std::to_string(found->rank) + " on " + found->otherHost + " is " +
         found->other.value_or("") + "; start the same build everywhere";
}

} // namespace partita_rt
