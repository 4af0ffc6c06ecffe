//===- ForcedEnd.cpp - ends processes that do not end by themselves --------------------------===//

#include "tools/partita/Run/ForcedEnd.h"
#include <csignal>
#include <cstdlib>
#include <sys/wait.h>

using namespace partita::tool;

void ForcedEnd::noteAsked(llvm::ArrayRef<pid_t> processes, double now) {
  asked.insert(processes.begin(), processes.end());
  if (!since && !processes.empty())
    since = now;
}

void ForcedEnd::send(llvm::ArrayRef<pid_t> processes, double now) {
  if (secondsSince(now) > toEnd)
    return kill(processes);
  for (pid_t process : processes)
    if (asked.insert(process).second) {
      ::kill(process, SIGTERM);
      sent = true;
    }
  noteAsked(processes, now);
}

void ForcedEnd::kill(llvm::ArrayRef<pid_t> processes) {
  for (pid_t process : processes)
    ::kill(process, SIGKILL);
  sent |= !processes.empty();
}

void partita::tool::killAndWait(pid_t process) {
  kill(process, SIGKILL);
  waitpid(std::abs(process), nullptr, 0);
}
