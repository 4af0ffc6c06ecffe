// The machine that a process runs on. The compiler includes this too, so this header includes no
// other header of the runtime.

#ifndef PARTITA_RT_MACHINE_H
#define PARTITA_RT_MACHINE_H

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
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

/// Reads what /proc says of a process from its state on (proc(5)): "T 1 4711 ..."; "" if there is no such
/// process, or no /proc. A signal's handler may call it.
inline const char *processStat(int process, char (&line)[512]) {
  char path[32] = "/proc/", digits[12];
  size_t end = std::strlen(path), size = 0;
  for (int left = process; left > 0; left /= 10)
    digits[size++] = char('0' + left % 10);
  while (size > 0)
    path[end++] = digits[--size];
  std::memcpy(path + end, "/stat", 6);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? 0 : read(file, line, sizeof(line) - 1);
  if (file >= 0)
    close(file);
  line[got > 0 ? got : 0] = 0;
  const char *name = std::strrchr(line, ')'); // a process chooses its own name
  return name && name[1] == ' ' ? name + 2 : "";
}

/// Returns the letter of a process's state: 'T' if a signal has stopped it; 0 if there is no such process.
inline char processState(int process) {
  char line[512];
  return *processStat(process, line);
}

/// Has a process ended? One that its parent has not waited for, or whose memory the kernel still frees, has
/// too: its sockets may be closed already, by which a launcher learns of its end. A signal's handler
/// may call it.
inline bool processHasEnded(int process) {
  constexpr unsigned long kExiting = 4; // PF_EXITING among the kernel's flags, the seventh field
  if (kill(process, 0) != 0 && errno == ESRCH)
    return true;
  char line[512];
  unsigned long flags = 0;
  const char *field = processStat(process, line), state = *field;
  if (!state) // it has gone since, or /proc is not to be read
    return kill(process, 0) != 0 && errno == ESRCH;
  for (int i = 0; i < 6 && field; ++i)
    field = std::strchr(field + 1, ' ');
  for (; field && *++field >= '0' && *field <= '9';)
    flags = flags * 10 + static_cast<unsigned long>(*field - '0');
  return state == 'Z' || state == 'X' || (flags & kExiting);
}

/// Can a process of this host do nothing by itself: has it ended, or does a signal or a debugger keep it stopped?
inline bool processCannotRun(int process) {
  char state = processState(process);
  return state == 'T' || state == 't' || processHasEnded(process);
}

} // namespace partita_rt

#endif // PARTITA_RT_MACHINE_H
