// Decides by names and types which tensor is read from which (sources.h).

#include "common/checkpoint/sources.h"

#include "common/grouped.h"
#include "common/tensors/tensor_shards.h"
#include "partita_rt/state_names.h"

namespace partita_rt {

namespace {

std::string joined(const std::vector<std::string> &parts, const char *separator) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : separator) + part;
  return text;
}

std::string counted(int64_t count, const std::string &one) {
  return grouped(count) + " " + one + (count == 1 ? "" : "s");
}

} // namespace

/// "'a', 'b', 'c' and 5 others".
static std::string quotedNames(const std::vector<std::string> &names) {
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i)
    text += (i == 0 ? "'" : i + 1 == names.size() ? " and '" : ", '") + names[i] + "'";
  return names.size() > kMost ? text + " and " + counted(int64_t(names.size() - kMost), "other")
                              : text;
}

std::set<std::string> scalarStatesIn(const std::map<std::string, std::string> &metadata) {
  std::set<std::string> names;
  auto entry = metadata.find(kScalarStates);
  std::string rest = entry == metadata.end() ? "" : entry->second;
  for (size_t end; !rest.empty(); rest.erase(0, end == rest.npos ? end : end + 1)) {
    end = rest.find(',');
    names.insert(rest.substr(0, end));
  }
  return names;
}

std::set<std::string> scalarStatesIn(const CheckpointFiles &file) {
  return scalarStatesIn(file.metadata());
}

Sources::Sources(const Program &program, const CheckpointFiles &file, int64_t skippedSteps)
    : program(program), file(file) {
  for (const Parameter &parameter : program.parameters)
    parameters.insert(parameter.name);
  compareTrained();
  for (const Parameter &parameter : program.parameters)
    all[parameter.name] = ofParameter(parameter);
  for (const OptimizerState &state : program.optimizerStates)
    all[state.name] = ofState(state, program.parameters[state.parameter]);
  for (const ScalarState &state : program.scalarStates)
    all[state.name] = ofScalar(state, skippedSteps);
  for (const std::string &name : scalarStatesIn(file))
    if (!all.count(name))
      leftOut.push_back(name);
  for (const Parameter &parameter : program.parameters)
    for (const char *kind : {kWorkerError, kServerError}) {
      std::string name = stateName(parameter.name, kind, [this](const std::string &other) {
        return parameters.count(other) > 0;
      });
      oldErrors += file.tensors().count(name) && !all.count(name);
    }
}

/// Has the checkpoint a moment of a parameter that is none of these states?
bool Sources::hasUnusedMoment(const Parameter &parameter,
                              const std::set<std::string> &states) const {
  std::string owner = std::string(parameter.name) + ".";
  for (auto entry = file.tensors().lower_bound(owner);
       entry != file.tensors().end() && entry->first.rfind(owner, 0) == 0; ++entry) {
    std::string kind = entry->first.substr(owner.size()), inserted = kStateEnding + 1;
    while (kind.rfind(inserted + ".", 0) == 0)
      kind.erase(0, inserted.size() + 1);
    if (kind.find('.') == kind.npos && entry->second.shape == parameter.globalShape &&
        !parameters.count(entry->first) && !states.count(entry->first) &&
        entry->first != masterName(parameter))
      return true;
  }
  return false;
}

/// Compares which parameters are trained with which had moments when the checkpoint was saved. Throws
/// Error if the program needs moments that the checkpoint cannot have.
void Sources::compareTrained() {
  std::set<std::string> states = scalarStatesIn(file);
  for (const OptimizerState &state : program.optimizerStates)
    states.insert(state.name);
  for (const Parameter &parameter : program.parameters)
    if (!parameter.trainable && hasUnusedMoment(parameter, states))
      nowFrozen.push_back(parameter.name);
  std::vector<int> has(size_t(program.parameters.size())), lacks(has.size());
  std::string first;
  bool hasAny = !nowFrozen.empty();
  for (const OptimizerState &state : program.optimizerStates) {
    if (state.name == masterName(program.parameters[state.parameter]) || isError(state))
      continue;
    bool isThere = file.tensors().count(state.name) > 0;
    ++(isThere ? has : lacks)[size_t(state.parameter)];
    hasAny |= isThere;
    if (!isThere && first.empty())
      first = state.name;
  }
  std::vector<std::string> wereFrozen;
  for (size_t i = 0; i < has.size(); ++i)
    if (lacks[i] > 0 && has[i] == 0)
      wereFrozen.push_back(program.parameters[int64_t(i)].name);
  if (hasAny && !wereFrozen.empty())
    fail("--resume: %s %s trained by this program, and %s frozen when %s was saved, which has no "
         "moments of %s ('%s'); compile with the --freeze of that run, or start anew from its "
         "parameters by --init with its folder",
         quotedNames(wereFrozen).c_str(), wereFrozen.size() == 1 ? "is" : "are",
         wereFrozen.size() == 1 ? "was" : "were", file.path().c_str(),
         wereFrozen.size() == 1 ? "it" : "them", first.c_str());
}

