// What is known of other processes of the machine.

#include "partita_rt/machine.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

using namespace partita_rt;

namespace {

/// A process that has an end of a connection, and does nothing.
struct Child {
  Child() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    process = fork();
    if (process == 0) {
      close(ends[0]);
      for (;;)
        pause();
    }
    close(ends[1]);
    connection = ends[0];
  }
  ~Child() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    close(connection);
  }
  void waitUntilClosed() const {
    char byte;
    EXPECT_EQ(read(connection, &byte, 1), 0);
  }
  int process, connection;
};

TEST(Process, OneThatIsStoppedCannotRun) {
  Child child;
  EXPECT_FALSE(processCannotRun(child.process));
  kill(child.process, SIGSTOP);
  waitpid(child.process, nullptr, WUNTRACED);
  EXPECT_TRUE(processCannotRun(child.process));
  EXPECT_FALSE(processHasEnded(child.process));
}

// Whoever sees its connection end may look before the kernel is done with it: it is no zombie yet.
TEST(Process, OneWhoseConnectionsAreClosedHasEnded) {
  for (int i = 0; i < 50; ++i) {
    Child child;
    kill(child.process, SIGKILL);
    child.waitUntilClosed();
    ASSERT_TRUE(processCannotRun(child.process)) << processState(child.process);
  }
}

TEST(Process, OneThatThereIsNotCannotRun) {
  int process = 0;
  {
    Child child;
    process = child.process;
  }
  EXPECT_TRUE(processCannotRun(process));
}

} // namespace
