// Decides by names and types which tensor is read from which (sources.h).

#include "common/checkpoint/sources.h"

#include "common/grouped.h"
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

std::set<std::string> scalarStatesIn(const CheckpointFiles &file) {
  std::set<std::string> names;
  auto entry = file.metadata().find(kScalarStates);
  std::string rest = entry == file.metadata().end() ? "" : entry->second;
  for (size_t end; !rest.empty(); rest.erase(0, end == rest.npos ? end : end + 1)) {
    end = rest.find(',');
    names.insert(rest.substr(0, end));
  }
  return names;
}

Sources::Sources(const Program &program, const CheckpointFiles &file, int64_t skippedSteps)
    : file(file) {
  for (const Parameter &parameter : program.parameters)
    parameters.insert(parameter.name);
  for (const Parameter &parameter : program.parameters)
    all[parameter.name] = ofParameter(parameter);
  for (const OptimizerState &state : program.optimizerStates)
    all[state.name] = ofState(state, program.parameters[state.parameter]);
  for (const ScalarState &state : program.scalarStates)
    all[state.name] = ofScalar(state, skippedSteps);
  for (const std::string &name : scalarStatesIn(file))
    if (!all.count(name))
      leftOut.push_back(name);
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
  if (fromMasters + fromParameters == 0) {
    before = nameOf(own.dtype);
    now = nameOf(parameter.dtype);
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

Source Sources::ofState(const OptimizerState &state, const Parameter &parameter) {
  if (state.name == masterName(parameter) && !file.tensors().count(state.name)) {
    ++masters;
    return found(parameter.name, state.dtype, parameter.globalShape);
  }
  Source own = found(state.name, state.dtype, parameter.globalShape);
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
    types = std::string(" has parameters in ") + before + ", this program in " + now;
  if (masters > 0)
    parts.push_back(counted(masters, "master") + " taken from its parameters");
  if (fromMasters > 0)
    parts.push_back(counted(fromMasters, "parameter") + " taken from its masters" +
                    (rounds ? ", rounded" : ""));
  if (fromParameters > 0)
    parts.push_back(counted(fromParameters, "parameter") + (rounds ? " rounded" : " widened"));
  if (states > 0)
    parts.push_back(counted(states, "optimizer state") + " converted");
  if (!startAnew.empty())
    parts.push_back((startAnew.size() == 1 ? "starts anew: " : "start anew: ") +
                    joined(startAnew, ", "));
  if (!leftOut.empty())
    parts.push_back("left out: " + joined(leftOut, ", "));
  return parts.empty() ? "" : file.path() + types + ": " + joined(parts, "; ");
}

} // namespace partita_rt
