// Messages between processes over MPI, also within a node, where MPI copies through its own memory
// in chunks. A signature goes ahead, and the receiver asks for the data if it agrees: data of
// another size would end the job with MPI's error message. MPI moves messages while its functions
// are called: in starts, polls and waits.

#ifndef PARTITA_RT_CPU_MESSAGE_CHANNEL_H
#define PARTITA_RT_CPU_MESSAGE_CHANNEL_H

#include "cpu/channel.h"

#include <deque>
#include <mpi.h>

namespace partita_rt {

class MessageChannel final : public OrderedEnd {
public:
  /// `comm` has the ranks of the program, and only channels use it. `synchronous`: a send completes
  /// only when its receive has started.
  MessageChannel(ChannelPlace place, RankWaits &waits, MPI_Comm comm, bool synchronous)
      : OrderedEnd(std::move(place), waits, nullptr), comm(comm), synchronous(synchronous) {}

  /// Compares numbers: a message can move only if those before it can.
  bool isComplete(uint64_t number) const override { return number <= completed; }
  void advance() override;

private:
  struct UnderWay {
    Message message;
    MessageSignature theirs;           ///< of a received message
    std::vector<MPI_Request> requests; ///< the signature's first
    bool agreed = false;               ///< the data are in transit too
  };
  void post(Message message) override;
  void send(const void *data, int64_t bytes, int tag, UnderWay &entry);
  void receive(void *data, int64_t bytes, int tag, UnderWay &entry);
  void moveData(UnderWay &entry);
  int signatureTag() const { return 2 * place.row; }
  int dataTag() const { return 2 * place.row + 1; }

  MPI_Comm comm;
  bool synchronous;
  std::deque<UnderWay> underWay; ///< from number completed + 1 on
  uint64_t completed = 0;
};

} // namespace partita_rt

#endif // PARTITA_RT_CPU_MESSAGE_CHANNEL_H
