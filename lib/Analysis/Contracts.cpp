//===- Contracts.cpp - limits on what a program may communicate -------------------------------===//

#include "partita/Analysis/Contracts.h"
#include "dialects/Par/Par.h"
#include "partita/Support/ParseBytes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita;
using namespace partita::analysis;

static constexpr StringRef kRelations[] = {"<=", ">=", "==", "<", ">"}; // the longer ones first

/// Lists the collectives that programs have, for messages.
static std::string kindList() {
  std::string list;
  for (const CollectiveRow &row : partita_rt::kCollectives)
    if (row.inPrograms)
      list += (list.empty() ? "" : ", ") + std::string(row.name);
  return list;
}

/// Parses "12"; for bytes also "1.5G", "2GB". Returns what is wrong, or "".
static std::string parseNumber(StringRef text, bool bytes, int64_t &number) {
  std::string problem;
  if (bytes)
    number = parseBytes(text, &problem).value_or(0);
  else if (text.getAsInteger(10, number) || number < 0)
    problem = ("'" + text + "' is not an integer").str();
  return problem;
}

std::string Contract::parse(StringRef text, Contract &contract) {
  auto wrong = [&](const Twine &what) {
    return (what +
            "; expected KIND[@AXIS][.forward|.backward] <=|==|>=|<|> N[/layer|/step|/warmup|/compressed], where KIND "
            "is " +
            kindList() +
            " or total, or bytes.KIND for bytes, such as all_reduce.forward<=2/layer or "
            "bytes<=2G/step")
        .str();
  };
  contract = Contract();
  contract.text = text.str();
  StringRef what = text, rest;
  for (StringRef relation : kRelations)
    if (size_t at = text.find(relation); at != StringRef::npos) {
      contract.relation = relation.str();
      what = text.take_front(at).trim();
      rest = text.drop_front(at + relation.size()).trim();
      break;
    }
  if (contract.relation.empty())
    return wrong("there is no comparison in it");
  auto [number, scope] = rest.split('/');
  contract.perLayer = scope.trim() == "layer";
  contract.phase = scope.trim() == "warmup"       ? Warmup
                   : scope.trim() == "compressed" ? Compressed
                                                  : Any;
  if (rest.contains('/') && !contract.perLayer && contract.phase == Any && scope.trim() != "step")
    return wrong("'" + scope + "' is none of layer, step, warmup and compressed");
  std::string total; // bytes of all kinds: bytes, bytes@dp, bytes.forward
  if (what == "bytes" || what.starts_with("bytes@") || what == "bytes.forward" ||
      what == "bytes.backward") {
    total = ("bytes.total" + what.drop_front(StringRef("bytes").size())).str();
    what = total;
  }
  contract.bytes = what.consume_front("bytes.");
  if (size_t at = what.rfind('.'); at != StringRef::npos) {
    contract.direction = what.drop_front(at + 1).str();
    what = what.take_front(at);
    if (contract.direction != "forward" && contract.direction != "backward")
      return wrong("'" + contract.direction + "' is neither forward nor backward");
  }
  auto [kind, axis] = what.split('@');
  contract.axis = axis.str();
  if (kind != "total") {
    const CollectiveRow *row = partita_rt::collectiveNamed(kind);
    if (!row || !row->inPrograms)
      return wrong("'" + kind + "' is not a kind of collective");
    contract.kind = row->kind;
  }
  if (what.contains('@') && axis.empty())
    return wrong("there is no axis after '@'");
  if (!axis.empty() && !par::findAxis(axis))
    return wrong("there is no mesh axis '" + axis.str() + "'");
  if (std::string problem = parseNumber(number.trim(), contract.bytes, contract.number);
      !problem.empty())
    return wrong(problem);
  return {};
}

bool Contract::concerns(const Collective &collective) const {
  return (!kind || *kind == collective.kind) && (axis.empty() || axis == collective.axis) &&
         (direction.empty() || (direction == "backward") == collective.backward);
}

