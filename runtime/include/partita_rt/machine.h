// The machine that a process runs on. The compiler includes this too, so this header includes no
// other header of the runtime.

#ifndef PARTITA_RT_MACHINE_H
#define PARTITA_RT_MACHINE_H

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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

/// Reads the beginning of a file of /proc about a process; "" if there is none. Allocates nothing.
template <size_t kSize> void readOfProcess(int process, const char *name, char (&text)[kSize]) {
  char path[48];
  std::snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? 0 : read(file, text, kSize - 1);
  if (file >= 0)
    close(file);
  text[size > 0 ? size : 0] = 0;
}

/// Reads what /proc says of a process from its state on (proc(5)): "T 1 4711 ..."; "" if there is no such
/// process, or no /proc. Allocates nothing.
inline const char *processStat(int process, char (&line)[512]) {
  readOfProcess(process, "stat", line);
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

/// Had a process been sent this signal before it ended, and not taken it? The kernel keeps that until its parent has
/// waited for it, and sends a process that ends no more. A signal's handler may call it.
inline bool hasUntakenSignal(int process, int signal) {
  char text[4096];
  readOfProcess(process, "status", text);
  for (const char *name : {"\nSigPnd:", "\nShdPnd:"})
    if (const char *field = std::strstr(text, name))
      if (std::strtoull(field + std::strlen(name), nullptr, 16) >> (signal - 1) & 1)
        return true;
  return false;
}

/// Can a process of this host do nothing by itself: has it ended, or does a signal or a debugger keep it stopped?
inline bool processCannotRun(int process) {
  char state = processState(process);
  return state == 'T' || state == 't' || processHasEnded(process);
}

} // namespace partita_rt

#endif // PARTITA_RT_MACHINE_H
