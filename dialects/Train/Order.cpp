//===- Order.cpp - #train.order: the order of micro-batches' passes ----------------------------===//

#include "dialects/Train/PassKinds.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

using Run = OrderAttr::Run;

/// More slots than the period of most schedules: 2 p v of interleaved, for p stages of v chunks.
static constexpr size_t kMostSlots = 256;
/// More runs than any schedule has; the rest of an irregular order is written slot by slot.
static constexpr unsigned kMostRuns = 256;

namespace {

/// Finds an order's runs: first the one that covers the most slots (the steady state), then those
/// before and after it.
class Compressor {
public:
  explicit Compressor(ArrayRef<Slot> slots) : slots(slots) {}

  SmallVector<int64_t> run() {
    split(0, slots.size());
    return std::move(numbers);
  }

private:
  struct Found {
    size_t at = 0, period = 1, times = 1;
    int64_t step = 1; ///< what a repetition adds to the micro-batches
    size_t covered() const { return times > 1 ? period * times : 0; }
  };
  using Add = function_ref<void(const Found &)>;

  void split(size_t begin, size_t end) {
    if (begin == end)
      return;
    Found best;
    if (++runs <= kMostRuns)
      best = longest(begin, end);
    if (best.covered() == 0)
      return addRun({begin, end - begin});
    split(begin, best.at);
    addRun(best);
    size_t behind = best.at + best.covered();
    if (best.step == 1)
      return split(behind, end);
    inTurn(behind, end, [&](const Found &run) { addRun(run); }); // cut as the group's slots are
  }

  /// Returns the run that covers the most slots; ties go to the one with the fewest slots, then to
  /// the first.
  Found longest(size_t begin, size_t end) const {
    Found best;
    for (size_t period = 1; period <= std::min(kMostSlots, (end - begin) / 2); ++period) {
      int64_t step = 0;
      for (size_t at = end - period, alike = 0; at-- > begin;) {
        int64_t next = stepTo(at, at + period);
        alike = next == 0 ? 0 : next == step ? alike + 1 : 1;
        step = next;
        Found found{at, period, alike / period + 1, step};
        if (found.covered() > best.covered() ||
            (found.covered() == best.covered() && period == best.period))
          best = found;
      }
    }
    return best;
  }

  /// Returns how many micro-batches later a slot repeats another one; 0 if it does not. A group of
  /// several micro-batches has two passes at least: `by 2` would hide the order of a single one.
  int64_t stepTo(size_t from, size_t to) const {
    int64_t step = slots[to].microBatch - slots[from].microBatch;
    auto period = static_cast<int64_t>(to - from);
    bool isGroup = step > 1 && period % step == 0 && period / step > 1;
    return slots[from].pass() == slots[to].pass() && (step == 1 || isGroup) ? step : 0;
  }

  /// Adds runs by one micro-batch in the order of their slots, each the longest that begins there.
  void inTurn(size_t begin, size_t end, Add add) const {
    size_t rest = begin; // the first slot that is not added
    auto addRest = [&](size_t to) {
      if (rest < to)
        add({rest, to - rest});
    };
    while (begin < end) {
      Found run = longestAt(begin, end);
      if (run.covered() == 0) {
        ++begin;
        continue;
      }
      addRest(begin);
      add(run);
      rest = begin += run.covered();
    }
    addRest(end);
  }

  Found longestAt(size_t begin, size_t end) const {
    Found best{begin};
    for (size_t period = 1; period <= std::min(kMostSlots, (end - begin) / 2); ++period) {
      size_t behind = begin + period;
      while (behind < end && stepTo(behind - period, behind) == 1)
        ++behind;
      Found found{begin, period, (behind - begin) / period};
      if (found.covered() > best.covered())
        best = found;
    }
    return best;
  }

  void addRun(const Found &run) {
    numbers.append({static_cast<int64_t>(run.times), run.step, 0});
    size_t parts = numbers.size() - 1;
    auto addPart = [&](const Found &part) {
      ++numbers[parts];
      numbers.append({static_cast<int64_t>(part.times), static_cast<int64_t>(part.period)});
      for (Slot slot : slots.slice(part.at, part.period))
        numbers.append({static_cast<int64_t>(slot.kind), slot.chunk, slot.microBatch});
    };
    if (run.step == 1)
      addPart({run.at, run.period});
    else
      inTurn(run.at, run.at + run.period, addPart);
  }

