//===- StagesText.cpp - prints pipeline stages ----------------------------------------------------===//

#include "tools/partita/Report/StagesText.h"
#include "dialects/Train/Train.h"
#include "partita/Memory/Ledger.h"
#include "partita/Stages/ParseCuts.h"
#include "tools/partita/Program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using stages::Slot;
using train::LayerAttr;

/// Prints a table. Columns are as wide as their widest cell; the first ones contain text, the
/// others numbers.
static void printTable(raw_ostream &os, ArrayRef<std::vector<std::string>> rows, size_t texts) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const std::vector<std::string> &row : rows)
    for (auto [width, cell] : zip(widths, row))
      width = std::max(width, cell.size());
  for (const std::vector<std::string> &row : rows) {
    for (auto [column, cell] : enumerate(row)) {
      auto width = static_cast<unsigned>(widths[column]);
      os << "  ";
      if (column < texts)
        os << left_justify(cell, width);
      else
        os << right_justify(cell, width);
    }
    os << '\n';
  }
}

//===----------------------------------------------------------------------------------------------===//
// Cuts
//===----------------------------------------------------------------------------------------------===//

namespace {
/// A stage, and the totals of its layers.
struct Share {
  int64_t number = 0, layers = 0, parameters = 0;
  double time = 0;  ///< by the schedule's clock
  std::string text; ///< its layers
};
} // namespace

/// The layers of each chunk of a stage.
static std::vector<analysis::LayerRange> chunksOf(const json::Object &stage) {
  std::vector<analysis::LayerRange> chunks;
  const json::Array *list = stage.getArray("chunks");
  for (const json::Value &value : list ? *list : json::Array())
    if (const json::Object *chunk = value.getAsObject())
      chunks.push_back(
          {chunk->getInteger("first_layer").value_or(0), chunk->getInteger("layers").value_or(0)});
  return chunks;
}

std::vector<analysis::LayerRange> partita::tool::layerRangesOf(const json::Object &manifest,
                                                               int64_t stage) {
  const json::Array *stages = manifest.getArray("stages");
  for (const json::Value &value : stages ? *stages : json::Array())
    if (const json::Object *entry = value.getAsObject();
        entry && entry->getInteger("stage") == stage)
      return chunksOf(*entry);
  return {};
}

std::string partita::tool::layersOf(const json::Object &stage) {
  std::string result;
  int64_t all = 0;
  for (auto [first, layers] : chunksOf(stage)) {
    result += (all == 0 ? "" : " and ") + std::to_string(first) +
              (layers == 1 ? "" : " to " + std::to_string(first + layers - 1));
    all += layers;
  }
  return (all == 1 ? "layer " : "layers ") + result;
}

/// Maps each layer to its stage; work before the first layer and after the last goes to the stages
/// of those layers.
static std::map<int64_t, size_t> stagesOfLayers(const json::Array &stages) {
  std::map<int64_t, size_t> result;
  for (auto [number, value] : enumerate(stages))
    for (auto [first, layers] :
         value.getAsObject() ? chunksOf(*value.getAsObject()) : std::vector<analysis::LayerRange>())
      for (int64_t layer = first; layer < first + std::min<int64_t>(layers, 1 << 20); ++layer)
        result[layer] = number;
  if (!result.empty()) {
    size_t first = result.begin()->second, last = result.rbegin()->second;
    result[LayerAttr::kBefore] = first;
    result[LayerAttr::kAfter] = last;
  }
  return result;
}

/// Without a schedule (inference), the time is that of the forward pass.
static std::vector<Share> sharesOf(const json::Object &manifest,
                                   const std::optional<stages::Timeline> &timeline) {
  const json::Array *list = manifest.getArray("stages"), *noted = manifest.getArray("work");
  std::vector<Share> shares;
  std::map<int64_t, size_t> stages = list ? stagesOfLayers(*list) : std::map<int64_t, size_t>();
  if (stages.empty())
    return shares;
  for (const json::Value &value : *list) {
    const json::Object *stage = value.getAsObject();
    Share &share = shares.emplace_back();
    share.number = stage ? stage->getInteger("stage").value_or(0) : 0;
    share.text = stage ? layersOf(*stage) : "";
    share.time = static_cast<double>(stage ? stage->getInteger("forward_cost").value_or(0) : 0);
    for (auto [first, layers] : stage ? chunksOf(*stage) : std::vector<analysis::LayerRange>())
      share.layers += layers;
  }
  for (const LayerWork &each : noted ? workFromJson(*noted) : std::vector<LayerWork>())
    if (auto found = stages.find(each.place); found != stages.end())
      shares[found->second].parameters += each.parameters;
  for (size_t stage = 0; timeline && stage < shares.size(); ++stage)
    shares[stage].time = timeline->report.work[stage];
  return shares;
}

