// Which tensors of a checkpoint a program's parameters and states are read from. They are those of
// the same name, unless the checkpoint is of another --precision. The exact value of a parameter is
// its master where the checkpoint has one, and else the parameter as it is stored there. Then
//
//     a parameter of another type       is the exact value, rounded to the nearest, as a step rounds
//     a master that is not there        is the exact value
//     another optimizer state           is widened or rounded, if it has another type
//     a scalar state that is not there  (a loss scale) starts with its initial value
//     a compressed sum's error          that is not there starts with 0; of workers of another number, each gets an
//                                       equal share of what all of them have not sent yet
//
// and what the program does not need is left out. A parameter that it trains needs its moments: one that
// was frozen has none. A parameter of the same type is read as it is:
// with --stochastic-rounding it is not its master rounded to the nearest.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_SOURCES_H
#define PARTITA_RT_COMMON_CHECKPOINT_SOURCES_H

#include "common/checkpoint/checkpoint_files.h"
#include "partita_rt/program.h"

#include <set>

namespace partita_rt {

/// The metadata key that lists a checkpoint's scalar states, separated by commas: they are no
/// parameters.
constexpr char kScalarStates[] = "scalar_states";

/// Returns the names that the checkpoint lists; none if it is older than the key.
std::set<std::string> scalarStatesIn(const CheckpointFiles &file);
std::set<std::string> scalarStatesIn(const std::map<std::string, std::string> &metadata);

struct Source {
  std::string tensor;           ///< its name in the checkpoint; "": it is not there
  DType dtype = DType::Float32; ///< there
  double initial = 0;           ///< of all elements, if it is not there
  bool mustStayFinite = false;  ///< no element may become infinite by being rounded
  int64_t rows = 0; ///< not 0: the rows whose sum the program's rows take equal shares of
};

class Sources {
public:
  /// Throws Error if the checkpoint lacks a tensor, because its parameter was frozen or else, or has
  /// it with another shape or a type that is not converted. `skippedSteps` are those of the runs so far.
  Sources(const Program &program, const CheckpointFiles &file, int64_t skippedSteps);
  /// Returns the source of the program's tensor of this name.
  const Source &of(const std::string &tensor) const { return all.at(tensor); }
  /// Returns what is converted, starts anew or is left out, in one line; "" if all is read as it is.
  std::string note() const;

private:
  bool hasUnusedMoment(const Parameter &parameter, const std::set<std::string> &states) const;
  void compareTrained();
  std::string masterName(const Parameter &parameter) const;
  Source found(const std::string &tensor, DType wanted, const Shape &shape) const;
  Source ofParameter(const Parameter &parameter);
  Source ofState(const OptimizerState &state, const Parameter &parameter);
  Source ofError(const OptimizerState &state, const Shape &shape);
  bool isError(const OptimizerState &state) const;
  Source ofScalar(const ScalarState &state, int64_t skippedSteps);

  const Program &program;
  const CheckpointFiles &file;
  std::set<std::string> parameters; ///< of the program, by name
  std::map<std::string, Source> all;
  const char *before = "", *now = ""; ///< types of the first trained parameter that is converted
  bool namesTrained = false;          ///< else of a frozen one: no trained one is converted
  /// Parameters converted from masters and from parameters; masters and other states converted.
  int64_t fromMasters = 0, fromParameters = 0, masters = 0, states = 0;
  bool rounds = false;
  std::vector<std::string> startAnew, leftOut; ///< scalar states
  int64_t shared = 0, newErrors = 0,
          oldErrors = 0; ///< of compressed sums: among other ranks, not there, not needed
  std::vector<std::string> nowFrozen; ///< parameters whose moments are left out
};

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_SOURCES_H
