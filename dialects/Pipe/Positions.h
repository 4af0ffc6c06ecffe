//===- Positions.h - the order of a model's chunks over its stages ------------------*- C++ -*-===//

#ifndef PARTITA_DIALECTS_PIPE_POSITIONS_H
#define PARTITA_DIALECTS_PIPE_POSITIONS_H

#include <cstdint>

namespace partita::pipe {

/// How stages and chunks are numbered. Each stage has one or several chunks, contiguous ranges of
/// layers. Positions number the chunks of all stages in the order of the model: chunk c of stage s
/// has position c * stages + s. In a wave every other row of positions runs backward, so that the
/// last position of a row and the first one of the next are on the same stage.
struct Positions {
  int64_t stages = 1, chunks = 1; ///< chunks per stage
  bool isWave = false;

  int64_t count() const { return stages * chunks; }
  int64_t at(int64_t stage, int64_t chunk) const { return chunk * stages + inRow(stage, chunk); }
  int64_t stageOf(int64_t position) const { return inRow(position % stages, chunkOf(position)); }
  int64_t chunkOf(int64_t position) const { return position / stages; }
  bool operator==(const Positions &other) const {
    return stages == other.stages && chunks == other.chunks && isWave == other.isWave;
  }
  bool operator!=(const Positions &other) const { return !(*this == other); }

private:
  /// Returns a stage's place in a row, or the stage at a place.
  int64_t inRow(int64_t place, int64_t row) const {
    return isWave && row % 2 == 1 ? stages - 1 - place : place;
  }
};

} // namespace partita::pipe

#endif // PARTITA_DIALECTS_PIPE_POSITIONS_H
