//===- LevelsText.cpp - prints what nodes send, within and between ----------------------------===//

#include "tools/partita/Report/LevelsText.h"
#include "dialects/Pipe/Pipe.h"
#include "tools/partita/Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using analysis::Collective;

static int64_t sizeOf(const json::Object &axis) {
  return std::max<int64_t>(axis.getInteger("size").value_or(1), 1);
}

static int64_t rankCount(const json::Object &manifest) {
  int64_t ranks = 1;
  for (const json::Object *axis : objectsIn(manifest.getArray("mesh")))
    ranks *= sizeOf(*axis);
  return ranks;
}

std::vector<std::vector<int64_t>> partita::tool::rankGroups(const json::Object &manifest,
                                                            const json::Object &communicator) {
  std::set<std::string> along;
  if (const json::Array *axes = communicator.getArray("axes"))
    for (const json::Value &axis : *axes)
      along.insert(axis.getAsString().value_or("").str());
  const json::Array *stages = communicator.getArray("stages");
  std::vector<const json::Object *> mesh = objectsIn(manifest.getArray("mesh"));
  std::vector<std::vector<int64_t>> groups;
  std::map<std::vector<int64_t>, size_t> at; // by the coordinates that a group has in common
  for (int64_t rank = 0, ranks = rankCount(manifest); rank < ranks; ++rank) {
    std::vector<int64_t> common;
    bool takesPart = true;
    int64_t rest = rank;
    for (const json::Object *axis : llvm::reverse(mesh)) {
      int64_t coordinate = rest % sizeOf(*axis);
      rest /= sizeOf(*axis);
      if (!along.count(axis->getString("axis").value_or("").str()))
        common.push_back(coordinate);
      else if (stages) // of the one axis that they are along
        takesPart = llvm::is_contained(*stages, json::Value(coordinate));
    }
    if (!takesPart)
      continue;
    auto [group, isNew] = at.try_emplace(common, groups.size());
    if (isNew)
      groups.emplace_back();
    groups[group->second].push_back(rank);
  }
  return groups;
}

/// The rank's pipeline stage, -1 without stages.
static int64_t stageOf(const json::Object &manifest, int64_t rank) {
  std::vector<const json::Object *> mesh = objectsIn(manifest.getArray("mesh"));
  for (const json::Object *axis : llvm::reverse(mesh)) {
    if (axis->getString("axis").value_or("") == pipe::PipeDialect::kAxisName)
      return rank % sizeOf(*axis);
    rank /= sizeOf(*axis);
  }
  return -1;
}

/// What one group sends in all calls of a collective.
static LevelBytes sentBy(ArrayRef<int64_t> group, const Collective &collective, int64_t perNode) {
  auto size = static_cast<int64_t>(group.size());
  bool toAll = collective.kind == CollectiveKind::AllToAll;
  int64_t links[2] = {0, 0}; // within a node, between nodes
  for (int64_t from = 0; from < size; ++from)
    for (int64_t next = 1; next < (toAll ? size : std::min<int64_t>(size, 2)); ++next)
      ++links[group[from] / perNode != group[(from + next) % size] / perNode];
  int64_t bytes = collective.bytes * collective.calls;
  auto over = [&](int64_t count) {
    switch (collective.kind) {
    case CollectiveKind::AllToAll:
      return count * bytes / size;
    case CollectiveKind::Shift:
      return count * bytes;
    case CollectiveKind::AllReduce:
      return 2 * count * (size - 1) * bytes / size;
    default:
      return count * (size - 1) * bytes / size;
    }
  };
  return {over(links[0]), over(links[1])};
}

namespace {
/// The groups of a program's communicators, by name.
class Groups {
public:
  Groups(const json::Object &manifest, int64_t perNode) : manifest(manifest), perNode(perNode) {
    for (const json::Object *row : objectsIn(manifest.getArray("communicators")))
      groups[row->getString("name").value_or("").str()] = rankGroups(manifest, *row);
  }

