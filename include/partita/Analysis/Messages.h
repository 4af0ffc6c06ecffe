//===- Messages.h - lists what pipeline stages send to each other -------------------*- C++ -*-===//
//
// One record per channel and function of a stage's program: what one rank sends over the channel,
// or receives, in one call. The runtime counts the same at both ends.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_MESSAGES_H
#define PARTITA_ANALYSIS_MESSAGES_H

#include "dialects/Pipe/Pipe.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace partita::rt {
class MessageAttr;
class ProgramAttr;
} // namespace partita::rt

namespace partita::analysis {

struct Message {
  std::string function, name;
  int64_t from = 0, to = 0, number = 0; ///< the channel
  bool backward = false;
  int64_t messages = 0, bytes = 0; ///< per call of the function; bytes in all

  /// Returns the messages of a stage, in order of first use.
  static std::vector<Message> of(mlir::ModuleOp stage);
  /// Returns a message's name in reports, after the layer of the op: "layer 3", "cotangent of layer
  /// 3"; outside of layers after the value's node.
  static std::string nameOf(mlir::Operation *op);

  rt::MessageAttr toAttr(mlir::MLIRContext *context) const;
  /// The channel's ends are in the program's table.
  static Message fromAttr(rt::MessageAttr attribute, rt::ProgramAttr program);
  llvm::json::Object toJson() const;
};

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_MESSAGES_H
