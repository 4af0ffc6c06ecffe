// The machine that a process runs on. The compiler includes this too, so this header includes no
// other header of the runtime.

#ifndef PARTITA_RT_MACHINE_H
#define PARTITA_RT_MACHINE_H

#include <fstream>
#include <string>
#include <unistd.h>

namespace partita_rt {

/// Returns this host's name; containers of one machine have names of their own.
inline std::string hostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "?";
}

/// Returns the text that identifies this boot of this machine, in containers too; empty if unknown.
inline std::string bootId() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  return text;
}

/// Returns the letter of a process's state (proc(5)): 'T' if a signal has stopped it; 0 if there is no
/// such process.
inline char processState(int process) {
  std::string line;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), line);
  size_t name = line.rfind(')'); // a process chooses its own name
  return name == std::string::npos || name + 2 >= line.size() ? 0 : line[name + 2];
}

} // namespace partita_rt

#endif // PARTITA_RT_MACHINE_H
