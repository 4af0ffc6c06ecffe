// Messages for invalid indices (stream.h), those of the CPU's kernels.

#include "partita_rt/cuda/stream.h"

namespace partita_rt::cuda {

void check(const Fault &fault) {
  auto value = (long long)fault.value, at = (long long)fault.position;
  auto last = (long long)fault.bound - 1;
  switch (fault.kind) {
  case Fault::EmbeddingId:
    fail(
        "embedding: index %lld at position %lld (of this rank) is outside 0 .. %lld, the rows of the table",
        value, at, last);
  case Fault::TakeIndex:
    fail("take: index %lld at position %lld of table %lld is outside 0 .. %lld", value, at,
         (long long)fault.table, last);
  case Fault::Label:
    fail("cross-entropy: label %lld of row %lld is outside 0 .. %lld", value, at, last);
  case Fault::Document:
    fail("documents: id %lld of sequence %lld comes back at position %lld, after another "
         "document; compile with --recurring-documents if that is meant",
         value, (long long)fault.table, at);
  default:
    return;
  }
}

} // namespace partita_rt::cuda
