//===- FlopsText.cpp - each layer's FLOPs, parameters and messages ----------------------------===//

#include "tools/partita/Report/FlopsText.h"
#include "dialects/Train/Train.h"
#include "tools/partita/Program.h"
#include "tools/partita/Report/ExplainText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using analysis::Census;

static std::string flopsText(double flops) { return formatv("{0:e3}", flops); }

static int64_t exchangedAt(const Census &census, int64_t place, bool backward) {
  auto found = census.places.find(place);
  int64_t bytes = 0;
  if (found != census.places.end())
    for (const auto &[kind, count] : found->second[backward])
      bytes += count.bytes;
  return bytes * (Census::isPerMicroBatch(place) ? census.microBatches : 1);
}

void partita::tool::printFlops(raw_ostream &os, ArrayRef<LayerWork> work,
                               ArrayRef<analysis::Collective> collectives, bool trains) {
  Census census = Census::of(collectives, train::nameOf(trains ? train::EntryPoint::TrainStep
                                                               : train::EntryPoint::Forward));
  std::map<int64_t, LayerWork> places;
  std::vector<int64_t> order;
  for (const LayerWork &each : work) {
    places[each.place] = each;
    order.push_back(each.place);
  }
  for (int64_t place : census.inOrder()) // nothing is computed at gradients' reductions, ...
    if (places.try_emplace(place, LayerWork{place, {}, 0, 0}).second)
      order.push_back(place);

  // Every column but the last is as wide as its widest cell.
  std::vector<std::array<std::string, 6>> rows = {{"", "parameters", "FLOPs forward",
                                                   trains ? "backward" : "", "bytes forward",
                                                   trains ? "backward" : ""}};
  auto rowOf = [&](const LayerWork &each, int64_t forward, int64_t backward) {
    double matmuls = each.forward.matmuls;
    return std::array<std::string, 6>{"",
                                      grouped(each.parameters),
                                      flopsText(matmuls),
                                      trains ? flopsText(each.backward) : "",
                                      grouped(forward),
                                      trains ? grouped(backward) : ""};
  };
  auto rowAt = [&](int64_t place) {
    return rowOf(places[place], exchangedAt(census, place, false),
                 exchangedAt(census, place, true));
  };
  LayerWork sum;
  int64_t exchanged[2] = {0, 0};
  for (int64_t place : order) {
    sum.parameters += places[place].parameters;
    sum.forward.matmuls += places[place].forward.matmuls;
    sum.forward.elementwise += places[place].forward.elementwise;
    sum.backward += places[place].backward;
    for (bool backward : {false, true})
      exchanged[backward] += exchangedAt(census, place, backward);
  }
  auto signature = [&](int64_t place) {
    std::string text;
    for (const std::string &cell : rowAt(place))
      text += cell + "|";
    return text;
  };
  for (const std::vector<int64_t> &group : groupPlaces(order, signature)) {
    rows.push_back(rowAt(group.front()));
    rows.back()[0] = group.front() >= 0 ? layersText(group) : analysis::placeText(group.front());
  }
  rows.push_back(rowOf(sum, exchanged[0], exchanged[1]));
  rows.back()[0] = "all";

  std::array<size_t, 6> widths = {};
  for (const auto &row : rows)
    for (auto [width, cell] : zip(widths, row))
      width = std::max(width, cell.size());
  os << "\nWork of " << (trains ? "a training step" : "a forward pass")
     << ": FLOPs of all ranks together" << (trains ? ", all micro-batches" : "")
     << "; bytes that a rank communicates\n";
  for (const auto &row : rows) {
    os << "  " << left_justify(row[0], unsigned(widths[0]));
    for (size_t i = 1; i < row.size(); ++i)
      if (widths[i])
        os << "  " << right_justify(row[i], unsigned(widths[i]));
    os << '\n';
  }
  if (trains)
    os << formatv("\nModel FLOPs of a step: {0} = {1}.\nElementwise ops and reductions of the "
                  "forward pass, which do not count: {2}.\n",
                  flopsText(modelFlops(work)), kModelFlopsFormula,
                  flopsText(sum.forward.elementwise));
}
