// A checkpoint of a program whose ranks have different pieces: each rank writes what it has and no
// rank before it, and rank 0, when all have, the index (checkpoint_files.h). Nothing is gathered.
//
// The files of a save are called after its contents, so they replace no other save's; the index
// replaces the earlier one in one moment, and only then the files that it no longer names go. A
// save that is interrupted leaves the earlier checkpoint, and files that the next save removes
// first.

#ifndef PARTITA_RT_COMMON_SHARDS_H
#define PARTITA_RT_COMMON_SHARDS_H

#include "partita_rt/comm.h"

#include <map>
#include <string>

namespace partita_rt {

/// All ranks call it; the folder is there once rank 0 does. Throws Error.
void writeShards(Rank &rank, const std::string &folder,
                 const std::map<std::string, std::string> &metadata);

/// Mixes a text into a hash, which is the same on every machine.
uint64_t mixText(uint64_t hash, const std::string &text);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_SHARDS_H
