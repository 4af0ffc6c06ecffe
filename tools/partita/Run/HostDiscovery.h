//===- HostDiscovery.h - which hosts a run can use now ----------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_RUN_HOSTDISCOVERY_H
#define PARTITA_TOOLS_RUN_HOSTDISCOVERY_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

struct Host {
  std::string name;
  int64_t slots = 1; ///< ranks that it can have
};

/// The hosts of one run of --host-discovery's command.
struct Hosts {
  std::vector<Host> all;

  int64_t slots() const;
  /// "a:4,b:2", as Open MPI's --host takes it.
  std::string text() const;
};

/// Runs the command in a shell and reads its output: a host per line, NAME, NAME:SLOTS or, as in
/// Open MPI's host files, NAME slots=N; '#' begins a comment. This is the contract of Horovod's
/// host discovery scripts. Nothing, with `problem` set, if the command fails or takes more than a
/// minute (Patience.h), prints other lines, or names a host that has no address here.
std::optional<Hosts> discoverHosts(const std::string &command, std::string &problem);

} // namespace partita::tool

#endif // PARTITA_TOOLS_RUN_HOSTDISCOVERY_H
