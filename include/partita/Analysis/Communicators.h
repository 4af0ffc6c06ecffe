//===- Communicators.h - which ranks communicate, and over what ---------------------*- C++ -*-===//
//
// The rows of the program's communicators and channels. Before phase `lower` they come from the ops
// that need them, later from #rt.program. dialects/Rt/README.md says how an op finds its row.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_COMMUNICATORS_H
#define PARTITA_ANALYSIS_COMMUNICATORS_H

#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace partita::analysis {

/// The name of a collective's communicator: "dp", "dp ahead", "stages 0 and 3".
std::string communicatorOf(CollectiveInterface op);
/// The name of a channel: "stage 0 to 1", "stage 1 to 0, value 2".
std::string channelOf(pipe::ChannelAttr channel);

/// The rows of a program, each once, or of one of its stages: those of all ranks of an axis, in the
/// mesh's order; then those of collectives that begin ahead of their use; then those of some stages.
llvm::SmallVector<rt::CommunicatorAttr> communicatorsOf(mlir::ModuleOp module);
/// Likewise, in the order of their ends.
llvm::SmallVector<rt::ChannelAttr> channelsOf(mlir::ModuleOp module);

/// How many ranks issue a collective of the row together.
int64_t rankCountOf(rt::CommunicatorAttr row, mlir::ModuleOp module);

/// The tables in the manifest.
llvm::json::Array describeCommunicators(mlir::ModuleOp module);
llvm::json::Array describeChannels(mlir::ModuleOp module);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_COMMUNICATORS_H
