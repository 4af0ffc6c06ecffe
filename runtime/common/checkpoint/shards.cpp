// Every rank writes its shards, rank 0 the index (shards.h).

#include "common/checkpoint/shards.h"

#include "common/mesh/mesh.h"
#include "common/target.h"
#include "partita_rt/checksum.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/replica_hash.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

uint64_t hashOf(const std::map<std::string, std::string> &metadata) {
  uint64_t hash = 0;
  for (const auto &[key, value] : metadata) {
    std::string text = key + "=" + value;
    auto *bytes = reinterpret_cast<const unsigned char *>(text.data());
    int64_t size = int64_t(text.size());
    hash = (hash ^ fingerprint(bytes, size, size)) * 0x9E3779B97F4A7C15u;
  }
  return hash;
}

char *SaveBuffer::reserve(int64_t bytes) {
  if (bytes > held) {
    memory.reset(); // first, so that the two never exist at once
    held = 0;
    // Huge pages, if the system has them: each is touched a first time.
    constexpr int64_t kHugePage = 2 << 20;
    int64_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    memory.reset(static_cast<char *>(std::aligned_alloc(kHugePage, size_t(rounded))));
    if (!memory)
      throw std::bad_alloc();
    madvise(memory.get(), size_t(rounded), MADV_HUGEPAGE);
    held = bytes;
  }
  return memory.get();
}

void SaveBuffer::touch(const std::atomic<bool> &stopped) {
  constexpr int64_t kPage = 4096;
  for (int64_t at = 0; at < held && !stopped; at += kPage)
    *const_cast<volatile char *>(memory.get() + at) = 0;
}

namespace {

/// Bytes that are written between two looks at whether to stop.
constexpr int64_t kWriteBytes = 8 << 20;
/// Bytes that are copied at once: training waits no longer than for these where another thread, of
/// lower priority, has begun with them.
constexpr int64_t kCopyBytes = 1 << 20;

} // namespace

ShardSave::ShardSave(const Rank &rank, const std::string &folder,
                     const std::map<std::string, std::string> &metadata, SaveBuffer *copies)
    : rank(rank), folder(folder), metadata(metadata), sharded(isSharded(*rank.program)) {
  this->metadata["format"] = sharded ? kShardedFormat : kUnshardedFormat;
  if (sharded) // two runs' saves of a step may share the name; the index's checksums tell files apart
    this->metadata["save"] = fingerprintText(hashOf(metadata));
  std::vector<TensorShard> shards = persistentShards(rank);
  contents = contentsOf(*rank.program, shards, rank.ranks);
  findParts(shards);
  if (copies)
    planCopy(*copies);
}

void ShardSave::findParts(const std::vector<TensorShard> &shards) {
  for (const TensorShard &shard : shards) {
    if (!isFirstOwner(*rank.program, rank.coordinates, shard.splits, shard.stages))
      continue;
    Part part{shard, slicesOf(*rank.program, rank.coordinates, shard.global, shard.splits), {}};
    if (part.slices.elements() == 0 && sharded)
      continue;
    if (part.slices.elements() != shard.local.elements())
      part.runs = runsOf(rank, shard.global, shard.splits);
    parts.push_back(std::move(part));
  }
}

int64_t ShardSave::checkpointBytes() const {
  int64_t sum = 0;
  for (const auto &[name, tensor] : contents.tensors)
    sum += tensor.shape.elements() * sizeOf(tensor.dtype);
  return sum;
}

int64_t ShardSave::bytes() const {
  int64_t total = 0;
  for (const Part &part : parts)
    total += part.bytes();
  return total;
}

void ShardSave::planCopy(SaveBuffer &copies) {
  char *to = copies.reserve(bytes());
  for (Part &part : parts) {
    part.copied = to;
    planCopy(part, to);
    to += part.bytes();
  }
}

/// Where the host does not read in place, a part is read at once.
void ShardSave::planCopy(const Part &part, char *to) {
  int64_t most = deviceIsHost() ? kCopyBytes : part.bytes(), width = sizeOf(part.shard.dtype);
  const size_t runs = std::max(part.runs.size(), size_t(1));
  Chunk chunk{&part, 0, 0, 0, to};
  auto end = [&](size_t run, int64_t at) {
    if (chunk.bytes > 0)
      chunks.push_back(chunk);
    chunk = {&part, run, at, 0, chunk.to + chunk.bytes};
  };
  for (size_t run = 0; run < runs; ++run) {
    int64_t size = part.runs.empty() ? part.bytes() : part.runs[run].count * width;
    for (int64_t at = 0; at < size;) {
      int64_t some = std::min(size - at, most - chunk.bytes);
      chunk.bytes += some;
      at += some;
      if (chunk.bytes == most)
        end(run, at);
    }
  }
  end(0, 0);
}

void ShardSave::copyChunk(const Chunk &chunk) const {
  const Part &part = *chunk.part;
  if (part.runs.empty())
    return readDevice(rank, chunk.to, static_cast<const char *>(part.shard.data) + chunk.at,
                      chunk.bytes);
  int64_t width = sizeOf(part.shard.dtype);
  HostView held(rank, part.shard.data, part.shard.local.elements() * width);
  char *to = chunk.to, *end = chunk.to + chunk.bytes;
  int64_t at = chunk.at;
  for (size_t i = chunk.run; to < end; ++i, at = 0) {
    const Run &run = part.runs[i];
    int64_t bytes = std::min(run.count * width - at, int64_t(end - to));
    std::memcpy(to, held.data() + run.local * width + at, size_t(bytes));
    to += bytes;
  }
}

