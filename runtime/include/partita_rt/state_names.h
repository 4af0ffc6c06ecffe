// Names of optimizer states: "w.m" is the state `m` of parameter "w". If the model has a parameter of
// that name, ".state" comes in between: "w.state.m". A name depends only on the model's parameters, so
// it is the same under every plan. The compiler gives the names, and readers of checkpoints find
// masters by them, so this header includes no other of the runtime's.

#ifndef PARTITA_RT_STATE_NAMES_H
#define PARTITA_RT_STATE_NAMES_H

#include <string>

namespace partita_rt {

constexpr char kStateEnding[] = ".state";
constexpr char kMaster[] = "master";

/// isParameter(name) says whether the model has a parameter of this name. The states of a parameter
/// "w.state" have no other parameter's names.
template <typename IsParameter>
std::string stateName(const std::string &parameter, const std::string &kind,
                      IsParameter isParameter) {
  std::string owner = parameter;
  while (isParameter(owner + "." + kind) || (owner != parameter && isParameter(owner)))
    owner += kStateEnding;
  return owner + "." + kind;
}

/// The name of the parameter's master in a file of parameters and states; has(name) says whether the file
/// has a tensor. "" if there is none. Of all its possible names it is the last: those before it are
/// parameters.
template <typename Has> std::string masterIn(const std::string &parameter, Has has) {
  std::string found;
  for (std::string owner = parameter;; owner += kStateEnding) {
    bool isOther = owner != parameter && has(owner), hasMaster = has(owner + "." + kMaster);
    if (!isOther && !hasMaster)
      return found;
    if (!isOther)
      found = owner + "." + kMaster;
  }
}

} // namespace partita_rt

#endif // PARTITA_RT_STATE_NAMES_H
