// The scheduler of a block's threads (simt.cpp), for that of a grid's blocks (grid.cpp). Each operating-system
// thread has its own.

#ifndef PARTITA_TEST_SIMT_BLOCK_H
#define PARTITA_TEST_SIMT_BLOCK_H

#include "simt/simt.h"

namespace simt {

/// Of this thread's launches.
Order order();
/// Returns random bits, by the seed of setOrder.
uint64_t draw();

/// Prepares this thread for blocks of a launch, which all have one shape.
void beginBlocks(const Launch &launch, const std::function<void()> &body);
/// Runs one of them to its end. Throws LaunchError.
void runBlock(uint3 index);

} // namespace simt

#endif // PARTITA_TEST_SIMT_BLOCK_H