  ArrayRef<Slot> slots;
  unsigned runs = 0;
  SmallVector<int64_t> numbers;
};

} // namespace

OrderAttr OrderAttr::get(MLIRContext *context, ArrayRef<Slot> slots) {
  return get(context, ArrayRef<int64_t>(Compressor(slots).run()));
}

/// Of a slot: kind, chunk, micro-batch.
static constexpr size_t kNumbers = 3;

/// More slots than any order has, and more micro-batches.
static constexpr int64_t kMost = int64_t(1) << 22;

/// Takes the numbers of a run off the front. Returns why they are not a run's; "" if they are.
static std::string takeRun(ArrayRef<int64_t> &rest, Run &run) {
  auto take = [&] {
    int64_t number = rest.empty() ? 0 : rest.front();
    rest = rest.drop_front(rest.empty() ? 0 : 1);
    return number;
  };
  run.times = take(), run.step = take();
  int64_t parts = take(), slots = 0;
  const char *incomplete = "a run is how many times it runs, from 1 on, and its slots";
  std::string tooMany = "an order has at most " + std::to_string(kMost) + " slots";
  if (run.times < 1 || run.step < 1 || parts < 1)
    return incomplete;
  for (int64_t i = 0; i < parts; ++i) {
    train::OrderAttr::Part &part = run.parts.emplace_back();
    part.times = take();
    int64_t count = take();
    if (part.times < 1 || count < 1 || count > static_cast<int64_t>(rest.size() / kNumbers))
      return incomplete;
    if (part.times > kMost / count || (slots += part.times * count) > kMost)
      return tooMany;
    for (; count > 0; --count) {
      int64_t kind = take(), chunk = take(), microBatch = take();
      if (kind < 0 || kind >= static_cast<int64_t>(kPassKindCount))
        return "a slot of no kind of pass";
      for (auto [what, number] : {std::pair("chunk", chunk), {"micro-batch", microBatch}})
        if (number < 0 || number >= kMost)
          return std::string(what) + " " + std::to_string(number) + " of a slot, expected 0 to " +
                 std::to_string(kMost - 1);
      part.slots.push_back({{static_cast<PassKind>(kind), chunk}, microBatch});
    }
  }
  return run.times > kMost / std::max(slots, run.step) ? tooMany : "";
}

int64_t Run::slotCount() const {
  int64_t count = 0;
  for (const OrderAttr::Part &part : parts)
    count += part.times * static_cast<int64_t>(part.slots.size());
  return times * count;
}

LogicalResult OrderAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> numbers) {
  int64_t slots = 0;
  while (!numbers.empty()) {
    Run run;
    if (std::string problem = takeRun(numbers, run); !problem.empty())
      return emitError() << problem;
    if ((slots += run.slotCount()) > kMost)
      return emitError() << "an order has at most " << kMost << " slots";
  }
  return success();
}

SmallVector<Run> OrderAttr::getRuns() const {
  SmallVector<Run> runs;
  for (ArrayRef<int64_t> rest = getNumbers(); !rest.empty();)
    (void)takeRun(rest, runs.emplace_back());
  return runs;
}

std::vector<Slot> OrderAttr::getSlots() const {
  std::vector<Slot> slots;
  for (const Run &run : getRuns())
    for (int64_t time = 0; time < run.times; ++time)
      for (const Part &part : run.parts)
        for (int64_t again = 0; again < part.times; ++again)
          for (Slot slot : part.slots)
            slots.push_back({slot.pass(), slot.microBatch + time * run.step + again});
  return slots;
}

