//===- Seeds.cpp - who requested which split --------------------------------------------------===//

#include "lib/Partition/Seeds.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;

void SeedLog::add(const Attempt &attempt, Value parameter, StringAttr axis, StringRef kind,
                  StringRef words) {
  unsigned number = seeds.size();
  Seed &seed = seeds.emplace_back(Seed{axis, kind.str(), words.str(), {}});
  auto note = [&](Value value) {
    if (auto read = value.getDefiningOp<train::ReadOp>())
      if (ofParameter.try_emplace({read.getSymbolAttr().getAttr(), axis}, number).second)
        seed.reads.insert(value);
  };
  note(parameter);
  for (Operation *op : attempt.ops)
    llvm::for_each(op->getOperands(), note);
}

void SeedLog::write(ModuleOp module, const Propagation &propagation) const {
  MLIRContext *context = module.getContext();
  SymbolTable symbols(module);
  for (const Seed &seed : seeds) {
    SmallVector<Attribute> parameters;
    SmallVector<Operation *> split;
    for (Value read : seed.reads) {
      StringRef symbol = read.getDefiningOp<train::ReadOp>().getSymbol();
      int dim = propagation.layoutOf(read).dimOf(seed.axis);
      Operation *parameter = symbols.lookup(symbol);
      if (dim < 0 || !parameter || seedOf(parameter, seed.axis))
        continue;
      split.push_back(parameter);
      parameters.push_back(StringAttr::get(context, symbol + "@" + Twine(dim)));
    }
    auto attribute = par::SeedAttr::get(context, StringAttr::get(context, seed.kind),
                                        StringAttr::get(context, seed.words),
                                        ArrayAttr::get(context, parameters));
    for (Operation *parameter : split) {
      NamedAttrList known(parameter->getAttrOfType<DictionaryAttr>(kSeeds));
      known.set(seed.axis, attribute);
      parameter->setAttr(kSeeds, known.getDictionary(context));
    }
  }
}

par::SeedAttr partita::seedOf(Operation *parameter, StringAttr axis) {
  auto known = parameter->getAttrOfType<DictionaryAttr>(kSeeds);
  return known ? dyn_cast_or_null<par::SeedAttr>(known.get(axis)) : par::SeedAttr();
}
