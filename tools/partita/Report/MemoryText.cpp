//===- MemoryText.cpp - prints the memory ledger ----------------------------------------------===//

#include "tools/partita/Report/MemoryText.h"
#include "partita/Analysis/Collectives.h"
#include "tools/partita/Program.h"
#include "tools/partita/Report/ExplainText.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using memory::Buffer;
using memory::Ledger;

static constexpr int kName = 26; ///< width of a row's name

static std::string name(std::string text) {
  text.resize(std::max<size_t>(text.size(), kName), ' ');
  return text;
}

static void printPersistent(raw_ostream &os, StringRef title, const json::Object &memory) {
  const json::Array *kinds = memory.getArray("kinds");
  if (!kinds)
    return;
  os << "\n  " << name(title.str()) << formatv("{0,18}  {1,8}\n", "bytes", "tensors");
  auto line = [&](const Twine &title, const json::Object &entry) {
    os << "    " << left_justify(title.str(), kName - 2)
       << formatv("{0,18}  {1,8}\n", grouped(numberIn(entry, "bytes")), numberIn(entry, "buffers"));
  };
  for (const json::Value &value : *kinds) {
    const json::Object *kind = value.getAsObject();
    if (!kind)
      continue;
    line(printable(kind->getString("title").value_or("")), *kind);
    const json::Array *parts = kind->getArray("parts");
    for (const json::Value &part : parts ? *parts : json::Array())
      if (const json::Object *each = part.getAsObject())
        line("  " + printable(each->getString("name").value_or("")), *each);
  }
  int64_t padding = numberIn(memory, "padding"), all = numberIn(memory, "persistent");
  if (padding > 0)
    os << "    " << left_justify("padding, of these", kName - 2)
       << formatv("{0,18}  {1:P3}\n", grouped(padding), double(padding) / double(all));
}

static void printKinds(raw_ostream &os, StringRef space, const Ledger &ledger) {
  os << "\n  " << name((space + " of ").str() + printable(ledger.function))
     << formatv("{0,18}  {1,18}  {2}\n", "bytes at the peak", "largest", "at op");
  auto line = [&](StringRef title, int64_t atPeak, const std::string &rest) {
    os << "    " << left_justify(title, kName - 2) << formatv("{0,18}", grouped(atPeak)) << rest
       << '\n';
  };
  for (const Ledger::KindUse &use : ledger.byKind())
    line(memory::rowOf(use.kind).title, use.atPeak,
         formatv("  {0,18}  {1}", grouped(use.largest), use.largestAt).str());
  line("peak", ledger.peak, "");
  line("fragmentation", ledger.arena - ledger.peak,
       formatv("  the {2}, {0} bytes, is {1:f3} times the peak", grouped(ledger.arena),
               ledger.peak > 0 ? double(ledger.arena) / double(ledger.peak) : 1.0,
               space == "arena" ? "arena" : "total")
           .str());
  os << "\n  The peak is at " << momentText(ledger) << '\n';
}

static void printActivations(raw_ostream &os, const Ledger &ledger, bool all) {
  std::map<int64_t, Ledger::PlaceUse> uses;
  std::vector<int64_t> order;
  for (const Ledger::PlaceUse &use : ledger.byPlace())
    uses[use.place] = use, order.push_back(use.place);
  if (order.empty())
    return;
  auto row = [&](int64_t place) {
    const Ledger::PlaceUse &use = uses[place];
    return formatv("{0,18}  {1,18}  {2,18}", grouped(use.forward), grouped(use.backward),
                   grouped(use.largest))
        .str();
  };
  os << "\n  " << name("activations at the peak, of")
     << formatv("{0,18}  {1,18}  {2,18}\n", "the forward pass", "the backward pass",
                "largest, of both");
  for (const std::vector<int64_t> &group : groupPlaces(
           order, [&](int64_t place) { return row(place) + (all ? std::to_string(place) : ""); }))
    os << "    "
       << left_justify(group.front() >= 0 ? layersText(group) : analysis::placeText(group.front()),
                       kName - 2)
       << row(group.front()) << '\n';
}

static void printHolders(raw_ostream &os, const Ledger &ledger, bool all) {
  std::vector<const Buffer *> holders = ledger.holders(all ? ledger.buffers.size() : 10);
  if (holders.empty())
    return;
  os << "\n  " << (all ? "All" : "The largest") << " buffers alive at the peak\n"
     << formatv("{0,18}  {1,-13}  {2,-18}  {3,-23}  {4}\n", "bytes", "kind", "ops", "place", "of");
  for (const Buffer *buffer : holders)
    os << formatv("{0,18}  {1,-13}  {2,-18}  {3,-23}  {4}\n", grouped(memory::align(buffer->bytes)),
                  rt::stringifyMemoryKind(buffer->kind),
                  formatv("{0} to {1}", buffer->begin, buffer->end).str(),
                  analysis::placeText(buffer->place), printable(buffer->name));
}

static void printHost(raw_ostream &os, const json::Object &memory) {
  int64_t persistent = numberIn(memory, "persistent"), pinned = numberIn(memory, "arena");
  os << formatv("\nHost memory of a rank: {0} bytes = {1} persistent + {2} pinned\n",
                grouped(persistent + pinned), grouped(persistent), grouped(pinned));
  printPersistent(os, "persistent, on the host", memory);
  if (std::optional<Ledger> ledger = Ledger::fromJson(memory))
    printKinds(os, "pinned", *ledger);
}

/// Describes the op at a function's peak, from its JSON.
static std::string nodeText(const json::Object &function) {
  const json::Object *at = function.getObject("at");
  if (!at)
    return "its peak";
  std::string node = printable(at->getString("node").value_or(""));
  return node.empty() ? printable(at->getString("name").value_or("")) : node;
}

std::string partita::tool::momentText(const Ledger &ledger) {
  const Ledger::Moment &at = ledger.at;
  std::string text = formatv("op {0} of {1}, ", at.op, ledger.ops);
  text += at.backward ? "backward, " : "forward, ";
  text += analysis::placeText(at.place) + ": ";
  return text + (at.node.empty() ? printable(at.name)
                                 : printable(at.node) + " (" + printable(at.name) + ")");
}

void partita::tool::printMemorySummary(raw_ostream &os, const json::Object &memory,
                                       const Ledger *ledger) {
  int64_t arena = numberIn(memory, "arena");
  os << "\nMemory of a rank: " << grouped(memory::deviceBytes(memory))
     << " bytes = " << partsText(memory, " + ") << '\n';
  printPersistent(os, "persistent", memory);
  if (ledger)
    printKinds(os, "arena", *ledger);
  const json::Object *functions = memory.getObject("functions");
  for (const auto &[name, value] : functions ? *functions : json::Object())
    if (const json::Object *other = value.getAsObject();
        other && numberIn(*other, "arena") == arena && ledger && ledger->arena < arena)
      os << formatv("\n  {0} determines the size of the arena: {1} bytes at {2}\n",
                    printable(StringRef(name)), grouped(arena), nodeText(*other));
  if (int64_t forward = numberIn(memory, "forward_arena"))
    os << formatv("\n  With --forward, a run's arena has {0} bytes, to hold the outputs\n",
                  grouped(forward));
  if (const json::Object *host = memory.getObject("host"))
    printHost(os, *host);
}

void partita::tool::printMemory(raw_ostream &os, const json::Object &memory, const Ledger &ledger,
                                bool all) {
  printMemorySummary(os, memory, &ledger);
  printActivations(os, ledger, all);
  printHolders(os, ledger, all);
}
