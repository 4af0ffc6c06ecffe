//===- Expectations.cpp - --expect ------------------------------------------------------------===//

#include "tools/partita/Expectations.h"
#include "mlir/IR/Diagnostics.h"
#include "tools/partita/Program.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;
using analysis::Collective;

void Expectations::declare(OptionSet &options) {
  options.repeated(
      "expect", "CONTRACT",
      "fails unless it holds, before anything is written: all_reduce<=4/layer, "
      "all_gather.backward==0, total@dp<=9/step, bytes<=2G/step; bytes count a collective's full "
      "value: a reduce_scatter and an all_gather (--sequence-parallel) count twice the all_reduce "
      "they replace, and send as much",
      [this](StringRef text) { return analysis::Contract::parse(text, contracts.emplace_back()); });
}

static Location nodeOf(const Collective &collective, Location model) {
  if (collective.node.empty())
    return model;
  return NameLoc::get(StringAttr::get(model.getContext(), collective.node), model);
}

bool Expectations::hold(ArrayRef<Collective> collectives, Location model,
                        ArrayRef<analysis::LayerRange> ranges) const {
  for (const analysis::Contract &contract : contracts) {
    std::optional<analysis::Breach> breach = analysis::findBreach(contract, collectives, ranges);
    if (!breach)
      continue;
    ArrayRef<Collective> offenders = breach->offenders;
    InFlightDiagnostic error =
        emitError(offenders.empty() ? model : nodeOf(offenders.front(), model));
    error << "--expect '" << contract.text << "': " << breach->message;
    constexpr size_t most = 16;
    for (const Collective &each : offenders.take_front(most)) {
      Diagnostic &note = error.attachNote(nodeOf(each, model));
      note << each.row().name << " over " << each.axis << " in the "
           << (each.backward ? "backward" : "forward") << " pass, " << grouped(each.bytes)
           << " bytes: " << each.why() << "; seed: " << each.seedText();
      if (std::string removal = each.removal(); !removal.empty())
        note << (each.isRequired() ? "; cannot be removed: " : "; removed ") << removal;
    }
    if (offenders.size() > most)
      error.attachNote(model) << "and " << offenders.size() - most << " more";
    return false;
  }
  return true;
}