/// Names a parameter's master as the compiler does, so that the program need not have one.
std::string Sources::masterName(const Parameter &parameter) const {
  return stateName(parameter.name, kMaster,
                   [this](const std::string &name) { return parameters.count(name) > 0; });
}

/// Returns a tensor that has this type, or one that converts to it.
Source Sources::found(const std::string &tensor, DType wanted, const Shape &shape) const {
  auto entry = file.tensors().find(tensor);
  bool converts =
      entry != file.tensors().end() && isStoredFloat(entry->second.dtype) && isStoredFloat(wanted);
  return {tensor, file.get(tensor, converts ? entry->second.dtype : wanted, shape).dtype};
}

Source Sources::ofParameter(const Parameter &parameter) {
  Source own = found(parameter.name, parameter.dtype, parameter.globalShape);
  if (own.dtype == parameter.dtype)
    return own;
  // What is frozen may have a type of its own: it says less of the precision.
  if (fromMasters + fromParameters == 0 || (parameter.trainable && !namesTrained)) {
    before = nameOf(own.dtype);
    now = nameOf(parameter.dtype);
    namesTrained = parameter.trainable;
  }
  rounds |= parameter.dtype != DType::Float32;
  std::string master = masterName(parameter);
  bool hasMaster = file.tensors().count(master) > 0;
  ++(hasMaster ? fromMasters : fromParameters);
  if (hasMaster)
    own = found(master, DType::Float32, parameter.globalShape);
  own.mustStayFinite = parameter.trainable; // what is not trained may be infinite: a mask
  return own;
}

/// Is it what a compressed sum has left out? Its name says so, as the compiler makes it.
bool Sources::isError(const OptimizerState &state) const {
  for (const char *kind : {kWorkerError, kServerError})
    if (state.name ==
        stateName(program.parameters[state.parameter].name, kind,
                  [this](const std::string &name) { return parameters.count(name) > 0; }))
      return true;
  return false;
}

Source Sources::ofError(const OptimizerState &state, const Shape &shape) {
  auto entry = file.tensors().find(state.name);
  if (entry == file.tensors().end()) {
    ++newErrors;
    return {"", state.dtype};
  }
  Shape there = shape;
  if (state.rows > 0 && entry->second.shape.rank == shape.rank)
    there.dims[0] = entry->second.shape.dims[0]; // of the ranks that have saved it
  Source own = found(state.name, state.dtype, there);
  if (there != shape) {
    own.rows = there.dims[0];
    ++shared;
  }
  return own;
}

Source Sources::ofState(const OptimizerState &state, const Parameter &parameter) {
  if (state.name == masterName(parameter) && !file.tensors().count(state.name)) {
    ++masters;
    return found(parameter.name, state.dtype, parameter.globalShape);
  }
  if (isError(state))
    return ofError(state, fullShape(state, parameter.globalShape));
  Source own = found(state.name, state.dtype, fullShape(state, parameter.globalShape));
  states += own.dtype != state.dtype;
  return own;
}

Source Sources::ofScalar(const ScalarState &state, int64_t skippedSteps) {
  if (file.tensors().count(state.name))
    return {state.name, file.get(state.name, state.dtype, state.shape).dtype};
  if (state.countsSkipped)
    return {"", state.dtype, double(skippedSteps)};
  startAnew.push_back(state.name);
  return {"", state.dtype, state.initial};
}

std::string Sources::note() const {
  std::string types;
  std::vector<std::string> parts;
  if (fromMasters + fromParameters > 0)
    types = std::string(namesTrained ? " has parameters in " : " has frozen parameters in ") +
            before + (scalarStatesIn(file).count(kFp8Maxima) ? " (fp8)" : "") +
            ", this program in " + now + (all.count(kFp8Maxima) ? " (fp8)" : "");
  if (masters > 0)
    parts.push_back(counted(masters, "master") + " taken from its parameters");
  if (fromMasters > 0)
    parts.push_back(counted(fromMasters, "parameter") + " taken from its masters" +
                    (rounds ? ", rounded" : ""));
  if (fromParameters > 0)
    parts.push_back(counted(fromParameters, "parameter") + (rounds ? " rounded" : " widened"));
  if (states > 0)
    parts.push_back(counted(states, "optimizer state") + " converted");
  if (shared > 0)
    parts.push_back(counted(shared, "error") +
                    " of compressed sums shared among another number of ranks");
  if (newErrors > 0)
    parts.push_back(counted(newErrors, "error") + " of compressed sums begin with 0");
  if (oldErrors > 0)
    parts.push_back("left out: " + counted(oldErrors, "error") + " of compressed sums");
  if (!startAnew.empty())
    parts.push_back((startAnew.size() == 1 ? "starts anew: " : "start anew: ") +
                    joined(startAnew, ", "));
  if (!leftOut.empty())
    parts.push_back("left out: " + joined(leftOut, ", "));
  if (!nowFrozen.empty())
    parts.push_back("left out: the moments of " + quotedNames(nowFrozen) +
                    ", frozen in this program");
  return parts.empty() ? "" : file.path() + types + ": " + joined(parts, "; ");
}

} // namespace partita_rt
