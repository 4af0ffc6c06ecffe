// Types that NCCL moves and reduces, among those that runtime/cuda/ranks asks for, so that the
// simulated NCCL and its caller do not both rest on one reading of its documentation.
//
// Source: nccl.h of NCCL 2.28.9, ncclDataType_t; NCCL's user guide of the same release, API, Types:
// each with its bytes, and all can be reduced by ncclSum and ncclMax. The guide's other two,
// ncclFloat8e4m3 and ncclFloat8e5m2 (sm_90 and later), are not used: operands in 8 bits stay on
// their rank.

#ifndef PARTITA_TEST_SIMULATED_NCCL_TYPES_H
#define PARTITA_TEST_SIMULATED_NCCL_TYPES_H

#include <nccl.h>

#include <cstddef>

namespace simulated {

struct NcclType {
  ncclDataType_t type;
  size_t bytes;
};

constexpr NcclType kNcclTypes[] = {
    {ncclInt8, 1},   {ncclUint8, 1},   {ncclInt32, 4},   {ncclUint32, 4},  {ncclInt64, 8},
    {ncclUint64, 8}, {ncclFloat16, 2}, {ncclFloat32, 4}, {ncclFloat64, 8}, {ncclBfloat16, 2},
};

/// Returns an element's bytes; 0: NCCL has no such type here.
constexpr size_t bytesOfNccl(int type) {
  for (const NcclType &row : kNcclTypes)
    if (row.type == type)
      return row.bytes;
  return 0;
}

} // namespace simulated

#endif // PARTITA_TEST_SIMULATED_NCCL_TYPES_H
