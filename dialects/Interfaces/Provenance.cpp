//===- Provenance.cpp - where an op comes from ------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita;

namespace {

struct Fact {
  llvm::StringLiteral name;
  /// Joins the facts of an op's two sources.
  Attribute (*join)(Attribute, Attribute);
};

Attribute first(Attribute a, Attribute) { return a; }

Attribute all(Attribute a, Attribute b) {
  llvm::SetVector<Attribute> members;
  for (Attribute each : {a, b})
    if (auto array = dyn_cast<ArrayAttr>(each))
      members.insert(array.begin(), array.end());
  return ArrayAttr::get(a.getContext(), members.getArrayRef());
}

/// In alphabetical order, like dictionaries.
constexpr Fact kFacts[] = {
    {provenance::kCauses, all},
    {provenance::kBackward, first},
    {provenance::kLayer, first},
};

/// The attributes' names, looked up once per walk.
struct Keys {
  explicit Keys(MLIRContext *context)
      : name(StringAttr::get(context, provenance::kName)),
        argumentNames(StringAttr::get(context, provenance::kArgumentNames)) {
    for (auto [key, fact] : llvm::zip(facts, kFacts))
      key = StringAttr::get(context, fact.name);
  }

  bool isFact(StringAttr key) const { return llvm::is_contained(facts, key); }
  bool isProvenance(StringAttr key) const {
    return isFact(key) || key == name || key == argumentNames;
  }

