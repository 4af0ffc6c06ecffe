//===- LevelsText.cpp - prints what nodes send, within and between ----------------------------===//

#include "tools/partita/Report/LevelsText.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Target.h"
#include "tools/partita/Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
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

using PerNode = std::vector<LevelBytes>;

/// Adds what one group sends over a ring in all calls of a collective, by node.
static void addRing(ArrayRef<int64_t> group, const Collective &collective, int64_t perNode,
                    PerNode &sent) {
  auto size = static_cast<int64_t>(group.size());
  int64_t bytes = collective.bytes * collective.calls;
  bool toAll = collective.kind == CollectiveKind::AllToAll;
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
  std::map<int64_t, LevelBytes> links; // by node
  for (int64_t from = 0; from < size; ++from)
    for (int64_t next = 1; next < (toAll ? size : std::min<int64_t>(size, 2)); ++next) {
      int64_t node = group[from] / perNode;
      bool leaves = node != group[(from + next) % size] / perNode;
      links[node] += {leaves ? 0 : 1, leaves ? 1 : 0};
    }
  for (const auto &[node, its] : links)
    sent[node] += {over(its.within), over(its.between)};
}

/// The type of numbers that are added up; others are bytes to those who send them.
static partita_rt::DType reducedType(StringRef name) {
  using partita_rt::DType;
  return llvm::StringSwitch<DType>(name)
      .Case("float64", DType::Float64)
      .Case("float16", DType::Float16)
      .Case("bfloat16", DType::BFloat16)
      .Case("int64", DType::Int64)
      .Case("int32", DType::Int32)
      .Default(DType::Float32);
}

/// Adds what the ranks of one group send each other on CPUs in all calls of a collective.
static void addOnCpus(ArrayRef<int64_t> group, const Collective &collective, int64_t perNode,
                      PerNode &sent) {
  std::vector<int> nodes;
  for (int64_t rank : group)
    nodes.push_back(int(rank / perNode));
  partita_rt::NodeLayout layout(nodes);
  const CollectiveRow &row = collective.row();
  partita_rt::DType type = row.reduces ? reducedType(collective.type) : partita_rt::DType::UInt8;
  int64_t parts = partita_rt::wireBytes(row.kind, 1, layout.size()); // as the bytes are counted
  int64_t elements = collective.bytes / parts / partita_rt::sizeOf(type);
  std::vector<LevelBytes> its = partita_rt::NodeTraffic(layout, row.kind, type, elements).byNode();
  for (size_t n = 0; n < its.size(); ++n)
    sent[nodes[layout.firsts[n]]] +=
        {its[n].within * collective.calls, its[n].between * collective.calls};
}

namespace {
/// The groups of a program's communicators, by name.
class Groups {
public:
  Groups(const json::Object &manifest, int64_t perNode)
      : manifest(manifest), perNode(perNode),
        nodes((rankCount(manifest) + perNode - 1) / perNode), // the manifest may be wrong
        overRings(targetOf(manifest).sendsOverRings()) {
    for (const json::Object *row : objectsIn(manifest.getArray("communicators")))
      groups[row->getString("name").value_or("").str()] = rankGroups(manifest, *row);
  }

  /// What all groups send for the collective, by node; if it joins stages, for that of the first one alone.
  PerNode sent(const Collective &collective) const {
    PerNode sum(nodes);
    auto found = groups.find(collective.communicator);
    if (found == groups.end())
      return sum;
    for (const std::vector<int64_t> &group : found->second)
      if (collective.stage < 0 || stageOf(manifest, group.front()) == collective.stage)
        (overRings ? addRing : addOnCpus)(group, collective, perNode, sum);
    return sum;
  }

  const json::Object &manifest;
  int64_t perNode, nodes;
  bool overRings;

private:
  std::map<std::string, std::vector<std::vector<int64_t>>> groups;
};
} // namespace

static LevelBytes mean(const PerNode &nodes) {
  LevelBytes sum;
  for (const LevelBytes &node : nodes)
    sum += node;
  auto count = static_cast<int64_t>(nodes.size());
  return {sum.within / count, sum.between / count};
}

/// Returns the table of the steps in which the ranks communicate alike.
static LevelTable tableOf(const Groups &groups, ArrayRef<Collective> collectives,
                          StringRef function, analysis::Steps steps) {
  LevelTable table{
      function.str(), groups.perNode, groups.nodes, groups.overRings, steps, {}, {}, {}, {}};
  PerNode all(groups.nodes);
  std::vector<PerNode> ofRows;
  for (const Collective &each : collectives) {
    if (each.function != function || !each.steps.contains(steps))
      continue;
    std::string what = std::string(each.row().name) + " over " + each.axis +
                       (each.type == "float32" ? "" : " of " + each.type);
    auto row = llvm::find_if(table.rows, [&](const LevelTable::Row &its) {
      return its.backward == each.backward && its.what == what;
    });
    size_t number = row - table.rows.begin();
    if (row == table.rows.end()) {
      table.rows.push_back({each.backward, what, {}});
      ofRows.emplace_back(groups.nodes);
    }
    PerNode sent = groups.sent(each);
    for (size_t n = 0; n < sent.size(); ++n) {
      ofRows[number][n] += sent[n];
      all[n] += sent[n];
    }
  }
  for (size_t number = 0; number < ofRows.size(); ++number)
    table.rows[number].sent = mean(ofRows[number]);
  table.all = mean(all);
  table.busiest = *llvm::max_element(
      all, [](const LevelBytes &a, const LevelBytes &b) { return a.between < b.between; });
  return table;
}

std::vector<LevelTable> partita::tool::levelsOf(const json::Object &manifest,
                                                ArrayRef<Collective> collectives,
                                                StringRef function, int64_t ranksPerNode) {
  Groups groups(manifest, ranksPerNode);
  std::vector<LevelTable> tables;
  for (analysis::Steps steps : analysis::phasesOf(collectives))
    tables.push_back(tableOf(groups, collectives, function, steps));
  return tables;
}

void partita::tool::printLevels(raw_ostream &os, const LevelTable &table) {
  std::vector<std::pair<std::string, LevelBytes>> rows;
  for (const LevelTable::Row &row : table.rows)
    rows.push_back({(row.backward ? "backward  " : "forward   ") + row.what, row.sent});
  rows.push_back({"in all", table.all});
  if (table.busiest.between != table.all.between)
    rows.push_back({"the busiest node", table.busiest});
  if (table.exact)
    rows.push_back({"without ZeRO++", *table.exact});
  size_t width = 0;
  for (const auto &[title, sent] : rows)
    width = std::max(width, title.size());
  os << formatv("\nBytes that {0} of {1} {2} sends in {3}{4}, {5}\n",
                table.nodes == 1 ? "one node" : formatv("each of {0} nodes", table.nodes).str(),
                table.ranksPerNode, table.ranksPerNode == 1 ? "rank" : "ranks", table.function,
                table.steps.text(),
                table.overRings ? "over rings" : "by shared memory and messages");
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
  json::Object object{{"over", table.overRings ? "rings" : "shared memory and messages"},
                      {"rows", std::move(rows)},
                      {"all", bytes(table.all)},
                      {"busiest", bytes(table.busiest)}};
  analysis::addSteps(table.steps, object);
  if (table.exact)
    object["without_zeropp"] = bytes(*table.exact);
  return object;
}