static const Share &slowestOf(ArrayRef<Share> shares) {
  return *std::max_element(shares.begin(), shares.end(),
                           [](const Share &a, const Share &b) { return a.time < b.time; });
}

/// Returns the slowest stage's time relative to an equal share.
static double sharesOfSlowest(ArrayRef<Share> shares) {
  double all = 0;
  for (const Share &share : shares)
    all += share.time;
  return all > 0 ? slowestOf(shares).time * static_cast<double>(shares.size()) / all : 1;
}

static bool areEqual(ArrayRef<Share> shares) { return sharesOfSlowest(shares) < 1.005; }

static std::string shareText(ArrayRef<Share> shares) {
  if (areEqual(shares))
    return "all stages have an equal share of the time";
  return formatv("stage {0} is the slowest, with {1:F2} times an equal share of the time",
                 slowestOf(shares).number, sharesOfSlowest(shares));
}

/// Returns shareText for cuts that balance the time, and why the slowest stage has more than an equal
/// share.
static std::string limitText(ArrayRef<Share> shares, const json::Object *limited) {
  const Share &slowest = slowestOf(shares);
  std::string text = shareText(shares);
  if (areEqual(shares))
    return text;
  if (!limited)
    return text +
           (slowest.layers == 1
                ? ": a layer is not cut"
                : ": layers are not cut, and with any other cuts some stage takes at least as long");
  SmallVector<int64_t> cuts;
  for (const json::Value &each : *limited->getArray("cuts"))
    cuts.push_back(each.getAsInteger().value_or(0));
  return text +
         formatv(
             ": the memory limit of {0} bytes decides. With {1}, which balances the time better, stage {2} "
             "needs {3} bytes",
             grouped(limited->getInteger("limit").value_or(0)), stages::cutsText(cuts),
             limited->getInteger("stage").value_or(0),
             grouped(limited->getInteger("bytes").value_or(0)))
             .str();
}

static std::string whyText(StringRef assign, ArrayRef<Share> shares, size_t chunks,
                           bool isScheduled, const json::Object *limited) {
  if (chunks > 1 && assign == "auto" && isScheduled)
    return formatv(
        "Cut by auto into {0} chunks per stage: the simulated step gets no shorter if a cut is moved by a "
        "layer; stage {1} computes most",
        chunks, slowestOf(shares).number);
  if (chunks > 1 && assign == "auto")
    return formatv(
        "Cut by auto into {0} chunks per stage, the slowest of them as fast as possible; stage {1} "
        "computes most",
        chunks, slowestOf(shares).number);
  if (limited && limited->getArray("cuts"))
    return "Cut by auto: " + limitText(shares, limited);
  if (assign == "uniform")
    return "Cut into equal numbers of layers: " + shareText(shares);
  if (assign == "parameters")
    return "Cut so that the largest stage has as few parameters as possible: " +
           ("stage " + Twine(slowestOf(shares).number) + " computes most").str();
  if (assign.starts_with("cuts:"))
    return "Cut by --stages " + assign.str();
  return "Cut by auto: " + limitText(shares, nullptr);
}

/// Returns the bytes that one stage sends another per micro-batch, keyed by the two stages.
static std::map<std::pair<int64_t, int64_t>, int64_t> sentBetween(const json::Object &manifest,
                                                                  StringRef function) {
  std::map<std::pair<int64_t, int64_t>, int64_t> sent;
  const json::Array *list = manifest.getArray("stages");
  for (const json::Value &value : list ? *list : json::Array()) {
    const json::Object *stage = value.getAsObject();
    const json::Array *messages = stage ? stage->getArray("messages") : nullptr;
    for (const json::Value &each : messages ? *messages : json::Array()) {
      const json::Object *message = each.getAsObject();
      if (!message || message->getString("function") != function ||
          message->getInteger("from") != stage->getInteger("stage"))
        continue;
      int64_t count = std::max<int64_t>(message->getInteger("messages").value_or(1), 1);
      sent[{message->getInteger("from").value_or(0), message->getInteger("to").value_or(0)}] +=
          message->getInteger("bytes").value_or(0) / count;
    }
  }
  return sent;
}

