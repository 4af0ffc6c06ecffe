// A process's information about itself.

#ifndef PARTITA_RT_CPU_PROCESS_H
#define PARTITA_RT_CPU_PROCESS_H

#include <cstdint>
#include <string>
#include <vector>

namespace partita_rt {

/// Returns the arguments that the process was started with.
std::vector<std::string> commandLine();

/// Returns the bytes of a range that are in this process's memory; 0 if the system does not report
/// it.
int64_t residentBytes(const void *begin, int64_t bytes);

/// Returns " (ulimit -v allows ... bytes of address space, ... are in use); raise it (ulimit -v
/// unlimited)", or "" if it is unlimited.
std::string addressSpaceText();

} // namespace partita_rt

#endif // PARTITA_RT_CPU_PROCESS_H
