//===- CheckMemory.cpp - is every value where it is read? ---------------------------------------===//
//
// The program says where each value is (`rt.at`, `rt.buffers`, `rt.workspace`, `rt.in_flight`) and how much memory there is. The
// check reads only these attributes and the interfaces of kernels: it has no code in common with `plan-memory`, and compares no
// lifetimes. It begins with parameters and states: each has the type of a shard and its own place in persistent memory. Then it
// checks each function: all places lie in their memory (Spots.h), and every op finds its operands where they were put
// (FunctionCheck.h).
//
//===--------------------------------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "dialects/Pipe/Pipe.h"
#include "lib/Memory/Check/FunctionCheck.h"
#include "partita/Analysis/Parameters.h"
#include "partita/Analysis/Preconditions.h"
#include "partita/Memory/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace partita {
#define GEN_PASS_DEF_CHECKMEMORYPASS
#include "partita/Memory/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::memory::check;
using rt::AtAttr;
using rt::RtDialect;
using rt::Space;

namespace {

/// Alignments: in persistent memory, for copies and vectors of four; in the arena, for full cache
/// lines.
constexpr int64_t kOfSymbols = 16, kOfBuffers = 64;

/// The attributes that say how much memory of a space the program has.
constexpr std::pair<StringLiteral, Space> kSizes[] = {
    {RtDialect::kArenaBytes, Space::Arena},
    {RtDialect::kPersistentBytes, Space::Persistent},
    {RtDialect::kHostBytes, Space::Host},
    {RtDialect::kPinnedBytes, Space::Pinned}};

/// Raises the size of a space to `end`, rounded up to a multiple of `unit`, if it is smaller.
void grow(Sizes &sizes, Space space, int64_t end, uint64_t unit) {
  int64_t rounded = llvm::alignTo(end, unit);
  sizeOf(sizes, space) = std::max(sizeOf(sizes, space), rounded);
}

struct CheckMemory : partita::impl::CheckMemoryPassBase<CheckMemory> {
  void runOnOperation() override {
    markAllAnalysesPreserved(); // so that ops are not verified again
    ModuleOp module = getOperation();
    if (failed(expectScheduled(*this, module)) || failed(readSizes(module)) ||
        failed(placeSymbols(module)) || failed(checkOverlaps()) || failed(checkFunctions(module)))
      signalPassFailure();
    symbols.clear(); // the pass may run on another stage
  }

private:
  /// Reads the module's size of each space. @forward, which a training program runs on request only, may need a larger
  /// arena.
  LogicalResult readSizes(ModuleOp module) {
    limits = {};
    for (auto [name, space] : kSizes) {
      bool isOptional = space == Space::Host || space == Space::Pinned;
      Attribute attribute = module->getAttr(name);
      if (!attribute && isOptional)
        continue;
      if (!attribute)
        return module.emitError() << "has no attribute '" << name << "'; run plan-memory first";
      if (failed(readSize(module, name, sizeOf(limits, space))))
        return failure();
    }
    forwardArena = sizeOf(limits, Space::Arena);
    return module->hasAttr(RtDialect::kForwardArenaBytes)
               ? readSize(module, RtDialect::kForwardArenaBytes, forwardArena)
               : success();
  }

  static LogicalResult readSize(ModuleOp module, StringRef name, int64_t &size) {
    auto number = module->getAttrOfType<IntegerAttr>(name);
    if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
      return module.emitError() << name << " is " << module->getAttr(name)
                                << ", expected a number of bytes, an i64";
    size = number.getInt();
    return success();
  }

  LogicalResult placeSymbols(ModuleOp module) {
    FailureOr<analysis::LocalTypes> types = analysis::localTypes(module);
    if (failed(types))
      return failure();
    for (Operation &op : *module.getBody())
      if (isa<train::ParameterOp, train::StateOp>(op) &&
          failed(placeSymbol(&op, analysis::localType(*types, &op))))
        return failure();
    return success();
  }

