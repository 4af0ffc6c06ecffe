//===- Communicators.cpp - which ranks communicate, and over what -----------------------------===//

#include "partita/Analysis/Communicators.h"
#include "dialects/Par/Par.h"
#include "partita/Support/StableSort.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;
namespace json = llvm::json;

/// The stages of a collective that only some of its axis take part in.
static ArrayRef<int64_t> someStages(CollectiveInterface op) {
  ArrayRef<int64_t> stages = op.getStages();
  bool all = pipe::stageCount(op) == static_cast<int64_t>(stages.size());
  return all ? ArrayRef<int64_t>() : stages;
}

/// Does the op begin on the stream of collectives that begin ahead of their use?
static par::StreamAttr streamOf(CollectiveInterface op) {
  auto start = dyn_cast<AsyncStartInterface>(op.getOperation());
  return start ? cast<par::StreamAttr>(start.getStream()) : par::StreamAttr();
}

std::string analysis::communicatorOf(CollectiveInterface op) {
  if (ArrayRef<int64_t> stages = someStages(op); !stages.empty())
    return "stages " +
           llvm::join(llvm::map_range(stages, [](int64_t stage) { return std::to_string(stage); }),
                      " and ");
  par::StreamAttr stream = streamOf(op);
  return op.getAxisAttr().str() + (stream && stream.getAhead() ? " ahead" : "");
}

std::string analysis::channelOf(pipe::ChannelAttr channel) {
  std::string name =
      "stage " + std::to_string(channel.getFrom()) + " to " + std::to_string(channel.getTo());
  return channel.getNumber() == 0 ? name : name + ", value " + std::to_string(channel.getNumber());
}

//===----------------------------------------------------------------------------------------------===//
// Rows of one stage's ops
//===----------------------------------------------------------------------------------------------===//

static void addCommunicators(ModuleOp stage, SmallVectorImpl<rt::CommunicatorAttr> &rows) {
  if (auto program = rt::ProgramAttr::of(stage)) { // no op of tensors is left
    llvm::append_range(rows, rt::elementsOf<rt::CommunicatorAttr>(program.getCommunicators()));
    return;
  }
  Builder b(stage.getContext());
  stage.walk([&](CollectiveInterface op) {
    ArrayRef<int64_t> stages = someStages(op);
    par::StreamAttr stream = streamOf(op);
    rows.push_back(rt::CommunicatorAttr::get(
        b.getContext(), communicatorOf(op), b.getArrayAttr(op.getAxisAttr()),
        stages.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(stages),
        stream ? b.getArrayAttr(stream) : ArrayAttr()));
  });
}

static void addChannels(ModuleOp stage, SmallVectorImpl<rt::ChannelAttr> &rows) {
  if (auto program = rt::ProgramAttr::of(stage)) {
    llvm::append_range(rows, rt::elementsOf<rt::ChannelAttr>(program.getChannels()));
    return;
  }
  auto add = [&](pipe::ChannelAttr channel) {
    rows.push_back(rt::ChannelAttr::get(stage.getContext(), channelOf(channel),
                                        pipe::PipeDialect::kAxisName, channel.getFrom(),
                                        channel.getTo(), channel.getNumber()));
  };
  stage.walk([&](pipe::SendOp op) { add(op.getChannel()); });
  stage.walk([&](pipe::RecvOp op) { add(op.getChannel()); });
}

//===----------------------------------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------------------------------===//

/// Of an axis in the mesh of all stages; read from the module alone, as its siblings may be changing.
static int64_t numberOf(StringAttr axis, ModuleOp module) {
  ArrayRef<StringAttr> axes = par::MeshAttr::of(module).getAxes();
  if (const auto *found = llvm::find(axes, axis); found != axes.end())
    return pipe::axisNumber(module, found - axes.begin());
  auto number = module->getAttrOfType<IntegerAttr>(pipe::PipeDialect::kAxis);
  return number ? number.getInt() : static_cast<int64_t>(axes.size());
}

