// Which tensor of a weights file is which parameter. Exporters keep the names of a library's
// modules up to a prefix, may transpose matrices, and name a tied tensor by any of its uses. In
// this order:
//
//   1. the same name
//   2. one name ends in the other, after a dot ("wte.weight", "transformer.wte.weight")
//   3. of what is left, the only tensor and the only parameter of a shape, unless it is a square
//      matrix, which could stand transposed
//
// What an exporter's constant folding has made (Folded in program.h) is not what a tensor of the
// model's is, whatever its name or shape: of what it has moved, only the transpose is taken by shape,
// since it would have kept what it does not change; and what it has computed comes by its name from a
// file that a program has written, and from no other.
//
// A matrix may stand transposed, where its shape says so. Two candidates are an error that names
// them; so is a parameter without one.

#ifndef PARTITA_RT_COMMON_WEIGHTS_H
#define PARTITA_RT_COMMON_WEIGHTS_H

#include "common/weights/weights_file.h"
#include "partita_rt/program.h"

namespace partita_rt {

struct WeightMatch {
  const std::string *name = nullptr; ///< the tensor's, in the file
  const StoredTensor *tensor = nullptr;
  bool transposed = false;
  bool byShape = false; ///< by rule 3
};

/// One match per parameter of the program. Throws Error.
std::vector<WeightMatch> matchWeights(const WeightsFile &file, const Program &program);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_WEIGHTS_H
