// Names of optimizer states: "w.m" is the state `m` of parameter "w". If the model has a parameter
// of that name, ".state" is inserted: "w.state.m". A name depends only on the model's parameters,
// so it is the same under every plan. The compiler makes these names, and readers of checkpoints
// find masters by them, so this header includes no other header of the runtime.

#ifndef PARTITA_RT_STATE_NAMES_H
#define PARTITA_RT_STATE_NAMES_H

#include <string>

namespace partita_rt {

constexpr char kStateEnding[] = ".state";
constexpr char kMaster[] = "master";
/// What a compressed sum has left out so far, of the rank as a worker and as a server (one_bit.h).
constexpr char kWorkerError[] = "worker";
constexpr char kServerError[] = "server";
/// The scalar state of programs of --precision fp8.
constexpr char kFp8Maxima[] = "fp8.maxima";

/// Names a state. isParameter(name) says whether the model has a parameter of this name. States of
/// a parameter "w.state" never have names that belong to another parameter.
template <typename IsParameter>
std::string stateName(const std::string &parameter, const std::string &kind,
                      IsParameter isParameter) {
  std::string owner = parameter;
  while (isParameter(owner + "." + kind) || (owner != parameter && isParameter(owner)))
    owner += kStateEnding;
  return owner + "." + kind;
}

/// Is this, by its name, a state of another tensor in a file of parameters and states? has(name) says
/// whether the file has a tensor.
template <typename Has> bool isStateOfAnother(const std::string &name, Has has) {
  size_t dot = name.rfind('.'), ending = sizeof(kStateEnding) - 1;
  std::string owner = name.substr(0, dot);
  if (dot == name.npos)
    return false;
  while (!has(owner)) {
    if (owner.size() < ending || owner.compare(owner.size() - ending, ending, kStateEnding) != 0)
      return false;
    owner.resize(owner.size() - ending);
  }
  return true;
}

/// Returns the name of the parameter's master in a file of parameters and states; "" if there is
/// none. has(name) says whether the file has a tensor. The master has the last of its possible
/// names that exists: those before it are parameters.
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