  /// What all groups send for the collective; if it joins stages, for that of the first one alone.
  LevelBytes sent(const Collective &collective) const {
    LevelBytes sum;
    auto found = groups.find(collective.communicator);
    if (found == groups.end())
      return sum;
    for (const std::vector<int64_t> &group : found->second)
      if (collective.stage < 0 || stageOf(manifest, group.front()) == collective.stage)
        sum += sentBy(group, collective, perNode);
    return sum;
  }

private:
  const json::Object &manifest;
  int64_t perNode;
  std::map<std::string, std::vector<std::vector<int64_t>>> groups;
};
} // namespace

std::vector<LevelTable> partita::tool::levelsOf(const json::Object &manifest,
                                                ArrayRef<Collective> collectives,
                                                StringRef function, int64_t ranksPerNode) {
  Groups groups(manifest, ranksPerNode);
  int64_t nodes = rankCount(manifest) / ranksPerNode;
  std::vector<LevelTable> tables;
  for (analysis::Steps steps : analysis::phasesOf(collectives)) {
    LevelTable &table =
        tables.emplace_back(LevelTable{function.str(), ranksPerNode, nodes, steps, {}, {}, {}});
    for (const Collective &each : collectives)
      if (each.function == function && each.steps.contains(steps)) {
        std::string what = std::string(each.row().name) + " over " + each.axis +
                           (each.type == "float32" ? "" : " of " + each.type);
        auto row = llvm::find_if(table.rows, [&](const LevelTable::Row &its) {
          return its.backward == each.backward && its.what == what;
        });
        if (row == table.rows.end())
          row = table.rows.insert(row, {each.backward, what, {}});
        LevelBytes sent = groups.sent(each);
        row->sent += sent;
        table.all += sent;
      }
    for (LevelTable::Row &row : table.rows)
      row.sent = row.sent / nodes;
    table.all = table.all / nodes;
  }
  return tables;
}

void partita::tool::printLevels(raw_ostream &os, const LevelTable &table) {
  std::vector<std::pair<std::string, LevelBytes>> rows;
  for (const LevelTable::Row &row : table.rows)
    rows.push_back({(row.backward ? "backward  " : "forward   ") + row.what, row.sent});
  rows.push_back({"in all", table.all});
  if (table.exact)
    rows.push_back({"without ZeRO++", *table.exact});
  size_t width = 0;
  for (const auto &[title, sent] : rows)
    width = std::max(width, title.size());
  os << formatv("\nBytes that {0} of {1} {2} sends in {3}{4}, over rings\n",
                table.nodes == 1 ? "one node" : formatv("each of {0} nodes", table.nodes).str(),
                table.ranksPerNode, table.ranksPerNode == 1 ? "rank" : "ranks", table.function,
                table.steps.text());
  auto line = [&](StringRef title, StringRef within, StringRef between) {
    os << "  " << left_justify(title, width) << "  " << right_justify(within, 16) << "  "
       << right_justify(between, 16) << '\n';
  };
  line("", "within the node", "to other nodes");
  for (const auto &[title, sent] : rows)
    line(title, grouped(sent.within), grouped(sent.between));
}

json::Object partita::tool::levelsToJson(const LevelTable &table) {
  auto bytes = [](const LevelBytes &sent) {
    return json::Object{{"within", sent.within}, {"between", sent.between}};
  };
  json::Array rows;
  for (const LevelTable::Row &row : table.rows) {
    json::Object entry = bytes(row.sent);
    entry["backward"] = row.backward;
    entry["collective"] = row.what;
    rows.push_back(std::move(entry));
  }
  json::Object object{{"rows", std::move(rows)}, {"all", bytes(table.all)}};
  analysis::addSteps(table.steps, object);
  if (table.exact)
    object["without_zeropp"] = bytes(*table.exact);
  return object;
}