void ShardSave::checkStopped() const {
  if (stopped)
    fail("the save was stopped");
}

void ShardSave::copy(By who) {
  while (true) {
    checkStopped();
    size_t next = nextChunk++;
    if (next >= chunks.size())
      break;
    if (who == By::Thread && beforeThreadCopies)
      beforeThreadCopies();
    copyChunk(chunks[next]);
    std::lock_guard<std::mutex> lock(copying);
    if (++copied == chunks.size())
      chunkCopied.notify_all();
  }
  std::unique_lock<std::mutex> lock(copying);
  chunkCopied.wait(lock, [this] { return copied == chunks.size(); });
}

/// Copies the elements of a part, without padding, from the rank's memory.
void ShardSave::pack(const Part &part, char *to) const {
  int64_t width = sizeOf(part.shard.dtype);
  HostView held(rank, part.shard.data, part.shard.local.elements() * width);
  for (const Run &run : part.runs) {
    std::memcpy(to, held.data() + run.local * width, size_t(run.count * width));
    to += run.count * width;
  }
}

ShardSave::Contents ShardSave::contentsOf(const Program &program,
                                          const std::vector<TensorShard> &shards, int ranks) {
  Contents contents;
  for (const TensorShard &shard : shards)
    contents.tensors.push_back({shard.name, {shard.dtype, shard.global, {}}});
  for (int r = 0; r < ranks; ++r) {
    Rank other;
    setCoordinates(other, program, r);
    bool writes = false;
    for (size_t i = 0; i < shards.size(); ++i) {
      if (!isFirstOwner(program, other.coordinates, shards[i].splits, shards[i].stages))
        continue;
      Slices slices = slicesOf(program, other.coordinates, shards[i].global, shards[i].splits);
      if (slices.elements() == 0)
        continue;
      contents.tensors[i].second.shards.push_back({contents.writers.size(), std::move(slices)});
      writes = true;
    }
    if (writes)
      contents.writers.push_back(r);
  }
  if (contents.writers.empty())
    contents.writers.push_back(0); // nothing persists: an empty file
  return contents;
}

std::string ShardSave::nameOf(size_t file) const {
  if (!sharded)
    return unshardedPath(folder);
  return folder + "/" + shardName(metadata.at("save"), int(file) + 1, int(contents.writers.size()));
}

/// Returns the number of this rank's file, or -1.
int64_t ShardSave::ownFile() const {
  auto own = std::find(contents.writers.begin(), contents.writers.end(), rank.rank);
  return own == contents.writers.end() ? -1 : own - contents.writers.begin();
}

/// `data` has the part's elements without padding, as they will be written.
void ShardSave::checkHash(const Part &part, const char *data) const {
  auto compared = expected.find(part.shard.name);
  if (compared == expected.end())
    return;
  std::vector<Run> runs = part.runs;
  if (runs.empty())
    runs.push_back({0, 0, part.slices.elements()});
  uint64_t hash = 0, word = 0;
  for (const Run &run : runs) { // as addHashedRuns counts words
    int64_t bytes = run.count * sizeOf(part.shard.dtype);
    hash += replicaHash(data, bytes, word);
    data += bytes;
    word += uint64_t(hashWords(bytes));
  }
  if (hash != compared->second)
    fail("what it has of %s is no longer what all replicas had when they were compared for this "
         "checkpoint: a bit has flipped since in the memory of rank %d",
         part.shard.name, rank.rank);
}

void ShardSave::write() {
  if (ownFile() < 0)
    return;
  std::vector<SafetensorsWriter::Entry> entries;
  for (const Part &part : parts) {
    Shape shape = part.shard.global;
    if (sharded) {
      shape = {};
      for (int64_t size : part.slices.shapeInFile())
        shape.dims[shape.rank++] = size;
    }
    entries.push_back({part.shard.name, part.shard.dtype, shape});
  }
  SafetensorsWriter writer(nameOf(size_t(ownFile())), entries, metadata);
  for (const Part &part : parts) {
    std::optional<HostView> view;
    std::vector<char> packed;
    const char *data = part.copied;
    if (!data && part.runs.empty()) {
      view.emplace(rank, part.shard.data, part.bytes());
      data = view->data();
    } else if (!data) {
      packed.resize(size_t(part.bytes()));
      pack(part, packed.data());
      data = packed.data();
    }
    checkHash(part, data);
    for (int64_t at = 0; at < part.bytes(); at += kWriteBytes) {
      checkStopped();
      writer.write(data + at, std::min(kWriteBytes, part.bytes() - at));
    }
  }
  headerChecksum = writer.commit();
}

void ShardSave::writeIndex(const std::vector<int64_t> &checksums) const {
  if (!sharded)
    return;
  std::vector<ShardFile> files;
  for (size_t i = 0; i < contents.writers.size(); ++i) {
    struct stat status;
    std::string path = nameOf(i);
    if (stat(path.c_str(), &status) != 0)
      fail(
          "--checkpoint: rank 0 does not see %s, which rank %d wrote: %s; all ranks must share the "
          "folder",
          path.c_str(), contents.writers[i], std::strerror(errno));
    uint32_t checksum = uint32_t(checksums[size_t(contents.writers[i])]);
    files.push_back(
        {path.substr(folder.size() + 1), int64_t(status.st_size), checksumText(checksum)});
  }
  std::string text = indexText(metadata, files, contents.tensors);
  TemporaryFile index(indexPath(folder));
  index.write(text.data(), int64_t(text.size()));
  index.commit();
}

void ShardSave::discard() const {
  if (ownFile() >= 0)
    unlink(nameOf(size_t(ownFile())).c_str());
}

} // namespace partita_rt
