//===- HostDiscovery.cpp - which hosts a run can use now --------------------------------------===//

#include "tools/partita/Run/HostDiscovery.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdio>
#include <cstring>
#include <netdb.h>
#include <sys/wait.h>

using namespace partita::tool;
using llvm::StringRef;

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

/// Runs a command in a shell and returns what it prints.
static std::optional<std::string> outputOf(const std::string &command, std::string &problem) {
  FILE *pipe = popen(command.c_str(), "re");
  if (!pipe) {
    problem = std::string("cannot be started: ") + std::strerror(errno);
    return std::nullopt;
  }
  std::string text;
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof(buffer), pipe))
    text.append(buffer, count);
  int status = pclose(pipe);
  if (status == 0)
    return text;
  problem = WIFEXITED(status) ? "exited with status " + std::to_string(WEXITSTATUS(status))
                              : "was ended by a signal";
  return std::nullopt;
}

/// Returns why a host is not known here; "" if it has an address, or a name server does not answer now.
static std::string problemOf(const Host &host) {
  addrinfo *addresses = nullptr;
  int error = getaddrinfo(host.name.c_str(), nullptr, nullptr, &addresses);
  if (error == 0)
    freeaddrinfo(addresses);
  if (error == 0 || error == EAI_AGAIN || error == EAI_SYSTEM)
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
  for (const Host &host : hosts.all)
    if (problem = problemOf(host); !problem.empty())
      return std::nullopt;
  return hosts;
}