Attribute OrderAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> numbers;
  SMLoc loc = parser.getCurrentLocation();
  auto slot = [&]() -> ParseResult {
    StringRef pass;
    SMLoc at = parser.getCurrentLocation();
    int64_t microBatch = 0;
    if (parser.parseKeyword(&pass) || parser.parseInteger(microBatch))
      return failure();
    auto [name, behind] = pass.split('.');
    std::optional<PassKind> kind = symbolizePassKind(name);
    int64_t chunk = 0;
    if (!kind || (pass.contains('.') && behind.getAsInteger(10, chunk)))
      return parser.emitError(at, "a slot is ")
             << quotedPassKinds() << ", perhaps with a chunk after a dot, not '" << pass << "'";
    numbers.append({static_cast<int64_t>(*kind), chunk, microBatch});
    return success();
  };
  // (SLOT, ...)
  auto slots = [&]() -> ParseResult {
    size_t count = numbers.size();
    numbers.push_back(0);
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, slot))
      return failure();
    numbers[count] = static_cast<int64_t>((numbers.size() - count - 1) / kNumbers);
    return success();
  };
  // N x (SLOT, ...)
  auto part = [&]() -> ParseResult {
    if (parser.parseInteger(numbers.emplace_back()) || parser.parseKeyword("x"))
      return failure();
    return slots();
  };
  // N x (SLOT, ...) or N x [N x (SLOT, ...), ...], then perhaps by N
  auto run = [&]() -> ParseResult {
    if (parser.parseInteger(numbers.emplace_back()) || parser.parseKeyword("x"))
      return failure();
    size_t step = numbers.size();
    numbers.append({1, 0}); // step, parts
    if (succeeded(parser.parseOptionalLSquare())) {
      auto counted = [&] { return ++numbers[step + 1], part(); };
      if (parser.parseCommaSeparatedList(counted) || parser.parseRSquare())
        return failure();
    } else {
      numbers[step + 1] = 1;
      numbers.push_back(1);
      if (slots())
        return failure();
    }
    return succeeded(parser.parseOptionalKeyword("by")) ? parser.parseInteger(numbers[step])
                                                        : success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, run))
    return {};
  return OrderAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                               ArrayRef<int64_t>(numbers));
}

void OrderAttr::print(AsmPrinter &printer) const {
  auto printPart = [&](const Part &part) {
    printer << part.times << " x (";
    llvm::interleaveComma(part.slots, printer,
                          [&](Slot slot) { printer << slot.text(".") << " " << slot.microBatch; });
    printer << ")";
  };
  printer << "<";
  llvm::interleaveComma(getRuns(), printer, [&](const Run &run) {
    if (run.isFlat()) {
      printPart({run.times, run.parts.front().slots});
    } else {
      printer << run.times << " x [";
      llvm::interleaveComma(run.parts, printer, printPart);
      printer << "]";
    }
    if (run.step != 1)
      printer << " by " << run.step;
  });
  printer << ">";
}

bool partita::train::alternate(ArrayRef<Slot> slots) {
  if (slots.empty() || slots.size() % 2 != 0)
    return false;
  for (size_t i = 0; i < slots.size(); i += 2)
    if (slots[i].pass() != PassName{PassKind::Forward} ||
        slots[i + 1] != Slot{{PassKind::Backward}, slots[i].microBatch})
      return false;
  return true;
}

//===------------------------------------------------------------------------------------------===//
// #train.pass<backward 1>
//===------------------------------------------------------------------------------------------===//

LogicalResult PassAttr::verify(function_ref<InFlightDiagnostic()> emitError, PassKind,
                               int64_t chunk) {
  return chunk >= 0 ? success()
                    : emitError() << "chunk " << chunk << " of a pass, expected at least 0";
}

Attribute PassAttr::parse(AsmParser &parser, Type) {
  StringRef word;
  int64_t chunk = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&word))
    return {};
  std::optional<PassKind> kind = symbolizePassKind(word);
  if (!kind)
    return parser.emitError(loc, "a pass is ") << quotedPassKinds() << ", not '" << word << "'",
           Attribute();
  if (auto number = parser.parseOptionalInteger(chunk); number.has_value() && failed(*number))
    return {};
  if (parser.parseGreater())
    return {};
  return PassAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), *kind,
                              chunk);
}

void PassAttr::print(AsmPrinter &printer) const { printer << "<" << getName().text() << ">"; }
