//===- Topology.cpp - see Topology.h ----------------------------------------------------------===//

#include "lib/Emit/Topology.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
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

Topology::Topology(ModuleOp module) : module(module) {
  for (ModuleOp stage : pipe::stagesOf(module)) {
    auto program = rt::ProgramAttr::of(stage);
    if (!program)
      continue;
    for (auto axis : rt::elementsOf<StringAttr>(program.getGathersAhead()))
      gathersAhead.insert(axis);
    for (auto stages : rt::elementsOf<DenseI64ArrayAttr>(program.getStageSums()))
      stageSums.insert(stages);
    for (auto message : rt::elementsOf<rt::MessageAttr>(program.getMessages()))
      links.insert({message.getSource(), message.getTarget(), message.getNumber()});
  }
}

std::string Topology::enumerations() const {
  std::string names = llvm::join(
      llvm::map_range(pipe::meshOf(module),
                      [](auto axis) { return rt::axisName(axis.first.getValue()); }),
      ", ");
  if (names.empty())
    return "";
  std::string text = "\nenum MeshAxis { " + names + " };\n", gathers, sums, channels;
  size_t row = pipe::meshOf(module).size();
  auto add = [&](std::string &list, const std::string &name) {
    list += (list.empty() ? "" : ", ") + name + " = " + std::to_string(row++);
  };
  for (StringAttr axis : gathersAhead)
    add(gathers, rt::gathersName(axis.getValue()));
  for (Attribute stages : stageSums)
    add(sums, rt::stagesName(cast<DenseI64ArrayAttr>(stages).asArrayRef()));
  for (auto [from, to, number] : links)
    channels += (channels.empty() ? "" : ", ") + rt::channelName(from, to, number);
  if (!gathers.empty())
    text += "enum GatherGroup { " + gathers + " }; // rows of kGroups, too\n";
  if (!sums.empty())
    text += "enum StageGroup { " + sums + " }; // rows of kGroups, too\n";
  return channels.empty() ? text : text + "enum StageChannel { " + channels + " };\n";
}

SmallVector<std::string> Topology::axes() const {
  SmallVector<std::string> rows;
  for (auto [axis, size] : pipe::meshOf(module))
    rows.push_back("{" + rt::stringLiteral(axis.getValue()) + ", " + std::to_string(size) + "}");
  return rows;
}

SmallVector<std::string> Topology::groups() const {
  SmallVector<std::string> rows;
  if (gathersAhead.empty() && stageSums.empty())
    return rows;
  auto add = [&](StringRef axis, const std::string &some) {
    rows.push_back("{" + rt::stringLiteral(axis) + ", {" + rt::axisName(axis) + "}" + some + "}");
  };
  for (auto [axis, size] : pipe::meshOf(module))
    add(axis.getValue(), "");
  for (StringAttr axis : gathersAhead)
    add(axis.getValue(), "");
  for (Attribute stages : stageSums)
    add(pipe::PipeDialect::kAxisName,
        ", " + shapeText(cast<DenseI64ArrayAttr>(stages).asArrayRef()));
  return rows;
}

SmallVector<std::string> Topology::channels() const {
  SmallVector<std::string> rows;
  for (auto [from, to, number] : links)
    rows.push_back(llvm::formatv("{{\"stage {0} to {1}{2}\", {0}, {1}}", from, to,
                                 number ? ", value " + std::to_string(number) : "")
                       .str());
  return rows;
}
