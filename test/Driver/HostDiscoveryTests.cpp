//===- HostDiscoveryTests.cpp - what --host-discovery's command prints ------------------------===//

#include "tools/partita/Run/HostDiscovery.h"
#include <gtest/gtest.h>

using namespace partita::tool;

namespace {

/// Returns what is found, or the problem.
std::string found(const char *command) {
  std::string problem;
  std::optional<Hosts> hosts = discoverHosts(command, problem);
  return hosts ? hosts->text() : problem;
}

TEST(HostDiscovery, ReadsHosts) {
  EXPECT_EQ(found("echo localhost:2; echo '127.0.0.1 slots=3 # here'; echo 127.0.0.2:0; echo"),
            "localhost:2,127.0.0.1:3");
  EXPECT_EQ(found("echo a b"), "--host-discovery: 'echo a b' printed 'a b', which is not NAME, "
                               "NAME:SLOTS or NAME slots=N");
  EXPECT_EQ(found("exit 7"), "--host-discovery: 'exit 7' exited with status 7");
}

TEST(HostDiscovery, DoesNotReadWithoutEnd) {
  EXPECT_EQ(found("exec yes"), "--host-discovery: 'exec yes' has printed more than 1 MiB");
  EXPECT_EQ(found("head -c 2000000 /dev/zero"),
            "--host-discovery: 'head -c 2000000 /dev/zero' has printed more than 1 MiB");
}

TEST(HostDiscovery, EndsACommandThatHangs) {
  setenv("PARTITA_PATIENCE", "discovery:1", 1);
  EXPECT_EQ(found("sleep 100"), "--host-discovery: 'sleep 100' has not ended within 1 s");
  EXPECT_EQ(found("echo localhost:2; exec sleep 100 >&-"),
            "--host-discovery: 'echo localhost:2; exec sleep 100 >&-' has not ended within 1 s");
  unsetenv("PARTITA_PATIENCE");
}

} // namespace
