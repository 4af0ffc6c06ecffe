//===- GatherUpdates.cpp - gather-updates -----------------------------------------------------===//
//
// Updates with nothing of effect between them form a run. A run's updates may be reordered if none
// writes what another one reads or writes. A run ends at an update that conflicts with it, e.g.
// because the planner has given it memory that an earlier one freed. It also ends at any other op
// with effects, such as a wait or a gather that starts; but updates may cross copies of a rank's
// shard that touch other memory. The updates of a run that have the same kernel, and operands in
// the same memory spaces, become rows of a table and one call at the end of the run. Where their
// scalars differ, the call has lists of scalars, and each row has its number in them.
//
// A sum of squares reads the gradients in that table if they are its arrays, in their order;
// otherwise it gets a table of its own.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Par/Placement.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Outline/Passes.h"
#include "partita/Support/StableSort.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_GATHERUPDATES
#include "partita/Outline/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// The scalars of a call are arguments of one kernel, which takes 4 KiB in all; each takes 32
/// bytes.
constexpr size_t kMostScalars = 96;

struct BytePlace {
  Space space;
  int64_t offset; ///< in bytes
  bool operator==(const BytePlace &other) const {
    return space == other.space && offset == other.offset;
  }
};

/// Returns the place a pointer points to if it is in the arena or in persistent memory.
std::optional<BytePlace> placeOf(Value pointer) {
  int64_t shift = 0;
  Operation *op = pointer.getDefiningOp();
  while (auto offset = dyn_cast_or_null<OffsetOp>(op)) {
    Type element = cast<BufferType>(offset.getBase().getType()).getElement();
    shift += static_cast<int64_t>(offset.getElements()) * elementBytes(element);
    op = offset.getBase().getDefiningOp();
  }
  if (auto arena = dyn_cast_or_null<ArenaOp>(op))
    return BytePlace{Space::Arena, static_cast<int64_t>(arena.getOffset()) + shift};
  if (auto persistent = dyn_cast_or_null<PersistentOp>(op))
    return BytePlace{Space::Persistent, static_cast<int64_t>(persistent.getOffset()) + shift};
  return std::nullopt;
}

/// A set of bytes that are read, or written.
class Bytes {
public:
  bool overlap(BytePlace from, int64_t bytes) const {
    auto behind = ranges.lower_bound({from.space, from.offset + bytes});
    if (behind == ranges.begin())
      return false;
    const auto &[begin, end] = *std::prev(behind);
    return begin.first == from.space && end > from.offset;
  }
  void add(BytePlace from, int64_t bytes) {
    auto [range, isNew] = ranges.try_emplace({from.space, from.offset}, from.offset + bytes);
    if (!isNew)
      range->second = std::max(range->second, from.offset + bytes);
    for (auto next = std::next(range); next != ranges.end() && next->first.first == from.space &&
                                       next->first.second <= range->second;
         next = ranges.erase(next))
      range->second = std::max(range->second, next->second);
    if (range == ranges.begin())
      return;
    if (auto before = std::prev(range);
        before->first.first == from.space && before->second >= range->first.second) {
      before->second = std::max(before->second, range->second);
      ranges.erase(range);
    }
  }

private:
  std::map<std::pair<Space, int64_t>, int64_t> ranges; ///< by their beginning; disjoint
};

struct MemoryAccess {
  BytePlace from;
  int64_t bytes;
  bool isWritten;
};

/// Returns what a rank's copy of its shard reads and writes; nothing if a pointer has no known
/// place.
std::optional<std::array<MemoryAccess, 2>> accessesOf(TakePartOp op) {
  std::optional<BytePlace> from = placeOf(op.getFrom()), to = placeOf(op.getTo());
  if (!from || !to)
    return std::nullopt;
  int64_t width = elementBytes(cast<BufferType>(op.getTo().getType()).getElement()),
          shard = static_cast<int64_t>(op.getBlocks() * op.getCount()),
          ranks = static_cast<int64_t>(op.getRanks());
  // The last shard of a tensor that is smaller than all shards together is padded.
  return std::array<MemoryAccess, 2>{
      {{*from, shard * ranks * width, false}, {*to, shard * width, true}}};
}

