//===- CommunicationText.cpp - prints who communicates what -----------------------------------===//

#include "tools/partita/Report/CommunicationText.h"
#include "partita/Memory/Ledger.h"
#include "tools/partita/Program.h"
#include "tools/partita/Report/ExplainText.h"
#include "tools/partita/Report/LevelsText.h"
#include "tools/partita/Report/StagesText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita;
using namespace partita::tool;
using analysis::Census;
using analysis::Collective;

static std::string nameList(const json::Array &names) {
  std::string list;
  for (const json::Value &name : names)
    list += (list.empty() ? "" : ", ") + printable(name.getAsString().value_or(""));
  return list;
}

/// The groups of a communicator, the last axis of the mesh varying fastest: "0,1 | 2,3".
static std::string groupsOf(const json::Object &manifest, const json::Object &communicator,
                            size_t most) {
  std::vector<std::string> groups;
  for (const std::vector<int64_t> &ranks : rankGroups(manifest, communicator))
    groups.push_back(
        llvm::join(llvm::map_range(ranks, [](int64_t rank) { return std::to_string(rank); }), ","));
  bool shortened = groups.size() > most;
  return llvm::join(ArrayRef(groups).take_front(most), " | ") + (shortened ? " | ..." : "");
}

static void printCommunicators(raw_ostream &os, const json::Object &manifest, bool all) {
  os << '\n';
  for (const json::Object *row : objectsIn(manifest.getArray("communicators")))
    os << formatv("Communicator {0}: {1}\n", textIn(*row, "name"),
                  groupsOf(manifest, *row, all ? 1 << 20 : 8));
}

void partita::tool::printCalls(raw_ostream &os, const json::Object &manifest) {
  std::vector<const json::Object *> collectives = objectsIn(manifest.getArray("collectives"));
  std::string function;
  for (const json::Object *collective : collectives) {
    if (std::string of = textIn(*collective, "function"); of != function) {
      function = of;
      os << "\nCollectives of " << function << ", per rank and call of it\n";
    }
    os << formatv("  {0,3} x {1} over {2} ({3} ranks), {4} bytes: {5}\n",
                  numberIn(*collective, "calls"), textIn(*collective, "kind"),
                  textIn(*collective, "axis"), numberIn(*collective, "ranks"),
                  grouped(numberIn(*collective, "bytes")), textIn(*collective, "name"));
    const json::Array *tensors = collective->getArray("tensors");
    if (tensors && tensors->size())
      os << "        of " << nameList(*tensors) << '\n';
  }
}

void partita::tool::printTransfers(raw_ostream &os, const json::Object &manifest) {
  const json::Object *transfers = manifest.getObject("transfers");
  int64_t toHost = transfers ? numberIn(*transfers, "to_host") : 0,
          toDevice = transfers ? numberIn(*transfers, "to_device") : 0;
  if (toHost + toDevice > 0)
    os << formatv("\nCopied by a rank per step: {0} bytes to the host, {1} to the device\n",
                  grouped(toHost), grouped(toDevice));
}

/// Prints "Stage 0: layers 0 to 5; 1,234 bytes per rank", and the stage's messages in a call of the
/// function.
static void printStage(raw_ostream &os, const json::Object &stage, StringRef function) {
  os << formatv("\nStage {0}: ", numberIn(stage, "stage")) << layersOf(stage);
  if (const json::Object *memory = stage.getObject("memory"))
    os << "; " << grouped(memory::deviceBytes(*memory)) << " bytes per rank";
  os << '\n';
  for (const json::Object *message : objectsIn(stage.getArray("messages")))
    if (textIn(*message, "function") == function)
      os << formatv(
          "  {0} {1} {2}: {3} x {4} bytes: {5}\n",
          numberIn(*message, "from") == numberIn(stage, "stage") ? "sends to" : "receives from",
          "stage",
          numberIn(*message, "from") == numberIn(stage, "stage") ? numberIn(*message, "to")
                                                                 : numberIn(*message, "from"),
          numberIn(*message, "messages"),
          grouped(numberIn(*message, "bytes") /
                  std::max<int64_t>(numberIn(*message, "messages"), 1)),
          textIn(*message, "name"));
}

void partita::tool::printCommunication(raw_ostream &os, const json::Object &manifest,
                                       ArrayRef<Collective> collectives, bool all) {
  std::vector<const json::Object *> stages = objectsIn(manifest.getArray("stages"));
  if (objectsIn(manifest.getArray("communicators")).size())
    printCommunicators(os, manifest, all);
  else if (stages.empty())
    os << "\nNo collectives: one rank, or nothing to communicate.\n";
  if (stages.empty() && !collectives.empty())
    explainCollectives(os, collectives, Census::mainFunction(collectives), {}, all);
  std::string function = mainFunctionOf(manifest);
  for (const json::Object *stage : stages) {
    std::vector<Collective> own;
    for (const Collective &each : collectives)
      if (each.stage == numberIn(*stage, "stage"))
        own.push_back(each);
    printStage(os, *stage, function);
    explainCollectives(os, own, function, layerRangesOf(manifest, numberIn(*stage, "stage")), all);
  }
}