  LogicalResult placeSymbol(Operation *op, RankedTensorType type) {
    auto at = op->getAttrOfType<AtAttr>(RtDialect::kAt);
    auto local = op->getAttrOfType<TypeAttr>(RtDialect::kLocal);
    if (!at || !local)
      return op->emitOpError() << "has no " << (at ? RtDialect::kLocal : RtDialect::kAt)
                               << "; run plan-memory first";
    if (local.getValue() != type)
      return op->emitOpError() << "has " << local.getValue() << " as its " << RtDialect::kLocal
                               << ", but is read and written as " << type;
    if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
      return op->emitOpError() << "is of type " << type
                               << "; memory is for tensors of known size only";
    Space space = offload::livesOnHost(op) ? Space::Host : Space::Persistent;
    if (at.getSpace() != space || !at.getStrides().empty())
      return op->emitOpError() << "is placed at " << at << "; it lives in the " << textOf(space)
                               << ", dense";
    std::optional<Bytes> bytes = Bytes::at(at, type);
    if (!bytes || at.getOffset() % kOfSymbols != 0)
      return op->emitOpError() << "is placed at " << at << "; its place begins at a multiple of "
                               << kOfSymbols << " bytes";
    if (auto shared = op->getAttrOfType<IntegerAttr>(pipe::PipeDialect::kOffset);
        shared && shared.getInt() != at.getOffset())
      return op->emitOpError() << "is placed at " << at << ", and other pipeline stages have it at "
                               << shared.getInt();
    Bytes padded = *bytes;
    padded.end = padded.begin + rt::bytesInMemory(op, type);
    if (padded.end > sizeOf(limits, space))
      return op->emitOpError() << "is placed at " << at << ", up to byte " << padded.end
                               << " of the " << textOf(space) << ", which has "
                               << sizeOf(limits, space);
    symbols.insert({SymbolTable::getSymbolName(op), {op, at, *bytes, padded}});
    return success();
  }

  LogicalResult checkOverlaps() {
    SmallVector<const SymbolSpot *> sorted;
    for (auto &entry : symbols)
      if (entry.second.bytes.begin != entry.second.bytes.end)
        sorted.push_back(&entry.second);
    llvm::sort(sorted, [](const SymbolSpot *a, const SymbolSpot *b) {
      return std::make_pair(a->at.getSpace(), a->bytes.begin) <
             std::make_pair(b->at.getSpace(), b->bytes.begin);
    });
    for (size_t i = 1; i < sorted.size(); ++i) {
      const SymbolSpot &before = *sorted[i - 1], &after = *sorted[i];
      if (!before.padded.meets(after.padded))
        continue;
      InFlightDiagnostic error = after.op->emitOpError()
                                 << "shares byte " << after.bytes.begin << " of the "
                                 << textOf(after.at.getSpace()) << " with @"
                                 << SymbolTable::getSymbolName(before.op).getValue();
      error.attachNote(before.op->getLoc()) << "that is placed at " << before.at << " here";
      return error;
    }
    return success();
  }

  LogicalResult checkFunctions(ModuleOp module) {
    bool trains = train::lookup(module, train::EntryPoint::TrainStep) != nullptr;
    Sizes used{};
    for (auto &[name, symbol] : symbols)
      grow(used, symbol.at.getSpace(), symbol.padded.end, kOfSymbols);
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue; // lower-to-rt reports it
      bool isAside = trains && train::is(function, train::EntryPoint::Forward);
      Sizes own = limits;
      if (isAside)
        sizeOf(own, Space::Arena) = std::max(forwardArena, sizeOf(limits, Space::Arena));
      FunctionCheck check(function, symbols, own);
      if (failed(check.run()))
        return failure();
      if (!isAside)
        grow(used, Space::Arena, sizeOf(check.used(), Space::Arena), kOfBuffers);
      grow(used, Space::Pinned, sizeOf(check.used(), Space::Pinned), kOfBuffers);
    }
    return checkUse(module, used);
  }

  /// The sizes of the module appear in reports, so they must be exactly those that the program
  /// uses.
  LogicalResult checkUse(ModuleOp module, Sizes used) {
    for (auto [name, space] : kSizes)
      if (sizeOf(used, space) != sizeOf(limits, space))
        return module.emitError() << name << " is " << sizeOf(limits, space)
                                  << ", and the program uses " << sizeOf(used, space)
                                  << " bytes; run plan-memory again after a pass that removes ops";
    return success();
  }

  SymbolSpots symbols;
  Sizes limits{};
  int64_t forwardArena = 0;
};

} // namespace