/// An update that may become a row.
struct Gathered {
  UpdateOp op;
  ExposeGradientOp exposed;           ///< null if the gradient is not exposed
  SmallVector<BytePlace> values;      ///< the kernel's arguments
  SmallVector<MemoryAccess> accesses; ///< of values and scalars

  int64_t parameter() { return exposed ? static_cast<int64_t>(exposed.getIndex()) : -1; }
};

/// Returns nothing for an update that must be a call of its own: the host does it, or a pointer has
/// no known place.
std::optional<Gathered> asGathered(UpdateOp op) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<UpdateKernelOp>(op, op.getKernelAttr());
  if (!kernel || kernel.getSquares() || op.getTile() ||
      kernel.getTypes().size() != op.getValues().size())
    return std::nullopt;
  Gathered result{op, {}, {}, {}};
  for (auto [i, value] : llvm::enumerate(op.getValues())) {
    std::optional<BytePlace> place = placeOf(value);
    if (!place)
      return std::nullopt;
    int64_t bytes = static_cast<int64_t>(op.getN()) *
                    elementBytes(cast<BufferType>(value.getType()).getElement());
    result.values.push_back(*place);
    result.accesses.push_back({*place, bytes, i + 1 < op.getValues().size()});
  }
  for (Value pointer : op.getPointers()) {
    if (isa_and_nonnull<ControlOp>(pointer.getDefiningOp()))
      continue; // on the host
    std::optional<BytePlace> place = placeOf(pointer);
    if (!place)
      return std::nullopt;
    result.accesses.push_back(
        {*place, elementBytes(cast<BufferType>(pointer.getType()).getElement()), false});
  }
  return result;
}

/// The scalars of an update, as attributes and as pointers to those in memory.
using ScalarList = std::pair<ArrayAttr, SmallVector<Value>>;

/// A table under construction: its columns, and its rows so far.
struct RowTable {
  SmallVector<Attribute> homes, types, rows;
  std::string name;
};

/// What the updates of a table have in common: the kernel, the columns' memory spaces, and, if
/// their gradients are exposed, the axes over which these are flat shards.
using Kind = std::pair<Attribute, Attribute>;

class Gatherer {
public:
  Gatherer(func::FuncOp function, SymbolTable &symbols)
      : function(function), symbols(symbols), b(function.getContext()),
        polls(Target::of(function).pollsCollectives()) {}

  /// Gathers everything possible. Returns how many updates, and how many sums, became rows.
  std::pair<unsigned, unsigned> run();

private:
  void visit(Operation *op);
  /// Returns true if the op reads what the run writes, or writes what the run touches.
  bool conflicts(ArrayRef<MemoryAccess> accesses) const;
  /// Adds an update to the run. Returns false if it conflicts with one of the run's updates.
  bool add(Gathered &update);
  /// Returns true if the run's updates may move after the op.
  bool mayCross(Operation *op) const;
  void endRun();
  void gather(Kind kind, MutableArrayRef<Gathered> updates);
  void call(RowTable &table, MutableArrayRef<Gathered> updates, ArrayRef<ScalarList> steps,
            ArrayRef<int64_t> stepOf);
  Kind kindOf(Gathered &update);
  void gatherSquares(SquareSumOp sum);

  Attribute homeOf(BytePlace place) { return b.getStringAttr(toString(place.space)); }
  static Attribute typeOf(Value buffer) {
    return TypeAttr::get(cast<BufferType>(buffer.getType()).getElement());
  }
  RowTable &newTable(StringRef name);