  StringAttr facts[std::size(kFacts)], name, argumentNames;
};

/// Returns the facts that a location carries itself, or null.
DictionaryAttr carriedBy(Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  return fused ? dyn_cast_or_null<DictionaryAttr>(fused.getMetadata()) : DictionaryAttr();
}

DictionaryAttr join(DictionaryAttr a, DictionaryAttr b) {
  if (!a || !b || a == b)
    return a ? a : b;
  NamedAttrList joined(a);
  for (const Fact &fact : kFacts) {
    Attribute one = a.get(fact.name), other = b.get(fact.name);
    if (one && other)
      joined.set(fact.name, fact.join(one, other));
    else if (other)
      joined.set(fact.name, other);
  }
  return joined.getDictionary(a.getContext());
}

/// Returns the facts of everything fused in a location, or null.
DictionaryAttr factsOf(Location loc) {
  if (DictionaryAttr facts = carriedBy(loc))
    return facts;
  if (auto name = dyn_cast<NameLoc>(loc))
    return factsOf(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return factsOf(call.getCallee());
  DictionaryAttr facts;
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      facts = join(facts, factsOf(part));
  return facts;
}

/// Returns the facts among an op's attributes, or null. Returns `likely` if it is equal, to avoid
/// building another one.
DictionaryAttr factsInAttributes(Operation *op, const Keys &keys, DictionaryAttr likely) {
  SmallVector<NamedAttribute> facts;
  for (NamedAttribute each : op->getRawDictionaryAttrs())
    if (keys.isFact(each.getName()))
      facts.push_back(each);
  if (facts.empty())
    return {};
  return likely && likely.getValue() == ArrayRef(facts)
             ? likely
             : DictionaryAttr::getWithSorted(op->getContext(), facts);
}

/// Returns the location as messages show it.
Location withoutFacts(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return NameLoc::get(name.getName(), withoutFacts(name.getChildLoc()));
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return CallSiteLoc::get(withoutFacts(call.getCallee()), withoutFacts(call.getCaller()));
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused)
    return loc;
  bool carries = carriedBy(loc) != nullptr;
  SmallVector<Location> parts;
  for (Location part : fused.getLocations())
    parts.push_back(withoutFacts(part));
  if (!carries && ArrayRef<Location>(parts) == fused.getLocations())
    return loc;
  return FusedLoc::get(parts, carries ? Attribute() : fused.getMetadata(), loc.getContext());
}

Location withFacts(Location loc, DictionaryAttr facts) {
  return FusedLoc::get({withoutFacts(loc)}, facts, loc.getContext());
}

/// Functions are not part of the model, and terminators belong to the op around them.
bool hasProvenance(Operation *op) {
  return !isa<ModuleOp>(op) && !op->hasTrait<OpTrait::IsTerminator>() &&
         (op->getNumRegions() == 0 || !isa<SymbolOpInterface>(op));
}

/// Replaces the provenance attributes of an op, if they differ.
void replace(Operation *op, const Keys &keys, ArrayRef<NamedAttribute> provenance) {
  size_t same = 0, before = 0;
  for (NamedAttribute each : op->getRawDictionaryAttrs()) {
    bool counts = keys.isProvenance(each.getName());
    before += counts;
    same += counts && llvm::is_contained(provenance, each);
  }
  if (same == before && same == provenance.size())
    return;
  SmallVector<NamedAttribute> changed(provenance);
  for (NamedAttribute each : op->getDiscardableAttrs())
    if (!keys.isProvenance(each.getName()))
      changed.push_back(each);
  op->setDiscardableAttrs(changed);
}

/// Returns the arguments of an op's regions, in order, that may have names in their locations. A
/// function's inputs have attributes of their own.
SmallVector<BlockArgument> namedArguments(Operation *op) {
  SmallVector<BlockArgument> arguments;
  if (!isa<func::FuncOp>(op))
    for (Region &region : op->getRegions())
      llvm::append_range(arguments, region.getArguments());
  return arguments;
}

/// Returns the names of the arguments, or null if there are none. Arguments that are all located
/// like the op are named after it; if others have names, an argument with the op's name has it on
/// purpose.
ArrayAttr argumentNames(Operation *op) {
  SmallVector<StringRef> names;
  SmallVector<BlockArgument> arguments = namedArguments(op);
  bool areNamed = llvm::any_of(arguments, [&](BlockArgument argument) {
    return isa<NameLoc>(argument.getLoc()) && argument.getLoc() != op->getLoc();
  });
  for (BlockArgument argument : arguments)
    names.push_back(
        areNamed && isa<NameLoc>(argument.getLoc()) ? provenance::nameIn(argument.getLoc()) : "");
  bool any = llvm::any_of(names, [](StringRef name) { return !name.empty(); });
  return any ? Builder(op->getContext()).getStrArrayAttr(names) : ArrayAttr();
}

void loadArgumentNames(Operation *op, const Keys &keys) {
  if (op->getNumRegions() == 0)
    return;
  auto names = op->getAttrOfType<ArrayAttr>(keys.argumentNames);
  SmallVector<BlockArgument> arguments = namedArguments(op);
  if (!names || names.size() != arguments.size())
    return;
  for (auto [argument, attribute] : llvm::zip(arguments, names))
    if (auto name = dyn_cast<StringAttr>(attribute);
        name && !name.empty() && provenance::nameIn(argument.getLoc()) != name.getValue())
      argument.setLoc(NameLoc::get(name, argument.getLoc()));
}

/// Loads a name. A parameter is named after its symbol, unless it has another name.
void loadName(Operation *op, const Keys &keys) {
  auto name = op->getRawDictionaryAttrs().getAs<StringAttr>(keys.name);
  if (auto symbol = name ? SymbolOpInterface() : dyn_cast<SymbolOpInterface>(op))
    name = symbol.getNameAttr();
  if (name && !name.empty() && provenance::nameIn(op->getLoc()) != name.getValue())
    op->setLoc(NameLoc::get(name, op->getLoc()));
}

/// Returns the name to store in an attribute, or null. A symbol has its name already.
StringAttr nameToStore(Operation *op, const Keys &keys) {
  auto name = op->getRawDictionaryAttrs().getAs<StringAttr>(keys.name);
  StringRef called = provenance::nameIn(op->getLoc());
  bool stays = called.empty() || (name && name.getValue() == called) || isa<SymbolOpInterface>(op);
  return stays ? name : StringAttr::get(op->getContext(), called);
}

} // namespace

Attribute provenance::get(Location loc, StringRef fact) {
  DictionaryAttr facts = factsOf(loc);
  return facts ? facts.get(fact) : Attribute();
}

