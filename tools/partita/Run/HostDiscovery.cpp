//===- HostDiscovery.cpp - which hosts a run can use now ------------------------------------===//

#include "tools/partita/Run/HostDiscovery.h"
#include "runtime/include/partita_rt/host_lookup.h"
#include "tools/partita/Run/EndingSignals.h"
#include "tools/partita/Run/ForcedEnd.h"
#include "tools/partita/Run/Patience.h"
#include "llvm/ADT/SmallVector.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace partita::tool;
using llvm::StringRef;

/// Bytes that it may print.
static constexpr size_t kMostBytes = 1 << 20;

int64_t Hosts::slots() const {
  int64_t sum = 0;
  for (const Host &host : all)
    sum += host.slots;
  return sum;
}

std::string Hosts::text() const {
  std::string text;
  for (const Host &host : all)
    text += (text.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots);
  return text;
}

/// Reads "NAME", "NAME:SLOTS" or "NAME slots=N".
static std::optional<Host> parseHost(StringRef line) {
  StringRef name = line.take_until([](char c) { return c == ' ' || c == '\t'; }),
            slots = line.drop_front(name.size()).trim();
  bool hasSlots = !slots.empty();
  if (hasSlots && !slots.consume_front("slots="))
    return std::nullopt;
  if (!hasSlots && name.contains(':')) {
    hasSlots = true;
    std::tie(name, slots) = name.rsplit(':');
  }
  Host host;
  host.name = name.str();
  bool isNamed = !name.empty() && name.find_first_of(",:={}") == StringRef::npos;
  if (!isNamed || (hasSlots && (slots.getAsInteger(10, host.slots) || host.slots < 0 ||
                                host.slots > (1 << 20))))
    return std::nullopt;
  return host;
}

/// Starts a command in a shell, in a process group of its own, which prints into `output`. Returns
/// the process, or -1.
static pid_t startShell(const std::string &command, int output) {
  pid_t parent = getpid(), child = fork();
  if (child > 0)
    setpgid(child, child); // whoever of the two comes first
  if (child != 0)
    return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int none = open("/dev/null", O_RDONLY | O_CLOEXEC); // reading the terminal would stop it
  if (getppid() == parent && dup2(none, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0)
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char *>(nullptr));
  _exit(127);
}

/// Adds what there is to read, after a wait of up to this many milliseconds, until there is more than
/// may be.
static void readInto(std::string &text, int input, int wait) {
  char buffer[4096];
  for (pollfd ready{input, POLLIN, 0}; text.size() <= kMostBytes && poll(&ready, 1, wait) > 0;
       wait = 0) {
    ssize_t count = read(input, buffer, sizeof(buffer));
    if (count <= 0)
      break;
    text.append(buffer, size_t(count));
  }
}

/// Runs a command in a shell and returns what it prints. It is ended when the patience for it is
/// over, and by a signal to this process.
static std::optional<std::string> outputOf(const std::string &command, std::string &problem) {
  int ends[2] = {-1, -1};
  pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? startShell(command, ends[1]) : -1;
  int error = errno;
  if (ends[1] >= 0)
    close(ends[1]);
  if (child < 0) {
    if (ends[0] >= 0)
      close(ends[0]);
    problem = std::string("cannot be started: ") + std::strerror(error);
    return std::nullopt;
  }
  std::string text;
  int status = 0;
  auto begin = std::chrono::steady_clock::now();
  auto most = std::chrono::seconds(secondsOf(Patience::Discovery));
  for (bool hasEnded = false; !hasEnded;) {
    hasEnded = waitpid(child, &status, WNOHANG) == child;
    readInto(text, ends[0], hasEnded ? 0 : 20);
    bool isLate = std::chrono::steady_clock::now() - begin > most;
    if (text.size() > kMostBytes)
      problem = "has printed more than 1 MiB";
    else if (!hasEnded && (isLate || interruptingSignal()))
      problem = "has not ended within " + textOf(Patience::Discovery);
    if (!problem.empty() && !hasEnded) {
      killAndWait(-child);
      hasEnded = true;
    } else if (!hasEnded) {
      usleep(10'000); // it may have closed its output
    }
  }
  close(ends[0]);
  if (!problem.empty() || status == 0)
    return problem.empty() ? std::optional(text) : std::nullopt;
  problem = WIFEXITED(status) ? "exited with status " + std::to_string(WEXITSTATUS(status))
                              : "was ended by a signal";
  return std::nullopt;
}

/// Returns why a host is not known here; "" if it has an address, or a name server does not answer
/// now.
static std::string problemOf(const Host &host) {
  int error = partita_rt::lookUpHost(host.name);
  if (error == 0 || partita_rt::lookUpMayPass(error))
    return {};
  return "--host-discovery: host '" + host.name + "' is not known here: " + gai_strerror(error) +
         "; a name must have an address on this host";
}

std::optional<Hosts> partita::tool::discoverHosts(const std::string &command,
                                                  std::string &problem) {
  std::string why;
  std::optional<std::string> text = outputOf(command, why);
  if (!text) {
    problem = "--host-discovery: '" + command + "' " + why;
    return std::nullopt;
  }
  Hosts hosts;
  llvm::SmallVector<StringRef> lines;
  StringRef(*text).split(lines, '\n');
  for (StringRef line : lines) {
    StringRef plain = line.split('#').first.trim();
    if (plain.empty())
      continue;
    std::optional<Host> host = parseHost(plain);
    if (!host) {
      problem = ("--host-discovery: '" + command + "' printed '" + plain +
                 "', which is not NAME, NAME:SLOTS or NAME slots=N")
                    .str();
      return std::nullopt;
    }
    if (host->slots > 0)
      hosts.all.push_back(*host);
  }
  for (const Host &host : hosts.all) // a name server that does not answer takes seconds for each
    if (problem = interruptingSignal() ? "" : problemOf(host); !problem.empty())
      return std::nullopt;
  return hosts;
}