  func::FuncOp function;
  SymbolTable &symbols;
  OpBuilder b;
  bool polls;
  std::vector<Gathered> updates; ///< of the run
  Bytes read, written;
  SmallVector<Operation *> dead; ///< ops of the run that are rows now
  ExposeGradientOp exposed;      ///< the last op, ignoring pointers, if it exposes a gradient
  llvm::MapVector<Kind, unsigned> numbers;
  std::vector<RowTable> tables;
  unsigned gathered = 0, sums = 0;
};

//===------------------------------------------------------------------------------------------===//
// Runs
//===------------------------------------------------------------------------------------------===//

bool Gatherer::conflicts(ArrayRef<MemoryAccess> accesses) const {
  return llvm::any_of(accesses, [&](const MemoryAccess &each) {
    return written.overlap(each.from, each.bytes) ||
           (each.isWritten && read.overlap(each.from, each.bytes));
  });
}

bool Gatherer::mayCross(Operation *op) const {
  if (isPointer(op) || isa<CommentOp>(op) || (isa<rt::PollOp>(op) && !polls))
    return true;
  auto part = dyn_cast<TakePartOp>(op);
  auto accesses = part && !exposed ? accessesOf(part) : std::nullopt;
  return accesses && !conflicts(*accesses);
}

bool Gatherer::add(Gathered &update) {
  if (conflicts(update.accesses))
    return false;
  for (const MemoryAccess &each : update.accesses)
    (each.isWritten ? written : read).add(each.from, each.bytes);
  updates.push_back(update);
  return true;
}

void Gatherer::visit(Operation *op) {
  if (mayCross(op))
    return;
  if (auto expose = dyn_cast<ExposeGradientOp>(op)) {
    if (exposed)
      endRun();
    exposed = expose;
    return;
  }
  auto update = dyn_cast<UpdateOp>(op);
  std::optional<Gathered> one = update ? asGathered(update) : std::nullopt;
  bool isOwn = one && exposed && exposed.getGradient() == update.getValues().back();
  if (!one || (exposed && !isOwn))
    endRun();
  if (one) {
    one->exposed = isOwn ? exposed : ExposeGradientOp();
    if (!add(*one)) {
      endRun();
      add(*one);
    }
  }
  exposed = {};
}

Kind Gatherer::kindOf(Gathered &update) {
  SmallVector<Attribute> spaces;
  for (BytePlace place : update.values)
    spaces.push_back(homeOf(place));
  spaces.push_back(update.exposed ? Attribute(update.exposed.getFlatOverAttr())
                                  : Attribute(b.getUnitAttr()));
  return {update.op.getKernelAttr(), b.getArrayAttr(spaces)};
}

void Gatherer::endRun() {
  llvm::MapVector<Kind, std::vector<Gathered>> kinds;
  for (Gathered &update : updates)
    kinds[kindOf(update)].push_back(update);
  if (!updates.empty()) // calls come after the run, one after another
    b.setInsertionPoint(updates.back().op->getBlock(),
                        std::next(Block::iterator(updates.back().op)));
  for (auto &[kind, some] : kinds)
    gather(kind, some);
  for (Operation *op : dead)
    op->erase();
  dead.clear();
  updates.clear();
  read = written = Bytes();
}

//===------------------------------------------------------------------------------------------===//
// Tables and calls
//===------------------------------------------------------------------------------------------===//

/// Names tables "updates", "updates_2", ...
RowTable &Gatherer::newTable(StringRef name) {
  std::string unique = name.str();
  auto isTaken = [&] {
    return symbols.lookup(unique) ||
           llvm::any_of(tables, [&](const RowTable &other) { return other.name == unique; });
  };
  for (unsigned i = 2; isTaken(); ++i)
    unique = name.str() + "_" + std::to_string(i);
  tables.emplace_back().name = unique;
  return tables.back();
}