/// The row with the streams of both.
static rt::CommunicatorAttr joined(rt::CommunicatorAttr a, rt::CommunicatorAttr b) {
  llvm::SetVector<Attribute> streams;
  for (rt::CommunicatorAttr row : {a, b})
    streams.insert_range(rt::elementsOf<Attribute>(row.getStreams()));
  return rt::CommunicatorAttr::get(
      a.getContext(), a.getName(), a.getAxes(), a.getStages(),
      streams.empty() ? ArrayAttr() : ArrayAttr::get(a.getContext(), streams.getArrayRef()));
}

SmallVector<rt::CommunicatorAttr> analysis::communicatorsOf(ModuleOp module) {
  SmallVector<rt::CommunicatorAttr> found;
  for (ModuleOp stage : pipe::stagesOf(module))
    addCommunicators(stage, found);
  llvm::MapVector<StringRef, rt::CommunicatorAttr> byName;
  for (rt::CommunicatorAttr row : found) {
    auto [known, isNew] = byName.try_emplace(row.getName(), row);
    if (!isNew)
      known->second = joined(known->second, row);
  }
  // The order is the same for all stages, whatever ops they have.
  auto placeOf = [&](rt::CommunicatorAttr row) {
    SmallVector<int64_t> stages;
    if (row.getStages())
      llvm::append_range(stages, row.getStages().asArrayRef());
    int64_t axis = numberOf(cast<StringAttr>(row.getAxes()[0]), module);
    return std::make_tuple(!stages.empty(), row.isAhead(), axis, stages);
  };
  SmallVector<rt::CommunicatorAttr> rows = llvm::to_vector(llvm::make_second_range(byName));
  stableSort(rows, [&](rt::CommunicatorAttr a, rt::CommunicatorAttr b) {
    return placeOf(a) < placeOf(b);
  });
  return rows;
}

SmallVector<rt::ChannelAttr> analysis::channelsOf(ModuleOp module) {
  SmallVector<rt::ChannelAttr> rows;
  for (ModuleOp stage : pipe::stagesOf(module))
    addChannels(stage, rows);
  llvm::sort(rows, [](rt::ChannelAttr a, rt::ChannelAttr b) {
    auto ends = [](rt::ChannelAttr row) {
      return std::make_tuple(row.getSource(), row.getTarget(), row.getNumber());
    };
    return ends(a) < ends(b);
  });
  rows.erase(llvm::unique(rows), rows.end());
  return rows;
}

int64_t analysis::rankCountOf(rt::CommunicatorAttr row, ModuleOp module) {
  if (row.getStages())
    return row.getStages().size();
  int64_t ranks = 1;
  for (auto [axis, size] : pipe::meshOf(module))
    if (llvm::is_contained(row.getAxes().getValue(), axis))
      ranks *= size;
  return ranks;
}

//===----------------------------------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------------------------------===//

json::Array analysis::describeCommunicators(ModuleOp module) {
  json::Array rows;
  for (rt::CommunicatorAttr row : communicatorsOf(module)) {
    json::Array axes, streams;
    for (StringRef axis : row.getAxes().getAsValueRange<StringAttr>())
      axes.push_back(axis);
    for (auto stream : rt::elementsOf<par::StreamAttr>(row.getStreams()))
      streams.push_back(stream.getAxis().str() + (stream.getAhead() ? " ahead" : ""));
    json::Object entry{{"name", row.getName()},
                       {"axes", std::move(axes)},
                       {"ranks", rankCountOf(row, module)},
                       {"streams", std::move(streams)}};
    if (row.getStages())
      entry["stages"] = json::Array(row.getStages().asArrayRef());
    rows.push_back(std::move(entry));
  }
  return rows;
}

json::Array analysis::describeChannels(ModuleOp module) {
  json::Array rows;
  for (rt::ChannelAttr row : channelsOf(module))
    rows.push_back(json::Object{{"name", row.getName()},
                                {"axis", row.getAxis()},
                                {"from", row.getSource()},
                                {"to", row.getTarget()},
                                {"number", row.getNumber()}});
  return rows;
}
