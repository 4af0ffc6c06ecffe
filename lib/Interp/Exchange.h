//===- Exchange.h - stages that run at the same time, and their messages ------------*- C++ -*-===//
//
// Every stage has a thread, but only one runs at a time: it goes on until it waits for another
// stage, and hands over to the next that can go on. So each run takes the same course, and that no
// stage can go on is known at once.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_INTERP_EXCHANGE_H
#define PARTITA_LIB_INTERP_EXCHANGE_H

#include "dialects/Pipe/Pipe.h"
#include "partita/Interp/Tensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace partita::interp {

class Exchange {
public:
  /// With blocking sends, a stage waits until its value is received: at the send, or where it is awaited.
  Exchange(unsigned stages, bool blockingSends) : stages(stages), blockingSends(blockingSends) {}

  /// Runs body(stage) of every stage. Fails if one does, if all that are left wait, or if a value
  /// was sent that is never received; the error says where.
  mlir::LogicalResult run(llvm::function_ref<mlir::LogicalResult(unsigned)> body);

  /// Called by the bodies. They fail if the run does.
  mlir::LogicalResult send(pipe::SendOp op, RankTensors value, bool isAwaited);
  /// With blocking sends: waits for the receive of what the op has sent last.
  mlir::LogicalResult awaitSent(pipe::SendOp op);
  mlir::FailureOr<RankTensors> receive(pipe::RecvOp op);
  /// What all stages of the op bring, added up in the order of the stages.
  mlir::FailureOr<RankTensors> sum(pipe::SumOp op, RankTensors part);

private:
  struct Message {
    pipe::SendOp op;
    RankTensors value;
  };
  struct Channel {
    std::deque<Message> underWay;
    int64_t sent = 0, received = 0;
  };
  /// One sum of some stages, which each of them comes to.
  struct Meeting {
    std::map<unsigned, RankTensors> parts; ///< by stage
    unsigned left = 0;                     ///< stages that have taken the sum
  };
  struct Stage {
    mlir::Operation *waitsAt = nullptr;
    /// The number in its channel, or among its sums, of the one that it waits for.
    int64_t message = 0;
    bool done = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool canGoOn(const Stage &stage);
  /// Lets the next stage run; if none can, ends the run.
  void handOver(unsigned from);
  /// Waits at an op of stage `own` for a message.
  mlir::LogicalResult wait(Lock &lock, unsigned own, mlir::Operation *op, int64_t message);
  void reportStandstill();
  /// Why a stage will neither send nor receive any more; empty if it may.
  std::string whyNot(int64_t stage) const;
  std::string waitText(unsigned stage) const;

  std::vector<Stage> stages;
  bool blockingSends;
  std::map<std::tuple<int64_t, int64_t, int64_t>, Channel> channels; ///< from, to, number
  using Stages = std::vector<int64_t>;
  std::map<std::pair<Stages, int64_t>, Meeting>
      meetings;                                        ///< by the stages and the number of the sum
  std::map<std::pair<Stages, unsigned>, int64_t> came; ///< how often a stage has
  std::mutex mutex;
  std::condition_variable changed;
  unsigned turn = 0;     ///< the stage that runs
  bool stopping = false; ///< all stages are to return
};

} // namespace partita::interp

#endif // PARTITA_LIB_INTERP_EXCHANGE_H
