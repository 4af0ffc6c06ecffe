// Messages over TCP connections (streams.h), between two ends in one process.

#include "cpu/links/sockets/streams.h"
#include "partita_rt/types.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace partita_rt {
namespace {

/// Rank 0's and rank 1's ends.
struct Pair {
  Streams first{2}, second{2};
  int raw = -1; ///< in place of rank 1, if it is a stranger

  explicit Pair(bool isStranger = false) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    first.add(1, processes::Socket(ends[0]));
    if (isStranger)
      raw = ends[1];
    else
      second.add(0, processes::Socket(ends[1]));
  }
  ~Pair() {
    if (raw >= 0)
      close(raw);
  }
  void move(int times = 200) {
    for (int i = 0; i < times; ++i) {
      first.move();
      second.move();
    }
  }
};

std::string pattern(size_t bytes, int seed) {
  std::string text(bytes, 0);
  for (size_t i = 0; i < bytes; ++i)
    text[i] = char(i * 31 + i / 255 + size_t(seed));
  return text;
}

TEST(Streams, ArriveInTheOrderOfTheirPurpose) {
  Pair ends;
  std::string a = pattern(3, 1), b = pattern(300'000, 2), c = pattern(0, 0), gotA(3, 0),
              gotB(300'000, 0);
  Operation sendA{a.data(), 3, 1}, sendB{b.data(), 300'000, 1}, sendC{c.data(), 0, 1};
  ends.first.send(sendA, {1, 7}, Sending::Eager);
  ends.first.send(sendB, {2, 7}, Sending::Eager); // of another messenger, and it comes behind
  ends.first.send(sendC, {1, 7}, Sending::Eager);
  Operation receiveB{gotB.data(), 300'000, 0};
  ends.second.receive(receiveB, {2, 7}); // does not wait for what comes before
  ends.move();
  EXPECT_TRUE(sendA.done && sendB.done && sendC.done && receiveB.done);
  EXPECT_EQ(gotB, b);
  Operation receiveA{gotA.data(), 3, 0}, receiveC{nullptr, 0, 0};
  ends.second.receive(receiveA, {1, 7}); // has arrived early
  ends.second.receive(receiveC, {1, 7});
  ends.move();
  EXPECT_TRUE(receiveA.done && receiveC.done);
  EXPECT_EQ(gotA, a);
}

TEST(Streams, AReceiveMayStartWhileItsMessageArrives) {
  Pair ends;
  size_t bytes = 8 << 20; // more than the socket and one move() take
  std::string sent = pattern(bytes, 3), got(bytes, 0);
  Operation send{sent.data(), int64_t(bytes), 1}, receive{got.data(), int64_t(bytes), 0};
  ends.first.send(send, {1, 1}, Sending::Eager);
  ends.second.move();
  ends.second.receive(receive, {1, 1});
  EXPECT_FALSE(receive.done);
  ends.move(2000);
  EXPECT_TRUE(send.done && receive.done);
  EXPECT_EQ(got, sent);
}

TEST(Streams, LargeMessagesWaitForTheirReceive) {
  Pair ends;
  int64_t bytes = Streams::kEagerBytes + 1;
  std::string sent = pattern(size_t(bytes), 4), got(size_t(bytes), 0);
  Operation send{sent.data(), bytes, 1}, receive{got.data(), bytes, 0};
  ends.first.send(send, {1, 1}, Sending::Bulk);
  ends.move();
  EXPECT_FALSE(send.done); // it is only announced: the network would have taken it
  ends.second.receive(receive, {1, 1});
  ends.move();
  EXPECT_TRUE(send.done && receive.done);
  EXPECT_EQ(got, sent);
  // One that is synchronous, to a receive that has started.
  char byte = 5, its = 0;
  Operation small{&byte, 1, 1}, taken{&its, 1, 0};
  ends.second.receive(taken, {1, 2});
  ends.first.send(small, {1, 2}, Sending::Synchronous);
  EXPECT_FALSE(small.done);
  ends.move();
  EXPECT_TRUE(small.done && taken.done);
  EXPECT_EQ(its, 5);
}

TEST(Streams, OtherSizesAreErrors) {
  for (Sending how : {Sending::Eager, Sending::Synchronous})
    for (bool early : {true, false}) {
      Pair ends;
      char four[4] = {}, eight[8] = {};
      Operation send{four, 4, 1}, receive{eight, 8, 0};
      auto run = [&] {
        if (!early)
          ends.second.receive(receive, {1, 1});
        ends.first.send(send, {1, 1}, how);
        ends.move();
        if (early)
          ends.second.receive(receive, {1, 1});
      };
      EXPECT_THROW(run(), Error);
    }
}

TEST(Streams, GarbageIsAnError) {
  Pair ends(true);
  std::string garbage = pattern(1000, 9);
  ASSERT_EQ(write(ends.raw, garbage.data(), garbage.size()), 1000);
  EXPECT_THROW(ends.move(), Error);
}

TEST(Streams, APeerThatIsGoneBreaksNothingThatIsDone) {
  Pair ends(true);
  close(ends.raw);
  ends.raw = -1;
  char byte = 0;
  Operation receive{&byte, 1, 1};
  ends.first.receive(receive, {1, 1});
  EXPECT_NO_THROW(ends.move()); // for as long as the rendezvous takes to say why
  EXPECT_FALSE(receive.done);
}

} // namespace
} // namespace partita_rt
