// Matches the tensors of a weights file to parameters. Exporters keep the names of a library's
// modules up to a prefix, may transpose matrices, and name a tied tensor by any of its uses. The
// rules, in this order:
//
//   1. the same name
//   2. one name ends in the other, after a dot ("wte.weight", "transformer.wte.weight"); the longest
//      common end first
//   3. among the rest, the only tensor and the only parameter of a shape, unless it is a square
//      matrix, which could be transposed
//
// A parameter that an exporter rearranged by constant folding (Folded in program.h) matches by
// shape only its transpose: if the exporter had not changed it, it would have kept the name. One
// that the exporter computed is loaded only by name, from a checkpoint or a file of
// --dump-parameters.
//
// A matrix may be stored transposed if its shape shows it. Two candidates are an error that names
// them; so is a parameter without one.

#ifndef PARTITA_RT_COMMON_INIT_WEIGHTS_H
#define PARTITA_RT_COMMON_INIT_WEIGHTS_H

#include "common/init/weights_file.h"
#include "partita_rt/program.h"

namespace partita_rt {

struct WeightMatch {
  const std::string *name = nullptr; ///< the tensor's name in the file
  const StoredTensor *tensor = nullptr;
  bool transposed = false;
  bool byShape = false; ///< matched by rule 3
};

/// Returns one match per parameter of the program. Throws Error.
std::vector<WeightMatch> matchWeights(const WeightsFile &file, const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_INIT_WEIGHTS_H
