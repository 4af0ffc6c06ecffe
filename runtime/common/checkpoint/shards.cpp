// Every rank writes its shards, rank 0 the index (shards.h).

#include "common/checkpoint/shards.h"

#include "common/checkpoint/checkpoint_files.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/target.h"
#include "partita_rt/checksum.h"
#include "partita_rt/fingerprint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

uint64_t mixText(uint64_t hash, const std::string &text) {
  auto *bytes = reinterpret_cast<const unsigned char *>(text.data());
  int64_t size = int64_t(text.size());
  return (hash ^ fingerprint(bytes, size, size)) * 0x9E3779B97F4A7C15u;
}

namespace {

/// The data of one shard that a rank writes.
struct Part {
  const TensorShard *shard;
  Slices slices;
  std::vector<Run> runs; ///< set only if it has padding; else it is written as it is in memory
};

std::vector<Part> partsOf(const Rank &rank, const std::vector<TensorShard> &shards) {
  std::vector<Part> parts;
  for (const TensorShard &shard : shards) {
    if (!isFirstOwner(*rank.program, rank.coordinates, shard.splits, shard.stages))
      continue;
    Part part{&shard, slicesOf(*rank.program, rank.coordinates, shard.global, shard.splits), {}};
    if (part.slices.elements() == 0)
      continue;
    if (part.slices.elements() != shard.local.elements())
      part.runs = runsOf(rank, shard.global, shard.splits);
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Calls visit(bytes, count) with the part's elements in order.
template <typename Visit> void forBytes(const Rank &rank, const Part &part, Visit visit) {
  int64_t width = sizeOf(part.shard->dtype);
  HostView shard(rank, part.shard->data, part.shard->local.elements() * width);
  const char *data = shard.data();
  if (part.runs.empty())
    return visit(data, part.slices.elements() * width);
  std::vector<char> packed;
  packed.reserve(size_t(part.slices.elements() * width));
  for (const Run &run : part.runs)
    packed.insert(packed.end(), data + run.local * width, data + (run.local + run.count) * width);
  visit(packed.data(), int64_t(packed.size()));
}

/// Placeholder for the save's name, of equal length, until all contents are known.
const std::string kUnknownSave(16, '0');

/// Opens a rank's file, under a temporary name of the save.
std::unique_ptr<SafetensorsWriter> beginShard(const std::string &path,
                                              const std::vector<Part> &parts,
                                              const std::map<std::string, std::string> &metadata) {
  std::vector<SafetensorsWriter::Entry> entries;
  for (const Part &part : parts) {
    Shape shape;
    for (int64_t size : part.slices.shapeInFile())
      shape.dims[shape.rank++] = size;
    entries.push_back({part.shard->name, part.shard->dtype, shape});
  }
  return std::make_unique<SafetensorsWriter>(path, entries, metadata);
}

/// Writes the parts, reading each once from a GPU, and returns their hash.
uint64_t writeParts(const Rank &rank, const std::vector<Part> &parts, SafetensorsWriter *writer) {
  uint64_t hash = 0;
  for (const Part &part : parts) {
    hash = mixText(hash, part.shard->name);
    forBytes(rank, part, [&](const char *bytes, int64_t count) {
      auto *data = reinterpret_cast<const unsigned char *>(bytes);
      hash = (hash ^ fingerprint(data, count, count)) * 0x9E3779B97F4A7C15u;
      writer->write(bytes, count);
    });
  }
  return hash;
}

/// Names the save: a hash of what all ranks write. Equal contents have equal names.
std::string saveOf(Rank &rank, uint64_t own, const std::map<std::string, std::string> &metadata) {
  auto mine = int64_t(own);
  std::vector<int64_t> all(size_t(rank.ranks));
  allGather(*rank.world, {{&mine, all.data(), 1}}, "what a checkpoint holds");
  uint64_t hash = fingerprint(reinterpret_cast<const unsigned char *>(all.data()), 8 * rank.ranks,
                              8 * rank.ranks);
  for (const auto &[key, value] : metadata)
    hash = mixText(hash, key + "=" + value);
  return fingerprintText(hash);
}

/// The contents of all ranks' files, which every rank can compute.
struct Contents {
  std::vector<int> writers; ///< ranks with a file, in the order of the files
  std::vector<std::pair<std::string, LogicalTensor>> tensors;
};

Contents contentsOf(const Program &program, const std::vector<TensorShard> &shards, int ranks) {
  Contents contents;
  for (const TensorShard &shard : shards)
    contents.tensors.push_back({shard.name, {shard.dtype, shard.global, {}}});
  for (int r = 0; r < ranks; ++r) {
    Rank other;
    placeOnMesh(other, program, r);
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
  return contents;
}

/// Writes the index, on rank 0, when all files exist.
void writeIndex(const std::string &folder, const std::vector<std::string> &names,
                const std::vector<int64_t> &checksums, const Contents &contents,
                const std::map<std::string, std::string> &metadata) {
  std::vector<ShardFile> files;
  for (size_t i = 0; i < names.size(); ++i) {
    struct stat status;
    std::string path = folder + "/" + names[i];
    if (stat(path.c_str(), &status) != 0)
      fail(
          "--checkpoint: rank 0 does not see %s, which rank %d wrote: %s; all ranks must share the "
          "folder",
          path.c_str(), contents.writers[i], std::strerror(errno));
    uint32_t checksum = uint32_t(checksums[size_t(contents.writers[i])]);
    files.push_back({names[i], int64_t(status.st_size), checksumText(checksum)});
  }
  std::string text = indexText(metadata, files, contents.tensors);
  TemporaryFile index(indexPath(folder));
  index.write(text.data(), int64_t(text.size()));
  index.commit();
}

} // namespace

void writeShards(Rank &rank, const std::string &folder,
                 const std::map<std::string, std::string> &metadata) {
  std::vector<TensorShard> shards = persistentShards(rank);
  std::vector<Part> parts = partsOf(rank, shards);
  Contents contents = contentsOf(*rank.program, shards, rank.ranks);
  int files = int(contents.writers.size());
  auto own = std::find(contents.writers.begin(), contents.writers.end(), rank.rank);
  int number = int(own - contents.writers.begin()) + 1;
  std::vector<std::string> names;
  barrier(*rank.world, "a checkpoint"); // the folder exists now
  try {
    std::map<std::string, std::string> withSave = metadata;
    withSave["format"] = kShardedFormat;
    withSave["save"] = kUnknownSave;
    std::unique_ptr<SafetensorsWriter> writer;
    if (own != contents.writers.end())
      writer = beginShard(folder + "/" + shardName(kUnknownSave, number, files), parts, withSave);
    std::string save = saveOf(rank, writeParts(rank, parts, writer.get()), metadata);
    for (int i = 1; i <= files; ++i)
      names.push_back(shardName(save, i, files));
    withSave["save"] = save;
    int64_t checksum = 0;
    if (writer)
      checksum = writer->commitAs(folder + "/" + names[size_t(number - 1)], withSave);
    std::vector<int64_t> checksums(size_t(rank.ranks)); // complete when all shards are
    allGather(*rank.world, {{&checksum, checksums.data(), 1}}, "the shards of a checkpoint");
    if (rank.rank == 0)
      writeIndex(folder, names, checksums, contents, withSave);
  } catch (const Error &) {
    if (rank.rank == 0)
      removeUnnamedShards(folder);
    throw;
  }
  if (rank.rank == 0) {
    unlink(unshardedPath(folder).c_str()); // from an earlier save
    removeOtherShards(folder, names);
  }
  barrier(*rank.world, "the end of a checkpoint");
}

} // namespace partita_rt
