//===- Groups.cpp - groups of parameters with their own hyperparameters -----------------------===//

#include "lib/Optimizer/Groups.h"
#include "dialects/Train/Train.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace partita;
using namespace partita::optimizer;

FailureOr<Groups> Groups::parse(ModuleOp module, ArrayRef<std::string> texts) {
  Groups groups;
  for (const std::string &text : texts) {
    auto refuse = [&](const Twine &why) {
      return module.emitError() << "group '" << text << "': " << why;
    };
    SmallVector<StringRef> parts;
    StringRef(text).split(parts, ':');
    if (parts.size() < 2 || parts[0].empty())
      return refuse("expected PATTERN:weight-decay=W or PATTERN:lr-scale=S");
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(parts[0]);
    if (!pattern)
      return refuse(llvm::toString(pattern.takeError()));
    Row row{text, std::move(*pattern), {}, {}};
    for (StringRef part : ArrayRef(parts).drop_front()) {
      auto [key, number] = part.split('=');
      std::optional<double> *target = key == "weight-decay" ? &row.decay
                                      : key == "lr-scale"   ? &row.rateScale
                                                            : nullptr;
      if (!target)
        return refuse("'" + key + "' is neither weight-decay nor lr-scale");
      double value;
      if (number.getAsDouble(value) || !std::isfinite(value) || value < 0)
        return refuse("'" + number + "' is not a number from 0 on");
      if (*target)
        return refuse(key + " is given twice");
      *target = value;
    }
    groups.rows.push_back(std::move(row));
  }
  return groups;
}

const Groups::Row *Groups::find(StringRef name) const {
  for (const Row &row : rows)
    if (row.pattern.match(name))
      return &row;
  return nullptr;
}

LogicalResult Groups::checkUse(ModuleOp module) const {
  std::set<const Row *> used;
  module.walk([&](train::UpdateOp update) {
    if (auto parameter = module.lookupSymbol<train::ParameterOp>(update.getParameter()))
      used.insert(find(parameter.getModelName()));
  });
  for (const Row &row : rows)
    if (!used.count(&row))
      return module.emitError() << "group '" << row.text
                                << "' has no parameter that is trained and belongs to no group "
                                   "before it";
  return success();
}

Group Groups::of(StringRef name, Group rest) const {
  const Row *row = find(name);
  return row ? Group{row->decay.value_or(rest.decay), row->rateScale.value_or(rest.rateScale)}
             : rest;
}

bool Groups::setDecay(StringRef name) const {
  const Row *row = find(name);
  return row && row->decay;
}
