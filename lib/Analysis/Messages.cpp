//===- Messages.cpp - lists what pipeline stages send to each other ---------------------------===//

#include "partita/Analysis/Messages.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Interfaces/Provenance.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Analysis/Communicators.h"
#include "partita/Analysis/Transfers.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;

std::string Message::nameOf(Operation *op) {
  // Outside of layers only the name tells an encoder's output from a decoder's input.
  std::string text = llvm::json::fixUTF8(provenance::nameOf(op));
  train::LayerAttr layer = train::LayerAttr::of(op);
  if (layer && layer.getNumber() >= 0)
    text = "layer " + std::to_string(layer.getNumber());
  else if (text.empty())
    text = "a value";
  return provenance::isBackward(op) ? "cotangent of " + text : text;
}

std::vector<Message> Message::of(ModuleOp stage) {
  std::vector<Message> rows;
  if (auto program = rt::ProgramAttr::of(stage)) { // after lowering, no ops on tensors remain
    for (auto noted : rt::elementsOf<rt::MessageAttr>(program.getMessages()))
      rows.push_back(fromAttr(noted, program));
    return rows;
  }
  auto add = [&](StringRef function, Operation *op, pipe::ChannelAttr channel, Type type) {
    auto row = llvm::find_if(rows, [&](const Message &each) {
      return each.function == function && each.from == channel.getFrom() &&
             each.to == channel.getTo() && each.number == channel.getNumber();
    });
    if (row == rows.end())
      row = rows.insert(row, {function.str(), nameOf(op), channel.getFrom(), channel.getTo(),
                              channel.getNumber(), provenance::isBackward(op)});
    row->messages += timesOf(op);
    row->bytes += timesOf(op) * bytesOf(type);
  };
  for (auto function : stage.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (auto send = dyn_cast<pipe::SendOp>(op))
        add(functionName(function), op, send.getChannel(), send.getValue().getType());
      if (auto receive = dyn_cast<pipe::RecvOp>(op))
        add(functionName(function), op, receive.getChannel(), receive.getValue().getType());
    });
  return rows;
}

rt::MessageAttr Message::toAttr(MLIRContext *context) const {
  std::string channel = channelOf(pipe::ChannelAttr::get(context, from, to, number));
  return rt::MessageAttr::get(context, function, channel, name, backward, messages, bytes);
}

Message Message::fromAttr(rt::MessageAttr from, rt::ProgramAttr program) {
  rt::ChannelAttr channel = program.getChannel(from.getChannel()); // there is one, by its verifier
  return {from.getFunction().str(), from.getReason().str(), channel.getSource(),
          channel.getTarget(),      channel.getNumber(),    from.getBackward(),
          from.getMessages(),       from.getBytes()};
}

llvm::json::Object Message::toJson() const {
  return llvm::json::Object{{"function", function},
                            {"from", from},
                            {"to", to},
                            {"number", number},
                            {"direction", backward ? "backward" : "forward"},
                            {"messages", messages},
                            {"bytes", bytes},
                            {"name", name}};
}
