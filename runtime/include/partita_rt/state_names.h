// What a parameter's optimizer state is called: "w.m", the state `m` of parameter "w". Where the model
// has a parameter of that name, ".state" comes in between: "w.state.m". A name depends on nothing but
// the model's parameters, so every plan calls a state the same. The compiler gives the names; who
// reads a checkpoint finds masters by them: this header stands for itself.

#ifndef PARTITA_RT_STATE_NAMES_H
#define PARTITA_RT_STATE_NAMES_H

#include <string>

namespace partita_rt {

constexpr char kStateEnding[] = ".state";
constexpr char kMaster[] = "master";

/// isParameter(name) says whether the model has a parameter of this name. A parameter "w.state" has
/// states of its own, which are no other's.
template <typename IsParameter>
std::string stateName(const std::string &parameter, const std::string &kind,
                      IsParameter isParameter) {
  std::string owner = parameter;
  while (isParameter(owner + "." + kind) || (owner != parameter && isParameter(owner)))
    owner += kStateEnding;
  return owner + "." + kind;
}

/// The parameter's master in a file of parameters and their states, by what has(name) says of the
/// file; "" if there is none. Of all names that it may have it is the last: each one before it is a
/// parameter's.
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
