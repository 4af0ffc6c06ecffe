// What a process knows of itself.

#ifndef PARTITA_RT_CPU_PROCESS_H
#define PARTITA_RT_CPU_PROCESS_H

#include <cstdint>
#include <string>
#include <vector>

namespace partita_rt {

/// The words that the process was started with.
std::vector<std::string> commandLine();

/// Bytes of a range that are in this process's memory; 0 where the system does not tell.
int64_t residentBytes(const void *begin, int64_t bytes);

/// " (ulimit -v allows ... bytes of address space, ... are in use)", or "" where nothing is
/// limited.
std::string addressSpaceText();

} // namespace partita_rt

#endif // PARTITA_RT_CPU_PROCESS_H