std::string partita::tool::mainFunctionOf(const json::Object &manifest) {
  StringRef step = train::nameOf(train::EntryPoint::TrainStep);
  return (sentBetween(manifest, step).empty() ? train::nameOf(train::EntryPoint::Forward) : step)
      .str();
}

void partita::tool::printStages(raw_ostream &os, const json::Object &manifest,
                                const std::optional<stages::Timeline> &timeline, StringRef assign) {
  std::vector<Share> shares = sharesOf(manifest, timeline);
  if (shares.empty())
    return;
  const json::Object *first = manifest.getArray("stages")->front().getAsObject();
  size_t chunks = first ? chunksOf(*first).size() : 1;
  double time = 0;
  for (const Share &share : shares)
    time += share.time;
  std::vector<std::vector<std::string>> rows;
  for (const Share &share : shares)
    rows.push_back({"stage " + std::to_string(share.number), share.text,
                    formatv("{0:F1} % of the time", time > 0 ? 100 * share.time / time : 0),
                    grouped(share.parameters) + " parameters"});
  os << "\nPipeline stages; ops before the first layer and after the last one are on those layers' stages\n";
  printTable(os, rows, /*texts=*/2);
  os << "  " << whyText(assign, shares, chunks, timeline.has_value(), manifest.getObject("limited"))
     << '\n';
  for (auto [ends, bytes] : sentBetween(manifest, mainFunctionOf(manifest)))
    os << formatv("  a rank of stage {0} sends {2} bytes per micro-batch to stage {1}\n",
                  ends.first, ends.second, grouped(bytes));
}

void partita::tool::printStageMemory(raw_ostream &os, const json::Object &manifest) {
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const memory::Part &part : memory::deviceParts())
    rows.front().push_back(part.title.str());
  rows.front().push_back("all");
  const json::Array *list = manifest.getArray("stages");
  for (const json::Value &value : list ? *list : json::Array()) {
    const json::Object *stage = value.getAsObject();
    const json::Object *memory = stage ? stage->getObject("memory") : nullptr;
    if (!memory)
      return;
    std::vector<std::string> &row = rows.emplace_back();
    row.push_back("stage " + std::to_string(stage->getInteger("stage").value_or(0)));
    for (const memory::Part &part : memory::deviceParts())
      row.push_back(grouped(memory->getInteger(part.key).value_or(0)));
    row.push_back(grouped(memory::deviceBytes(*memory)));
  }
  if (rows.size() == 1)
    return;
  for (size_t column = rows.front().size() - 1; column > 0; --column) // lacking on this target
    if (all_of(ArrayRef(rows).drop_front(), [&](const auto &row) { return row[column] == "0"; }))
      for (std::vector<std::string> &row : rows)
        row.erase(row.begin() + static_cast<ptrdiff_t>(column));
  os << "\nMemory of a rank of each stage, in bytes\n";
  printTable(os, rows, /*texts=*/1);
}

//===----------------------------------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------------------------------===//

namespace {

/// Rows of text, one per stage, whose columns are moments: slots that begin at the same time begin
/// in the same column on all stages. Time is stretched if a slot is too short for its name.
class Rows {
public:
  explicit Rows(const stages::Timeline &timeline) : timeline(timeline) {
    placeMoments();
    for (int stage : seq(0, timeline.schedule.stages)) {
      std::string row(width, ' ');
      for (auto [number, slot] : enumerate(timeline.schedule.slots[stage])) {
        size_t begin = columns[timeline.begin(stage, number)],
               end = columns[timeline.end(stage, number)];
        std::string text = stages::slotText(slot);
        row.replace(begin, end - begin - 1, text + std::string(end - begin - 1 - text.size(), '-'));
      }
      rows.push_back(std::move(row));
    }
  }

  /// Returns the end of at most `most` columns from `begin` on, without splitting a name.
  size_t endOf(size_t begin, size_t most) const {
    if (begin + most >= width)
      return width;
    size_t end = begin + most;
    while (end > begin + most / 2 && isTorn(end))
      --end;
    return end;
  }

  std::vector<std::string> rows;
  size_t width = 0;

private:
  bool isTorn(size_t column) const {
    auto isName = [](char c) { return isAlnum(c) || c == '.'; };
    return any_of(rows, [&](const std::string &row) {
      return isName(row[column - 1]) && (isName(row[column]) || row[column] == '-');
    });
  }