/// Makes as many calls as needed to keep each within the limit of scalars; none for a single
/// update.
void Gatherer::gather(Kind kind, MutableArrayRef<Gathered> updates) {
  while (updates.size() > 1) {
    SmallVector<ScalarList> steps;
    SmallVector<int64_t> stepOf;
    size_t scalars = std::max<size_t>(1, updates[0].op.getScalars().size()),
           most = std::max<size_t>(1, kMostScalars / scalars);
    for (Gathered &update : updates) {
      ScalarList step = {update.op.getScalars(), llvm::to_vector(update.op.getPointers())};
      auto known = llvm::find(steps, step);
      if (known == steps.end() && steps.size() == most)
        break;
      stepOf.push_back(known - steps.begin());
      if (known == steps.end())
        steps.push_back(step);
    }
    if (stepOf.size() > 1) {
      auto [number, isNew] = numbers.insert({kind, tables.size()});
      if (isNew) {
        RowTable &table = newTable("updates");
        for (auto [place, value] : llvm::zip(updates[0].values, updates[0].op.getValues())) {
          table.homes.push_back(homeOf(place));
          table.types.push_back(typeOf(value));
        }
      }
      call(tables[number->second], updates.take_front(stepOf.size()), steps, stepOf);
    }
    updates = updates.drop_front(stepOf.size());
  }
}

/// Orders the rows of one call like the program's parameters, since a sum of squares lists them so.
void Gatherer::call(RowTable &table, MutableArrayRef<Gathered> updates, ArrayRef<ScalarList> steps,
                    ArrayRef<int64_t> stepOf) {
  SmallVector<size_t> order = llvm::to_vector(llvm::seq<size_t>(0, updates.size()));
  stableSort(order, [&](size_t a, size_t other) {
    return updates[a].parameter() < updates[other].parameter();
  });
  auto first = static_cast<int64_t>(table.rows.size()),
       count = static_cast<int64_t>(updates.size());
  SmallVector<int64_t> used; // in the order of the rows
  for (size_t i : order) {
    Gathered &update = updates[i];
    auto step = llvm::find(used, stepOf[i]);
    auto number = static_cast<int64_t>(step - used.begin());
    if (step == used.end())
      used.push_back(stepOf[i]);
    SmallVector<int64_t> places =
        llvm::map_to_vector(update.values, [](BytePlace place) { return place.offset; });
    table.rows.push_back(TensorAttr::get(
        b.getContext(), provenance::nameIn(update.op.getValues().front().getLoc()), places,
        static_cast<int64_t>(update.op.getN()), number, update.parameter()));
  }
  SmallVector<Attribute> scalars;
  SmallVector<Value> pointers;
  for (int64_t number : used) {
    scalars.push_back(steps[number].first);
    llvm::append_range(pointers, steps[number].second);
  }
  Operation *last = this->updates.back().op;
  auto tensors = FlatSymbolRefAttr::get(b.getContext(), table.name);
  auto column = static_cast<int64_t>(table.types.size()) - 1;
  if (ExposeGradientOp one = updates[0].exposed)
    ExposeGradientsOp::create(b, last->getLoc(), tensors.getValue(), column, first, count,
                              one.getFlatOver());
  UpdateAllOp::create(b, last->getLoc(), updates[0].op.getKernel(), tensors.getValue(), first,
                      count, b.getArrayAttr(scalars), pointers);
  for (Gathered &update : updates) {
    if (update.exposed)
      dead.push_back(update.exposed);
    dead.push_back(update.op);
  }
  gathered += static_cast<unsigned>(count);
}

//===------------------------------------------------------------------------------------------===//
// Sums of squares
//===------------------------------------------------------------------------------------------===//

