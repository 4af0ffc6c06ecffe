//===- Races.cpp - see Races.h ----------------------------------------------------------------===//

#include "lib/Overlap/Races.h"
#include "dialects/Pipe/Pipe.h"

using namespace mlir;
using namespace partita;
using namespace partita::overlap;
using analysis::commonByte;

static LogicalResult race(Operation *op, const char *does, const Flight &flight,
                          const char *meanwhile, int64_t byte, rt::Space space) {
  InFlightDiagnostic error = op->emitError();
  error << does << " byte " << byte << " of the " << rt::toString(space) << ", which '"
        << flight.start->getName().getStringRef() << "' on the stream " << flight.stream
        << meanwhile << "; nothing orders the two";
  error.attachNote(flight.start->getLoc())
      << (isa<pipe::SendOp>(flight.start)
              ? "it is sent here, and waited for when this pass runs again"
              : "it starts here and is waited for later");
  return failure();
}

LogicalResult overlap::checkPair(Operation *op, const Accesses &accesses, const Flight &flight) {
  for (const Access &write : accesses.writes) {
    for (const Access &other : flight.accesses.writes)
      if (auto byte = commonByte(write, other))
        return race(op, "writes", flight, " writes as well", *byte, write.space);
    for (const Access &other : flight.accesses.reads)
      if (auto byte = commonByte(write, other))
        return race(op, "writes", flight, " still reads", *byte, write.space);
  }
  for (const Access &read : accesses.reads)
    for (const Access &other : flight.accesses.writes)
      if (auto byte = commonByte(read, other))
        return race(op, "reads", flight, " still writes", *byte, read.space);
  return success();
}