bool Contract::allows(int64_t value) const {
  return relation == "<="   ? value <= number
         : relation == ">=" ? value >= number
         : relation == "==" ? value == number
         : relation == "<"  ? value < number
                            : value > number;
}

/// What breaks the contract in the steps of one phase.
static std::optional<Breach> findBreachIn(Steps steps, const Contract &contract,
                                          ArrayRef<Collective> collectives,
                                          ArrayRef<LayerRange> ranges) {
  std::string function = Census::mainFunction(collectives);
  std::map<int64_t, int64_t> values; // by layer, or for the step
  int64_t layers = 0, microBatches = 1;
  for (const Collective &c : collectives)
    if (c.function == function)
      layers = std::max(layers, c.layers), microBatches = c.microBatches;
  bool exchanges =
      llvm::any_of(collectives, [&](const Collective &c) { return c.function == function; });
  if (contract.perLayer && layers == 0 && !exchanges && contract.allows(0))
    return std::nullopt; // one rank communicates nothing
  if (contract.perLayer && layers == 0)
    return Breach{
        "there is no layer to count in: nothing is communicated, or no sequence of ops with "
        "weights repeats itself",
        {}};
  LayerRange all{0, contract.perLayer ? layers : 1};
  for (const LayerRange &range : contract.perLayer && !ranges.empty() ? ranges : ArrayRef(all))
    for (int64_t layer = 0; layer < std::min<int64_t>(range.count, 1 << 20); ++layer)
      values[range.first + layer] = 0;
  auto placeOf = [&](const Collective &c) { return contract.perLayer ? c.place : 0; };
  auto counts = [&](const Collective &c) {
    return c.function == function && contract.concerns(c) && placeOf(c) >= 0 &&
           c.steps.contains(steps);
  };
  for (const Collective &c : collectives)
    if (counts(c))
      values[placeOf(c)] += c.calls * (contract.bytes ? c.bytes : 1);
  for (auto [place, sum] : values) {
    int64_t value = contract.perLayer ? sum / microBatches : sum;
    if (contract.allows(value))
      continue;
    Breach breach;
    int64_t stage = collectives.empty() ? -1 : collectives.front().stage;
    std::string onStage = stage < 0 ? "" : " on stage " + std::to_string(stage);
    std::string kind = contract.kind ? partita_rt::rowOf(*contract.kind).name : "";
    std::string what = contract.bytes ? (kind.empty() ? "bytes" : "bytes of " + kind)
                                      : (kind.empty() ? "collectives" : kind);
    breach.message =
        formatv("{0}{7} has {1} {2}{3}{4}, not {5} {6}",
                contract.perLayer ? placeText(place) : function + " of one step" + onStage, value,
                what, contract.axis.empty() ? "" : " over " + contract.axis,
                contract.direction.empty() ? "" : " in the " + contract.direction + " pass",
                contract.relation, contract.number, steps.text())
            .str();
    llvm::StringSet<> seen;
    for (const Collective &c : collectives)
      if (counts(c) && placeOf(c) == place &&
          seen.insert(contract.perLayer ? c.shape() + c.node : c.shape()).second)
        breach.offenders.push_back(c);
    return breach;
  }
  return std::nullopt;
}

std::optional<Breach> partita::analysis::findBreach(const Contract &contract,
                                                    ArrayRef<Collective> collectives,
                                                    ArrayRef<LayerRange> ranges) {
  std::vector<Steps> phases = phasesOf(collectives);
  if (contract.phase != Contract::Any && phases.size() == 1)
    return Breach{"there is no warm-up: every step communicates the same", {}};
  for (Steps steps : phases) {
    bool isOther = (contract.phase == Contract::Warmup && steps.part == Steps::Others) ||
                   (contract.phase == Contract::Compressed && steps.part == Steps::Exact);
    if (std::optional<Breach> breach =
            isOther ? std::nullopt : findBreachIn(steps, contract, collectives, ranges))
      return breach;
  }
  return std::nullopt;
}
