//===- WeightOptions.cpp - --trainable, --freeze and --tie ------------------------------------===//

#include "lib/Import/Weights/WeightDecider.h"
#include "lib/Import/Weights/WeightNotes.h"
#include "partita/Support/NearestNames.h"

using namespace mlir;

namespace partita::importer {

/// By its name in the file, or that of the only parameter that it comes from.
bool WeightDecider::matches(const NamePattern &pattern, llvm::StringRef name) const {
  llvm::StringRef origin = weights.originOf(name);
  return pattern.match(name) || (!origin.empty() && pattern.match(origin));
}

/// An exact name makes a tensor a parameter, whatever it looks like. A pattern does not cover single
/// numbers and buffers that happen to match: 'onnx::*' matches weights and single factors alike.
bool WeightDecider::isMeant(const NamePattern &pattern, const Tensor &tensor) const {
  const std::string &name = tensor.proto->name();
  Origin::Kind kind = origins.of(name).kind;
  return pattern.isName() || kind == Origin::Parameter || kind == Origin::Derived ||
         (tensor.data.count > 1 && !weights.buffers.contains(name));
}

/// The names of tensors that an option may mean: of those that `mayBe` accepts and the record does not
/// call constants, if there are any. A tensor from one parameter is called so.
llvm::SmallVector<llvm::StringRef>
WeightDecider::namesToSuggest(llvm::function_ref<bool(const Tensor &)> mayBe) const {
  llvm::SmallVector<llvm::StringRef> names;
  for (const std::string &name : order)
    if (mayBe(*known(name)) && origins.of(name).kind != Origin::Constant)
      names.push_back(weights.originOf(name).empty() ? llvm::StringRef(name)
                                                     : weights.originOf(name));
  if (names.empty())
    names.append(order.begin(), order.end());
  llvm::sort(names);
  names.erase(llvm::unique(names), names.end());
  return names;
}

LogicalResult WeightDecider::readTrainable() {
  auto error = [&] { return emitError(file.location()) << "trainable: "; };
  for (const std::string &pattern : options.trainable) {
    llvm::Expected<NamePattern> wanted = NamePattern::parse(pattern);
    if (!wanted)
      return error() << llvm::toString(wanted.takeError());
    const Tensor *other = nullptr;
    bool any = false;
    for (const std::string &name : order) {
      Tensor &tensor = *known(name);
      if (!matches(*wanted, name))
        continue;
      other = other ? other : &tensor;
      bool isTrainable = isFloat(tensor.data.type) && tensor.isRead && tensor.data.count > 0;
      if (!isTrainable || !isMeant(*wanted, tensor))
        continue;
      any = tensor.isParameter = tensor.isDecided = true;
      tensor.isNamed |= wanted->isName();
    }
    if (any)
      continue;
    if (!other)
      return error() << wanted->unmatched("tensor of the model",
                                          namesToSuggest([](const Tensor &tensor) {
                                            return isFloat(tensor.data.type) && tensor.isRead;
                                          }));
    InFlightDiagnostic diagnostic = error() << "tensor " << quoted(other->proto->name());
    if (!isFloat(other->data.type))
      diagnostic << " is of type " << dtypeName(other->data.type) << "; only floats are trained";
    else if (other->data.count == 0)
      diagnostic << " has no elements";
    else if (!other->isRead)
      diagnostic << " is read by no node, so nothing would train it";
    else
      diagnostic << " matches '" << pattern
                 << "', but looks like a constant; its name without wildcards makes it a parameter";
    return diagnostic;
  }
  return success();
}

/// A frozen tensor needs no guess. The objective freezes it, and refuses a pattern that matches no
/// parameter and no constant: here the tensors of branches are not known.
LogicalResult WeightDecider::readFreeze() {
  for (const std::string &pattern : options.freeze) {
    llvm::Expected<NamePattern> wanted = NamePattern::parse(pattern);
    if (!wanted)
      return emitError(file.location()) << "freeze: " << llvm::toString(wanted.takeError());
    bool any = false;
    for (auto &entry : weights.tensors)
      if (matches(*wanted, entry.first()))
        any = entry.second.isDecided = entry.second.isFrozen = true;
    if (!any && failed(checkNotFolded(*wanted, pattern)))
      return failure();
  }
  return success();
}

/// One of the model's parameters that are in the file as a tensor made of several cannot be frozen alone.
LogicalResult WeightDecider::checkNotFolded(const NamePattern &pattern,
                                            llvm::StringRef text) const {
  std::vector<std::string> folded;
  llvm::StringRef parameter;
  for (const std::string &name : order) {
    const std::vector<std::string> &from = origins.of(name).parameters;
    auto match = llvm::find_if(from, [&](const std::string &each) { return pattern.match(each); });
    if (match == from.end() || !known(name)->isRead)
      continue;
    parameter = folded.empty() ? llvm::StringRef(*match) : parameter;
    folded.push_back(name);
  }
  if (folded.empty())
    return success();
  return emitError(file.location())
         << "freeze: " << quoted(text) << " matches parameter " << quoted(parameter)
         << ", which the exporter has folded with others into " << oneOf(folded)
         << " of the file: use --freeze " << quoted(folded.front())
         << " to keep all of them fixed, or "
         << exportUnfolded(weights.exporter, /*hasFoldedNames=*/false);
}

/// By its name in the file, or in the model.
WeightDecider::Tensor *WeightDecider::named(llvm::StringRef name) {
  if (Tensor *tensor = known(name))
    return tensor;
  for (const auto &entry : weights.originals)
    if (entry.second.name == name)
      return known(entry.first());
  return nullptr;
}

LogicalResult WeightDecider::readTies() {
  for (const std::string &pair : options.tie) {
    auto [first, second] = llvm::StringRef(pair).rsplit('=');
    if (failed(tie(first, second)))
      return failure();
  }
  return success();
}

LogicalResult WeightDecider::tie(llvm::StringRef first, llvm::StringRef second) {
  auto error = [&] { return emitError(file.location()) << "tie: "; };
  Tensor *table = named(first), *copy = named(second);
  for (auto [name, tensor] : {std::pair(first, table), std::pair(second, copy)}) {
    if (!tensor)
      return error() << "the model has no tensor " << quoted(name)
                     << nearestNames(name, namesToSuggest([](const Tensor &each) {
                                       return each.isParameter && each.isRead;
                                     }));
    if (!tensor->isParameter || !tensor->isRead)
      return error() << "tensor " << quoted(name)
                     << (tensor->isRead ? " is not a parameter" : " is read by no node");
  }
  if (table == copy)
    return error() << quoted(first) << " and " << quoted(second) << " are one tensor";
  table->isDecided = copy->isDecided = true;
  const std::string &tableName = table->proto->name(), &copyName = copy->proto->name();
  for (const WeightCopy &each : weights.copies) {
    if ((each.name == copyName && each.table == tableName) ||
        (each.name == tableName && each.table == copyName))
      return success(); // they are tied already
    if (each.name == copyName || each.name == tableName)
      return error() << quoted(each.name) << " is tied to " << quoted(each.table)
                     << " already; tie that";
    if (each.table == copyName)
      return error() << quoted(each.name) << " is tied to " << quoted(copyName) << " already; give "
                     << quoted((second + "=" + first).str());
  }
  const Shape &a = table->data.shape, &b = copy->data.shape;
  bool mayBeTransposed = a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
  if (table->data.type != copy->data.type || (a != b && !mayBeTransposed))
    return error() << quoted(first) << " is " << shapeText(a) << " of "
                   << dtypeName(table->data.type) << " and " << quoted(second) << " "
                   << shapeText(b) << " of " << dtypeName(copy->data.type)
                   << ", which is neither the same nor transposed";
  bool hasValues = table->data.place != TensorData::declared;
  if (hasValues != (copy->data.place != TensorData::declared))
    return error() << "the file holds values for only one of " << quoted(first) << " and "
                   << quoted(second) << ", so they cannot be compared";
  std::optional<bool> transposed; // a square matrix may be either
  if (!hasValues)
    transposed = a != b;
  else if (a == b && compareElements(file, table->data, copy->data) != Equality::Different)
    transposed = false;
  else if (compareTransposed(file, table->data, copy->data) != Equality::Different)
    transposed = true;
  if (!transposed)
    return error() << quoted(first) << " and " << quoted(second) << ", both " << shapeText(a)
                   << (mayBeTransposed ? " as they are or transposed" : "")
                   << ", have different values; tied tensors must have equal initial values";
  addCopy(WeightCopy{"", "", *transposed}, copyName, tableName);
  weights.originals.erase(copyName);
  return success();
}

} // namespace partita::importer