  void placeMoments() {
    /// The slots that end at each moment: their begin, and the columns that they need.
    std::map<double, std::vector<std::pair<double, size_t>>> ends;
    double forward = 0;
    size_t longest = 0;
    for (int stage : seq(0, timeline.schedule.stages))
      for (auto [number, slot] : enumerate(timeline.schedule.slots[stage])) {
        size_t room = stages::slotText(slot).size() + 1;
        ends[timeline.begin(stage, number)];
        ends[timeline.end(stage, number)].push_back({timeline.begin(stage, number), room});
        longest = std::max(longest, room);
        if (number == 0)
          forward += timeline.end(stage, number) - timeline.begin(stage, number);
      }
    double scale = static_cast<double>(longest * timeline.schedule.stages) / forward;
    for (const auto &[moment, ending] : ends) {
      size_t column = std::max(width, static_cast<size_t>(moment * scale + 0.5));
      for (auto [begin, room] : ending)
        column = std::max(column, columns[begin] + room);
      columns[moment] = width = column;
    }
  }

  const stages::Timeline &timeline;
  std::map<double, size_t> columns;
};

} // namespace

static void printRows(raw_ostream &os, const Rows &rows, bool all) {
  constexpr size_t most = 100, shown = 2; // columns; parts at both ends of a long schedule
  std::vector<std::pair<size_t, size_t>> parts;
  for (size_t begin = 0; begin < rows.width; begin = parts.back().second)
    parts.push_back({begin, rows.endOf(begin, most)});
  bool isCut = !all && parts.size() > 2 * shown;
  for (auto [number, part] : enumerate(parts)) {
    if (isCut && number == shown)
      os << "  ... (--all shows all micro-batches)\n";
    if (isCut && number >= shown && number + shown < parts.size())
      continue;
    for (auto [stage, row] : enumerate(rows.rows))
      os << formatv("  {0,2}  ", stage) << StringRef(row).slice(part.first, part.second).rtrim()
         << '\n';
    if (number + 1 < parts.size())
      os << '\n';
  }
}

static std::string laterText(size_t slots) {
  return slots == 0
             ? ""
             : formatv(" and the {0} {1} after it", slots, slots == 1 ? "slot" : "slots").str();
}

/// Returns the time from step to step if a stage begins the next one as soon as it has ended this one.
static double periodOf(const stages::Timeline &timeline) {
  double longest = 0;
  for (int stage : seq(0, timeline.schedule.stages))
    if (size_t slots = timeline.schedule.slots[stage].size())
      longest = std::max(longest, timeline.end(stage, slots - 1) - timeline.begin(stage, 0));
  return longest;
}

void partita::tool::printTimeline(raw_ostream &os, const stages::Timeline &timeline, bool waits,
                                  bool all) {
  const stages::ScheduleReport &report = timeline.report;
  int chunks = timeline.schedule.chunks;
  os << "\nSchedule, one row per stage: ";
  for (const train::PassKindRow &row : timeline.schedule.kinds())
    os << row.letter << ' ' << row.title << ", ";
  os << "with the micro-batch" << (chunks > 1 ? " and the chunk" : "")
     << "; time is estimated from the costs of ops, messages take none\n";
  printRows(os, Rows(timeline), all);
  for (int stage : seq(0, timeline.schedule.stages)) {
    double idle = report.time > 0 ? 100 * (1 - report.work[stage] / report.time) : 0;
    os << formatv("  stage {0} idles {1:F1} % of the step and has at most {2} {3} in flight\n",
                  stage, idle, report.inFlight[stage],
                  chunks > 1                    ? "chunks of micro-batches"
                  : report.inFlight[stage] == 1 ? "micro-batch"
                                                : "micro-batches");
    const auto &slots = timeline.schedule.slots[stage];
    for (const stages::Timeline::Reduction &each : timeline.reductions[stage])
      os << formatv(
          "  stage {0} starts reducing {1} bytes of gradients in {2}, overlapping {3:F0} % of its work{4}\n",
          stage, grouped(each.bytes), stages::slotText(slots[each.slot]), 100 * each.beside,
          laterText(slots.size() - 1 - each.slot));
  }
  os << formatv("  Bubble: the step takes {0:F1} % longer than stage {1}, the slowest, computes\n",
                100 * report.bubbleShare(), timeline.slowest());
  double period = waits ? 0 : periodOf(timeline), slowest = report.work[timeline.slowest()];
  if (period > 0 && slowest > 0)
    os << formatv(
        "  Stages do not wait for each other between steps: from step to step it takes {0:F1} % longer\n",
        100 * (period / slowest - 1));
}
