//===- Topology.cpp - see Topology.h ----------------------------------------------------------===//

#include "lib/Emit/Topology.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "partita/Analysis/Communicators.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::emit;

std::string emit::shapeText(ArrayRef<int64_t> shape) {
  std::string text = "{";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream);
  return text + "}";
}

Topology::Topology(ModuleOp module)
    : module(module), communicatorRows(analysis::communicatorsOf(module)),
      channelRows(analysis::channelsOf(module)) {}

std::string Topology::enumerations() const {
  std::string text;
  auto add = [&](StringRef name, ArrayRef<std::string> rows, StringRef comment) {
    if (!rows.empty())
      text += ("enum " + name + " { " + llvm::join(rows, ", ") + " };" + comment + "\n").str();
  };
  add("MeshAxis",
      llvm::map_to_vector(pipe::meshOf(module),
                          [](auto axis) { return rt::axisName(axis.first.getValue()); }),
      "");
  add("GroupRow",
      llvm::map_to_vector(
          communicatorRows,
          [](rt::CommunicatorAttr row) { return rt::communicatorName(row.getName()); }),
      " // rows of kGroups");
  add("ChannelRow",
      llvm::map_to_vector(channelRows,
                          [](rt::ChannelAttr row) { return rt::channelName(row.getName()); }),
      " // rows of kChannels");
  return text.empty() ? text : "\n" + text;
}

SmallVector<std::string> Topology::axes() const {
  SmallVector<std::string> rows;
  for (auto [axis, size] : pipe::meshOf(module))
    rows.push_back("{" + rt::stringLiteral(axis.getValue()) + ", " + std::to_string(size) + "}");
  return rows;
}

SmallVector<std::string> Topology::groups() const {
  return llvm::map_to_vector(communicatorRows, [](rt::CommunicatorAttr row) {
    std::string axes = llvm::join(
        llvm::map_range(row.getAxes().getAsValueRange<StringAttr>(), rt::axisName), ", ");
    std::string stages = row.getStages() ? ", " + shapeText(row.getStages().asArrayRef()) : "";
    return "{" + rt::stringLiteral(row.getCounted()) + ", {" + axes + "}" + stages + "}";
  });
}

SmallVector<std::string> Topology::channels() const {
  return llvm::map_to_vector(channelRows, [](rt::ChannelAttr row) {
    return llvm::formatv("{{{0}, {1}, {2}}", rt::stringLiteral(row.getName()), row.getSource(),
                         row.getTarget())
        .str();
  });
}
