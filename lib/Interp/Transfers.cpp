//===- Transfers.cpp - kernels of the dialect offload -----------------------------------------===//
//
// A copy is the value; where it stands is the plan's business (PlacedMemory).
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "lib/Interp/Execution.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

using RankInputs = ArrayRef<RankTensors>;
using RankOutputs = MutableArrayRef<RankTensors>;

template <typename Op> static LogicalResult copy(Execution &, Op, RankInputs in, RankOutputs out) {
  out.back() = in.back(); // of a start the buffer: the token is no tensor
  return success();
}

void partita::interp::addOffloadKernels(KernelTable &table) {
  table.addRanks<offload::ToHostOp>(copy<offload::ToHostOp>);
  table.addRanks<offload::ToDeviceOp>(copy<offload::ToDeviceOp>);
  table.addRanks<offload::ToHostStartOp>(copy<offload::ToHostStartOp>);
  table.addRanks<offload::ToDeviceStartOp>(copy<offload::ToDeviceStartOp>);
  table.addRanks<offload::WaitOp>(complete);
}
