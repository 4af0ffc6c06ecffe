//===- ExplainText.cpp - prints why ranks communicate -----------------------------------------===//

#include "tools/partita/Report/ExplainText.h"
#include "tools/partita/Program.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita::tool;
using namespace partita::analysis;

std::string partita::tool::printable(StringRef name) {
  std::string shown;
  raw_string_ostream os(shown);
  printEscapedString(name, os);
  return shown;
}

std::string partita::tool::textIn(const json::Object &object, StringRef key) {
  return printable(object.getString(key).value_or(""));
}

std::string partita::tool::layersText(ArrayRef<int64_t> layers) {
  if (layers.size() == 1)
    return placeText(layers.front());
  if (layers.back() - layers.front() + 1 == static_cast<int64_t>(layers.size()))
    return formatv("layers {0} to {1}, each", layers.front(), layers.back()).str();
  std::string list;
  for (int64_t layer : layers)
    list += (list.empty() ? "layers " : ", ") + std::to_string(layer);
  return list + ", each";
}

std::vector<std::vector<int64_t>>
partita::tool::groupPlaces(ArrayRef<int64_t> places,
                           llvm::function_ref<std::string(int64_t)> signature) {
  std::vector<std::vector<int64_t>> result;
  StringMap<size_t> known;
  for (int64_t place : places) {
    if (place >= 0) {
      auto [found, isNew] = known.try_emplace(signature(place), result.size());
      if (!isNew) {
        result[found->second].push_back(place);
        continue;
      }
    }
    result.push_back({place});
  }
  return result;
}

//===----------------------------------------------------------------------------------------------===//
// Census
//===----------------------------------------------------------------------------------------------===//

static std::string cell(const Census::Kinds &kinds) {
  std::string text;
  for (const auto &[kind, count] : kinds)
    text += formatv("{0}{1} {2}, {3} bytes", text.empty() ? "" : "; ", count.calls, kind,
                    grouped(count.bytes))
                .str();
  return text.empty() ? "none" : text;
}

static void printCensus(raw_ostream &os, const Census &census) {
  std::vector<std::array<std::string, 3>> rows;
  auto signature = [&](int64_t place) {
    return cell(census.places.at(place)[0]) + "|" + cell(census.places.at(place)[1]);
  };
  for (const std::vector<int64_t> &group : groupPlaces(census.inOrder(), signature)) {
    std::string place = group.front() >= 0 ? layersText(group) : placeText(group.front());
    if (!Census::isPerMicroBatch(group.front()) && census.microBatches > 1)
      place += ", per step";
    const auto &directions = census.places.at(group.front());
    rows.push_back({place, cell(directions[0]), cell(directions[1])});
  }
  size_t first = 0, second = StringRef("forward").size();
  for (const auto &row : rows)
    first = std::max(first, row[0].size()), second = std::max(second, row[1].size());
  os << "\nCensus of " << census.function << ", per rank"
     << (census.microBatches > 1 ? " and micro-batch" : "") << census.steps.text() << '\n';
  auto line = [&](StringRef a, StringRef b, StringRef c) {
    os << "  " << left_justify(a, first) << "  " << left_justify(b, second) << "  " << c << '\n';
  };
  line("", "forward", "backward");
  for (const auto &row : rows)
    line(row[0], row[1], row[2]);
  if (census.layers == 0)
    os << "  No layers found: no sequence of ops with weights repeats.\n";
}

//===----------------------------------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------------------------------===//

namespace {
/// Collectives that are reported on one line.
struct Told {
  Collective first;
  int64_t calls = 0, bytes = 0, tensors = 0, others = 0;
};
} // namespace

/// Merges collectives of a place into lines: the same node's in all micro-batches; gradient buckets
/// with the same axis and seed.
static std::vector<Told> merge(ArrayRef<const Collective *> collectives, bool all) {
  MapVector<StringRef, Told> merged;
  std::vector<std::string> keys; // owned
  keys.reserve(collectives.size());
  for (const Collective *c : collectives) {
    bool bucket = c->place == Gradients;
    keys.push_back(bucket && !all ? std::string(c->row().name) + "\n" + c->axis + "\n" + c->type +
                                        "\n" + c->seed + "\n" + c->steps.text()
                                  : c->shape() + "\n" + c->node);
    auto [found, isNew] = merged.try_emplace(keys.back(), Told{*c});
    Told &told = found->second;
    told.calls += c->calls, told.bytes += c->calls * c->bytes, told.tensors += c->tensors;
    told.others += !isNew;
  }
  std::vector<Told> result;
  for (auto &entry : merged)
    result.push_back(entry.second);
  return result;
}

static void print(raw_ostream &os, const Told &told) {
  const Collective &c = told.first;
  bool gradients = c.place == Gradients;
  int64_t share = Census::isPerMicroBatch(c.place) ? c.microBatches : 1;
  os << formatv("    {0,-8}  {1} x {2} over {3}, {4} bytes", c.backward ? "backward" : "forward",
                told.calls / share, c.row().name, c.axis, grouped(told.bytes / share));
  if (c.type != "float32")
    os << " of " << c.type;
  os << c.steps.text();
  if (gradients || c.tensors > 1)
    os << ", " << (gradients ? told.tensors : c.tensors)
       << (gradients && told.tensors == 1 ? " tensor" : " tensors");
  if (gradients)
    os << ": " << c.name() << (c.node.empty() ? "" : ", such as that of ") << printable(c.node);
  else if (!c.node.empty())
    os << ": " << printable(c.node);
  os << '\n' << "              " << printable(c.why()) << '\n';
  if (!c.role)
    return;
  if (!c.letter.empty()) // else the plan requested it
    os << "              split by " << printable(c.seedText()) << '\n';
  os << "              " << (c.isRequired() ? "cannot be removed: " : "removed ")
     << printable(c.removal()) << '\n';
}

static void printReasons(raw_ostream &os, ArrayRef<Collective> collectives, StringRef function,
                         bool all) {
  std::map<int64_t, std::vector<const Collective *>> places;
  for (const Collective &c : collectives)
    if (c.function == function)
      places[c.place].push_back(&c);
  std::vector<int64_t> order;
  for (Steps steps : phasesOf(collectives))
    for (int64_t place : Census::of(collectives, function, {}, steps).inOrder())
      if (places.count(place) && !is_contained(order, place))
        order.push_back(place);
  auto signature = [&](int64_t place) {
    std::string text = all ? std::to_string(place) : "";
    for (const Collective *c : places[place])
      text += c->shape() + "\n\n";
    return text;
  };
  os << "\nReasons of " << function << '\n';
  for (const std::vector<int64_t> &group : groupPlaces(order, signature)) {
    os << "  "
       << (group.front() >= 0
               ? layersText(group) + (group.size() > 1 ? "; named as in the first" : "")
               : placeText(group.front()))
       << '\n';
    for (const Told &told : merge(places[group.front()], all))
      print(os, told);
  }
}

void partita::tool::explainCollectives(raw_ostream &os, ArrayRef<Collective> collectives,
                                       StringRef function, ArrayRef<analysis::LayerRange> ranges,
                                       bool all) {
  if (none_of(collectives, [&](const Collective &each) { return each.function == function; })) {
    os << "\nNo collectives of " << function << '\n';
    return;
  }
  std::vector<Steps> phases = phasesOf(collectives);
  if (function != train::nameOf(train::EntryPoint::TrainStep))
    phases.resize(1);
  for (Steps steps : phases)
    printCensus(os, Census::of(collectives, function, ranges, steps));
  printReasons(os, collectives, function, all);
}
