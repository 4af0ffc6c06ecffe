// Whoever connects to rank 0 and is no rank of its run.

#include "forked_ranks.h"
#include "processes/joining.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace partita_rt::processes {
namespace {

/// Connects, sends the text, and returns the answer until the other end closes.
std::string talk(int port, const std::string &text) {
  std::string problem, answer;
  Socket socket;
  while (!socket.isOpen())
    socket = connectTo("127.0.0.1", port, 1, problem);
  (void)!write(socket.get(), text.data(), text.size());
  char buffer[512];
  pollfd wait{socket.get(), POLLIN, 0};
  while (poll(&wait, 1, 300) > 0) {
    ssize_t n = read(socket.get(), buffer, sizeof(buffer));
    if (n <= 0)
      break;
    answer.append(buffer, size_t(n));
  }
  return answer;
}

/// Returns the greeting of a rank of another run.
std::string foreignHello() {
  Greeting greeting = greetingOf(environmentOf(1, 2, 1), 0);
  greeting.run = "yesterday's";
  std::string text = textOf(greeting), frame(9, 0);
  frame[0] = char(text.size());
  frame[1] = char(text.size() >> 8);
  frame[4] = FrameKind::Hello;
  return frame + text;
}

TEST(Rendezvous, StrangersAreRefusedAndTheRunGoesOn) {
  int port = freePort();
  auto all = runRanks(3, [&](int rank) {
    if (rank == 2) { // the strangers, before rank 1 arrives
      std::string huge = {char(0xff), char(0xff), char(0xff), char(0xff), FrameKind::Hello,
                          0,          0,          0,          0};
      for (const std::string &text : {std::string("GET / HTTP/1.1\r\n\r\n"), huge,
                                      std::string(20000, 'x'), std::string(1, 0), std::string()})
        talk(port, text);
      std::string answer = talk(port, foreignHello());
      if (answer.find("this is rank 0 of another run") == std::string::npos)
        throw std::runtime_error("not refused: " + answer);
      Rendezvous ranks(environmentOf(1, 2, port), "test");
      ranks.barrier("the end");
    } else if (rank == 1) { // finds only rank 0 of another run
      setenv("PARTITA_RT_TIMEOUT", "1", 1);
      LaunchEnvironment environment = environmentOf(1, 2, port);
      environment.run = "another";
      Rendezvous ranks(environment, "test");
    } else {
      Rendezvous ranks(environmentOf(0, 2, port), "test");
      ranks.barrier("the end");
    }
  });
  EXPECT_EQ(all[0].code, 0) << all[0].text;
  EXPECT_EQ(all[2].code, 0) << all[2].text;
  EXPECT_EQ(all[1].code, 1);
  EXPECT_NE(all[1].text.find("has not found rank 0 at 127.0.0.1:"), std::string::npos);
}

} // namespace
} // namespace partita_rt::processes
