// Inputs/deepspeed_goldens.json: the behavior of DeepSpeed's own schedules and loss scalers.

#ifndef PARTITA_TEST_RUNTIME_GOLDENS_H
#define PARTITA_TEST_RUNTIME_GOLDENS_H

#include "../../runtime/common/json.h"
#include "reference.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace partita_rt {

inline const std::vector<Json> &goldens(const char *key) {
  static const Json file = [] {
    std::stringstream text;
    text << std::ifstream(PARTITA_RT_TEST_INPUTS "/deepspeed_goldens.json").rdbuf();
    return parseJson(text.str());
  }();
  return file.find(key)->items;
}

/// Returns a number; fractions are stored as strings.
inline double numberOf(const Json &text) { return std::atof(text.string.c_str()); }

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_GOLDENS_H
