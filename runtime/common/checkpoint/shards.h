// One save of a checkpoint into a folder. Each rank writes one file: what it has and no lower rank
// has, or, if rank 0 has everything, rank 0 alone. Then rank 0 writes the index, which has the
// checksums of all files' headers (checkpoint_files.h). Nothing is gathered.
//
// The steps are apart, because a thread may write while the rank trains (saver.h): only the
// checksums travel between ranks.

#ifndef PARTITA_RT_COMMON_CHECKPOINT_SHARDS_H
#define PARTITA_RT_COMMON_CHECKPOINT_SHARDS_H

#include "common/checkpoint/checkpoint_files.h"
#include "partita_rt/comm.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace partita_rt {

/// Host memory in which a rank keeps what it is writing. It stays allocated between saves.
class SaveBuffer {
public:
  /// Returns at least so many bytes, undefined. Throws std::bad_alloc.
  char *reserve(int64_t bytes);
  /// Writes to every page, until `stopped`: the system only then finds and clears memory, which takes
  /// longer than a copy.
  void touch(const std::atomic<bool> &stopped);
  int64_t size() const { return held; }

private:
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory;
  int64_t held = 0;
};

class ShardSave {
public:
  /// `metadata` are those of the checkpoint. copy() copies what this rank writes into `copies`, unless
  /// it is null: then write() reads the rank's own memory. All ranks give the same metadata.
  ShardSave(const Rank &rank, const std::string &folder,
            const std::map<std::string, std::string> &metadata, SaveBuffer *copies);
  ShardSave(const ShardSave &) = delete;
  ShardSave &operator=(const ShardSave &) = delete;

  /// Bytes that this rank writes, without headers.
  int64_t bytes() const;
  /// Bytes that all ranks write.
  int64_t checkpointBytes() const;
  enum class By { Rank, Thread };
  /// Copies, and returns when everything is copied. Several threads may call it at once, and share the
  /// work. Throws Error soon after stop() has been called. By::Thread: not the rank's own, so that it
  /// runs only where the host reads the rank's memory.
  void copy(By who);
  /// Writes this rank's file, if it has one; the folder exists, and copy() has returned. Throws Error,
  /// also soon after stop() has been called, and if what it writes is not as expect() says.
  void write();
  void stop() { stopped = true; }
  /// write() is to fail unless these tensors, by name, still have these hashes (partita_rt/replica_hash.h) of their
  /// elements without padding: what other ranks have was compared by them. Call it before write().
  void expect(std::map<std::string, uint64_t> hashes) { expected = std::move(hashes); }
  /// Returns the checksum of the header of the file written; 0 if this rank has none.
  uint32_t checksum() const { return headerChecksum; }
  /// Writes the index when all files exist. Rank 0 calls it with the checksums of all ranks. Throws
  /// Error.
  void writeIndex(const std::vector<int64_t> &checksums) const;
  /// Removes this rank's file.
  void discard() const;

private:
  /// The data of one shard that this rank writes.
  struct Part {
    TensorShard shard;
    Slices slices;
    std::vector<Run> runs;        ///< set only if it has padding; else it is written as in memory
    const char *copied = nullptr; ///< null: in the rank's memory
    int64_t bytes() const { return slices.elements() * sizeOf(shard.dtype); }
  };
  /// The contents of all ranks' files, which every rank can compute.
  struct Contents {
    std::vector<int> writers; ///< ranks with a file, in the order of the files
    std::vector<std::pair<std::string, LogicalTensor>> tensors;
  };
  /// Bytes of a part from a byte of one of its runs on: as many as are copied at once.
  struct Chunk {
    const Part *part;
    size_t run;
    int64_t at, bytes;
    char *to;
  };
  void findParts(const std::vector<TensorShard> &shards);
  void planCopy(SaveBuffer &copies);
  void planCopy(const Part &part, char *to);
  void copyChunk(const Chunk &chunk) const;
  void pack(const Part &part, char *to) const;
  void checkStopped() const;
  void checkHash(const Part &part, const char *data) const;
  static Contents contentsOf(const Program &program, const std::vector<TensorShard> &shards,
                             int ranks);
  std::string nameOf(size_t file) const;
  int64_t ownFile() const;

  const Rank &rank;
  std::string folder;
  std::map<std::string, std::string> metadata;
  bool sharded;
  std::vector<Part> parts;
  Contents contents;
  std::map<std::string, uint64_t> expected;
  uint32_t headerChecksum = 0;
  std::atomic<bool> stopped{false};

  std::vector<Chunk> chunks;
  std::atomic<size_t> nextChunk{0};
  std::mutex copying;
  std::condition_variable chunkCopied;
  size_t copied = 0; ///< chunks; guarded by `copying`
};

/// Called before each chunk that a thread copies beside the training. Programs do not have it: the pointer is
/// then null. Tests link one that takes its time, so that the rank copies the other chunks.
[[gnu::weak]] void beforeThreadCopies();

/// Returns a hash of metadata that is the same on every machine.
uint64_t hashOf(const std::map<std::string, std::string> &metadata);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_CHECKPOINT_SHARDS_H