/// Returns the first of consecutive rows whose last column is these tensors.
static std::optional<int64_t> findRows(const RowTable &table, ArrayRef<BytePlace> places,
                                       ArrayRef<int64_t> counts, Attribute home, Attribute type) {
  if (table.homes.back() != home || table.types.back() != type)
    return std::nullopt;
  auto isRow = [&](Attribute attribute, size_t i) {
    auto row = cast<TensorAttr>(attribute);
    return row.getPlaces().back() == places[i].offset && row.getElements() == counts[i];
  };
  for (size_t first = 0; first + places.size() <= table.rows.size(); ++first) {
    size_t same = 0;
    while (same < places.size() && isRow(table.rows[first + same], same))
      ++same;
    if (same == places.size())
      return static_cast<int64_t>(first);
  }
  return std::nullopt;
}

/// Returns the op that reports the first array of the sum that is not finite, or null if there is
/// none.
static FirstNonfiniteOp findNonfinite(SquareSumOp sum) {
  for (Operation *user : sum.getSum().getUsers())
    if (auto first = dyn_cast<FirstNonfiniteOp>(user);
        first && first.getSquares().size() == 1 && first.getCounts().size() == 1 &&
        first.getCounts()[0] == static_cast<int64_t>(sum.getValues().size()))
      return first;
  return {};
}

void Gatherer::gatherSquares(SquareSumOp sum) {
  SmallVector<BytePlace> places;
  for (Value value : sum.getValues()) {
    std::optional<BytePlace> place = placeOf(value);
    if (!place || typeOf(value) != typeOf(sum.getValues().front()) ||
        (!places.empty() && place->space != places.front().space))
      return;
    places.push_back(*place);
  }
  if (places.size() < 2)
    return;
  Attribute home = homeOf(places.front()), type = typeOf(sum.getValues().front());
  FirstNonfiniteOp nonfinite = findNonfinite(sum);
  RowTable *table = nullptr;
  std::optional<int64_t> first;
  for (RowTable &each : tables)
    if (!first && (first = findRows(each, places, sum.getCounts(), home, type)))
      table = &each;
  if (!table) {
    table = &newTable("gradients");
    table->homes = {home};
    table->types = {type};
    first = 0;
    for (auto [i, value] : llvm::enumerate(sum.getValues()))
      table->rows.push_back(TensorAttr::get(b.getContext(), provenance::nameIn(value.getLoc()),
                                            places[i].offset, sum.getCounts()[i], 0,
                                            nonfinite ? nonfinite.getParameters()[i] : -1));
  }
  auto column = static_cast<int64_t>(table->homes.size()) - 1,
       count = static_cast<int64_t>(places.size());
  bool areParameters = nonfinite;
  for (int64_t i = 0; areParameters && i < count; ++i)
    areParameters =
        cast<TensorAttr>(table->rows[*first + i]).getParameter() == nonfinite.getParameters()[i];
  b.setInsertionPoint(sum);
  SquareSumAllOp::create(b, sum.getLoc(), sum.getSum(), table->name, column, *first, count);
  if (areParameters) {
    b.setInsertionPoint(nonfinite);
    FirstNonfiniteAllOp::create(b, nonfinite.getLoc(), sum.getSum(), table->name, *first, count);
    nonfinite.erase();
  }
  sum.erase();
  sums += static_cast<unsigned>(count);
}

std::pair<unsigned, unsigned> Gatherer::run() {
  Block &block = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(block))
    visit(&op);
  endRun();
  for (auto sum : llvm::make_early_inc_range(block.getOps<SquareSumOp>()))
    gatherSquares(sum);
  b.setInsertionPoint(function);
  for (const RowTable &table : tables)
    symbols.insert(TensorsOp::create(b, function.getLoc(), table.name, b.getArrayAttr(table.homes),
                                     b.getArrayAttr(table.types), b.getArrayAttr(table.rows)));
  if (!tables.empty())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isPointer(&op) && op.use_empty())
        op.erase();
  return {gathered, sums};
}

struct GatherUpdates : partita::impl::GatherUpdatesBase<GatherUpdates> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal()) {
        auto [ofUpdates, ofSums] = Gatherer(function, symbols).run();
        gathered += ofUpdates;
        sums += ofSums;
      }
  }
};

} // namespace
