// Queries the system about the process (process.h).

#include "cpu/process.h"

#include "common/grouped.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace partita_rt {

std::vector<std::string> commandLine() {
  std::vector<std::string> words;
  std::ifstream line("/proc/self/cmdline");
  for (std::string word; std::getline(line, word, '\0');)
    words.push_back(word);
  return words;
}

std::string addressSpaceText() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "";
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return " (ulimit -v allows " + grouped(int64_t(limit.rlim_cur)) + " bytes of address space, " +
         grouped(pages * sysconf(_SC_PAGESIZE)) + " are in use); raise it (ulimit -v unlimited)";
}

int64_t residentBytes(const void *begin, int64_t bytes) {
  constexpr uint64_t kPresent = uint64_t(1) << 63; // in a page's entry
  const auto page = uint64_t(sysconf(_SC_PAGESIZE));
  auto address = reinterpret_cast<uint64_t>(begin);
  std::vector<uint64_t> entries((address + uint64_t(bytes) + page - 1) / page - address / page);
  const size_t size = entries.size() * sizeof(uint64_t);
  int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); // must be read in full entries
  ssize_t read = pread(map, entries.data(), size, off_t(address / page * sizeof(uint64_t)));
  close(map);
  if (read != ssize_t(size))
    return 0;
  return int64_t(page) * std::count_if(entries.begin(), entries.end(),
                                       [](uint64_t entry) { return entry & kPresent; });
}

} // namespace partita_rt
