//===- Order.cpp - #train.order: the order of micro-batches' passes ----------------------------===//

#include "dialects/Train/Train.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::train;

using Slot = OrderAttr::Slot;
using Run = OrderAttr::Run;

/// More slots than the period of any schedule.
static constexpr size_t kMostSlots = 64;
/// More runs than any schedule has; the rest of an irregular order is written slot by slot.
static constexpr unsigned kMostRuns = 1024;

namespace {

/// Finds an order's runs: first the one that covers the most slots (1F1B's steady state), then
/// those before and after it.
class Compressor {
public:
  explicit Compressor(ArrayRef<Slot> slots) : slots(slots) {}

  SmallVector<int64_t> run() {
    compress(0, slots.size());
    return std::move(numbers);
  }

private:
  struct Found {
    size_t at = 0, period = 1, times = 1;
    size_t covered() const { return times > 1 ? period * times : 0; }
  };

  void compress(size_t begin, size_t end) {
    if (begin == end)
      return;
    Found best;
    if (++runs <= kMostRuns)
      best = longest(begin, end);
    if (best.covered() == 0)
      return add(begin, end - begin, 1);
    compress(begin, best.at);
    add(best.at, best.period, best.times);
    compress(best.at + best.covered(), end);
  }

  /// Returns the run that covers the most slots; ties go to the one with the fewest slots, then to
  /// the first.
  Found longest(size_t begin, size_t end) const {
    Found best;
    for (size_t period = 1; period <= std::min(kMostSlots, (end - begin) / 2); ++period)
      for (size_t at = end - period, alike = 0; at-- > begin;) {
        Slot next{slots[at].pass, slots[at].microBatch + 1};
        alike = slots[at + period] == next ? alike + 1 : 0;
        Found found{at, period, alike / period + 1};
        if (found.covered() > best.covered() ||
            (found.covered() == best.covered() && period == best.period))
          best = found;
      }
    return best;
  }

  void add(size_t at, size_t period, size_t times) {
    numbers.append({static_cast<int64_t>(times), static_cast<int64_t>(period)});
    for (Slot slot : slots.slice(at, period))
      numbers.append({static_cast<int64_t>(slot.pass.kind), slot.pass.chunk, slot.microBatch});
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

static bool isPass(int64_t kind, int64_t chunk) {
  return kind >= 0 && kind <= static_cast<int64_t>(PassKind::Weights) && chunk >= 0;
}

LogicalResult OrderAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> numbers) {
  constexpr int64_t most = int64_t(1) << 32; // more slots than any order has
  int64_t slots = 0;
  for (size_t at = 0; at < numbers.size();) {
    if (numbers.size() - at < 2 || numbers[at] < 1 || numbers[at + 1] < 1 ||
        numbers[at + 1] > static_cast<int64_t>((numbers.size() - at - 2) / kNumbers))
      return emitError() << "a run is how many times it runs, from 1 on, and its slots";
    if (numbers[at] > most / numbers[at + 1] || (slots += numbers[at] * numbers[at + 1]) > most)
      return emitError() << "an order has at most " << most << " slots";
    for (int64_t i = 0; i < numbers[at + 1]; ++i)
      if (!isPass(numbers[at + 2 + kNumbers * i], numbers[at + 3 + kNumbers * i]))
        return emitError() << "chunk " << numbers[at + 3 + kNumbers * i]
                           << " of a slot, expected at least 0";
    at += 2 + kNumbers * numbers[at + 1];
  }
  return success();
}

SmallVector<Run> OrderAttr::getRuns() const {
  SmallVector<Run> runs;
  for (ArrayRef<int64_t> rest = getNumbers(); !rest.empty();) {
    Run &run = runs.emplace_back();
    run.times = rest[0];
    auto count = static_cast<size_t>(rest[1]);
    rest = rest.drop_front(2);
    for (size_t i = 0; i < count; ++i, rest = rest.drop_front(kNumbers))
      run.slots.push_back({{static_cast<PassKind>(rest[0]), rest[1]}, rest[2]});
  }
  return runs;
}

std::vector<Slot> OrderAttr::getSlots() const {
  std::vector<Slot> slots;
  for (const Run &run : getRuns())
    for (int64_t time = 0; time < run.times; ++time)
      for (Slot slot : run.slots)
        slots.push_back({slot.pass, slot.microBatch + time});
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
      return parser.emitError(at,
                              "a slot is 'forward', 'backward' or 'weights', perhaps with a chunk "
                              "after a dot, not '")
             << pass << "'";
    numbers.append({static_cast<int64_t>(*kind), chunk, microBatch});
    return success();
  };
  auto run = [&]() -> ParseResult {
    if (parser.parseInteger(numbers.emplace_back()) || parser.parseKeyword("x"))
      return failure();
    size_t count = numbers.size();
    numbers.push_back(0);
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, slot))
      return failure();
    numbers[count] = static_cast<int64_t>((numbers.size() - count - 1) / kNumbers);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, run))
    return {};
  return OrderAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                               ArrayRef<int64_t>(numbers));
}

void OrderAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getRuns(), printer, [&](const Run &run) {
    printer << run.times << " x (";
    llvm::interleaveComma(run.slots, printer, [&](Slot slot) {
      printer << slot.pass.text(".") << " " << slot.microBatch;
    });
    printer << ")";
  });
  printer << ">";
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
    return parser.emitError(loc, "a pass is 'forward', 'backward' or 'weights', not '")
               << word << "'",
           Attribute();
  if (auto number = parser.parseOptionalInteger(chunk); number.has_value() && failed(*number))
    return {};
  if (parser.parseGreater())
    return {};
  return PassAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), *kind,
                              chunk);
}

void PassAttr::print(AsmPrinter &printer) const { printer << "<" << getName().text() << ">"; }