Attribute provenance::get(Operation *op, StringRef fact) {
  if (DictionaryAttr facts = factsOf(op->getLoc()))
    return facts.get(fact);
  return op->getDiscardableAttr(fact);
}

Location provenance::with(Location loc, StringRef fact, Attribute value) {
  NamedAttrList facts(factsOf(loc));
  facts.set(fact, value);
  return withFacts(loc, facts.getDictionary(loc.getContext()));
}

void provenance::set(Operation *op, StringRef fact, Attribute value) {
  if (!hasProvenance(op))
    return;
  op->setDiscardableAttr(fact, value);
  op->setLoc(with(op->getLoc(), fact, value));
}

bool provenance::isBackward(Operation *op) { return get(op, kBackward) != nullptr; }

void provenance::markBackward(Block &block) {
  block.walk([](Operation *op) {
    if (!isBackward(op))
      set(op, kBackward, UnitAttr::get(op->getContext()));
  });
}

Location provenance::backward(Location loc) {
  return with(loc, kBackward, UnitAttr::get(loc.getContext()));
}

StringRef provenance::nameIn(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().getValue();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = nameIn(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nameIn(call.getCallee());
  return "";
}

StringRef provenance::nameOf(Operation *op) {
  if (StringRef name = nameIn(op->getLoc()); !name.empty())
    return name;
  auto name = dyn_cast_or_null<StringAttr>(op->getDiscardableAttr(kName));
  return name ? name.getValue() : "";
}

DictionaryAttr provenance::attributesWithout(Operation *op) {
  Keys keys(op->getContext());
  SmallVector<NamedAttribute> without;
  for (NamedAttribute each : op->getAttrDictionary())
    if (!keys.isProvenance(each.getName()))
      without.push_back(each);
  return DictionaryAttr::getWithSorted(op->getContext(), without);
}

/// Gives a terminator the facts of the op around it, so that what is built from it does not depend
/// on what its location said before it was written to a file.
static void loadTerminator(Operation *op, const Keys &keys) {
  Operation *around = op->getParentOp();
  DictionaryAttr said = factsOf(op->getLoc()), facts;
  if (around && hasProvenance(around))
    facts = factsInAttributes(around, keys, said);
  if (said != facts)
    op->setLoc(facts ? withFacts(op->getLoc(), facts) : withoutFacts(op->getLoc()));
}

void provenance::load(Operation *root, bool setAside) {
  Keys keys(root->getContext());
  root->walk([&](Operation *op) {
    loadArgumentNames(op, keys);
    if (op->hasTrait<OpTrait::IsTerminator>())
      loadTerminator(op, keys);
    if (!hasProvenance(op))
      return;
    loadName(op, keys);
    DictionaryAttr said = factsOf(op->getLoc()), facts = factsInAttributes(op, keys, said);
    if (facts && said != facts)
      op->setLoc(withFacts(op->getLoc(), facts));
    if (setAside && !isa<SymbolOpInterface>(op))
      replace(op, keys, {});
  });
}

void provenance::store(Operation *root) {
  Keys keys(root->getContext());
  root->walk([&](Operation *op) {
    ArrayAttr names = argumentNames(op);
    if (!hasProvenance(op)) {
      if (names)
        op->setDiscardableAttr(keys.argumentNames, names);
      return;
    }
    DictionaryAttr facts = factsOf(op->getLoc());
    if (facts && carriedBy(op->getLoc()) != facts) // in its simplest form
      op->setLoc(withFacts(op->getLoc(), facts));
    if (!facts) // unchanged, or of unknown origin
      facts = factsInAttributes(op, keys, {});
    SmallVector<NamedAttribute> all;
    if (facts)
      llvm::append_range(all, facts);
    if (names)
      all.emplace_back(keys.argumentNames, names);
    if (StringAttr name = nameToStore(op, keys))
      all.emplace_back(keys.name, name);
    replace(op, keys, all);
  });
}

void provenance::simplifyLocations(Operation *root) {
  root->walk([](Operation *op) { op->setLoc(withoutFacts(op->getLoc())); });
}
