// Reads checkpoints of either form and names their files (checkpoint_files.h).

#include "common/checkpoint/checkpoint_files.h"

#include "common/json.h"
#include "partita_rt/checkpoint_folder.h"
#include "partita_rt/checksum.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>

namespace partita_rt {

//===-- Names -------------------------------------------------------------------------------===//

std::string unshardedPath(const std::string &folder) { return folder + "/" + kUnshardedName; }
std::string indexPath(const std::string &folder) { return folder + "/" + kIndexName; }

/// Shards get their names before the index does, so a folder with shards and no index has lost it.
static std::string lostIndex(const std::string &folder) {
  size_t shards = shardsIn(folder).size();
  return shards == 0 ? ""
                     : "; " + std::to_string(shards) +
                           (shards == 1 ? " shard of a checkpoint is there, but not its index"
                                        : " shards of a checkpoint are there, but not their index");
}

std::string checkpointFile(const std::string &folder) {
  std::string file = fileIn(folder);
  struct stat status;
  if (file.empty() && stat(unshardedPath(folder).c_str(), &status) != 0 && errno != ENOENT)
    failToRead("checkpoint", folder, errno);
  if (file.empty())
    fail("no checkpoint in %s: neither %s nor %s is there%s", folder.c_str(),
         unshardedPath(folder).c_str(), indexPath(folder).c_str(), lostIndex(folder).c_str());
  return file;
}

std::string shardName(const std::string &save, int number, int count) {
  char text[64];
  std::snprintf(text, sizeof(text), "-%05d-of-%05d.safetensors", number, count);
  return "checkpoint-" + save + text;
}

std::vector<std::string> shardsIn(const std::string &folder) {
  std::error_code ignored;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::string name = entry->path().filename().string();
    int length = 0;
    std::sscanf(name.c_str(), "checkpoint-%*16[0-9a-f]-%*u-of-%*u.safetensors%n", &length);
    if (length > 0 && size_t(length) == name.size())
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

//===-- The index ---------------------------------------------------------------------------===//

namespace {

const Json &member(const Json &object, const char *key, Json::Kind kind) {
  const Json *value = object.kind == Json::Object ? object.find(key) : nullptr;
  if (!value || value->kind != kind)
    fail("it has no valid \"%s\"", key);
  return *value;
}

int64_t integer(const Json &value, const char *of) {
  if (value.kind != Json::Integer)
    fail("its %s are not integers", of);
  return value.integer;
}

Slices parseSlices(const Json &entry) {
  Slices slices;
  for (const Json &dim : member(entry, "slices", Json::Array).items) {
    slices.dims.emplace_back();
    if (dim.kind != Json::Array)
      fail("its slices are not lists of ranges");
    for (const Json &bound : dim.items)
      slices.dims.back().push_back(integer(bound, "slices"));
  }
  return slices;
}

LogicalTensor::Shard parseShard(const Json &entry, const std::vector<int64_t> &shape,
                                size_t files) {
  LogicalTensor::Shard shard{0, parseSlices(entry)};
  int64_t file = member(entry, "file", Json::Integer).integer;
  if (file < 1 || file > int64_t(files))
    fail("a shard is in file %lld of %zu", (long long)file, files);
  shard.file = size_t(file - 1);
  Slices all = shard.slices; // check the ranges before counting their elements
  all.last = 1;
  if (std::string problem = problemOf(shape, all); !problem.empty())
    fail("%s", problem.c_str());
  shard.slices.last = shard.slices.boxElements();
  if (const Json *elements = entry.find("elements")) {
    if (elements->kind != Json::Array || elements->items.size() != 2)
      fail("its elements are not two integers");
    shard.slices.first = integer(elements->items[0], "elements");
    shard.slices.last = integer(elements->items[1], "elements");
  }
  if (std::string problem = problemOf(shape, shard.slices); !problem.empty())
    fail("%s", problem.c_str());
  return shard;
}

LogicalTensor parseTensor(const Json &entry, size_t files) {
  LogicalTensor tensor{parseType(member(entry, "dtype", Json::String).string), {}, {}};
  const Json &shape = member(entry, "shape", Json::Array);
  if (shape.items.size() > size_t(kMaxDims))
    fail("its shape has %zu dimensions, at most %d are possible", shape.items.size(), kMaxDims);
  int64_t bytes = sizeOf(tensor.dtype);
  for (const Json &dim : shape.items) {
    int64_t size = integer(dim, "sizes");
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      fail("its shape must be a list of sizes, none too large");
    tensor.shape.dims[tensor.shape.rank++] = size;
  }
  std::vector<Slices> all;
  std::vector<bool> seen(files);
  for (const Json &shard : member(entry, "shards", Json::Array).items) {
    LogicalTensor::Shard next = parseShard(shard, sizesOf(tensor.shape), files);
    if (seen[next.file]) // a file has one shard per name
      fail("two of its shards are in file %zu", next.file + 1);
    seen[next.file] = true;
    tensor.shards.push_back(std::move(next));
    all.push_back(tensor.shards.back().slices);
  }
  if (std::string problem = problemOfAll(sizesOf(tensor.shape), all); !problem.empty())
    fail("%s", problem.c_str());
  return tensor;
}

std::string_view textOf(const MappedFile &file) {
  return {reinterpret_cast<const char *>(file.data()), size_t(file.size())};
}

/// Parses a file's text as JSON.
Json parseFileAsJson(const MappedFile &file) { return parseJson(std::string(textOf(file))); }

/// A file beside the index, as it was when the index was written.
std::string parseFile(const Json &entry, const std::string &folder) {
  const std::string &file = member(entry, "name", Json::String).string;
  const std::string end = ".safetensors";
  if (file.size() <= end.size() || file.compare(file.size() - end.size(), end.size(), end) != 0 ||
      file.find('/') != std::string::npos || file.find('\0') != std::string::npos)
    fail("there is no file '%s' beside it", file.c_str());
  std::string path = folder + file;
  int64_t bytes = member(entry, "bytes", Json::Integer).integer;
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    failToRead(errno == ENOENT || errno == ENOTDIR ? "its file"
                                                   : "cannot read the checkpoint's file",
               path, errno);
  if (!S_ISREG(status.st_mode))
    fail("its file %s is not a regular file", path.c_str());
  if (status.st_size != bytes)
    fail("its file %s has %lld bytes, it should have %lld", path.c_str(), (long long)status.st_size,
         (long long)bytes);
  return path;
}

std::string listed(const std::vector<int64_t> &numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

} // namespace

void CheckpointFiles::readIndex() {
  size_t slash = name.rfind('/');
  std::string folder = slash == std::string::npos ? "" : name.substr(0, slash + 1), where;
  MappedFile file(name, "checkpoint index");
  try {
    if (std::string damage = textDamage(textOf(file)); !damage.empty())
      fail("%s", damage.c_str());
    Json index = parseFileAsJson(file);
    for (const auto &[key, value] : member(index, "metadata", Json::Object).members)
      if (value.kind == Json::String)
        meta[key] = value.string;
    const std::string &format = meta["format"];
    if (!isShardedFormat(format))
      fail("its format is '%s', this program reads '%s', and versions 1 and 2 of it",
           format.c_str(), kShardedFormat);
    said = formatNote(meta, meta.count(kTextChecksum) > 0, name);
    for (const Json &entry : member(index, "files", Json::Array).items)
      files.push_back({parseFile(entry, folder),
                       format == kShardedFormat
                           ? member(entry, kHeaderChecksum, Json::String).string
                           : std::string(),
                       nullptr});
    for (const auto &[tensor, entry] : member(index, "tensors", Json::Object).members) {
      where = ", tensor '" + tensor + "'";
      table.emplace(tensor, parseTensor(entry, files.size()));
    }
  } catch (const Unreadable &) {
    throw;
  } catch (const Error &error) {
    fail("checkpoint index %s%s: %s", name.c_str(), where.c_str(), error.what());
  }
}

std::string indexText(std::map<std::string, std::string> metadata,
                      const std::vector<ShardFile> &files,
                      const std::vector<std::pair<std::string, LogicalTensor>> &tensors) {
  metadata[kTextChecksum] = std::string(kChecksumDigits, '0');
  std::string text = "{\"metadata\": {", separator;
  for (const auto &[key, value] : metadata) {
    text += separator + quoteJson(key) + ": " + quoteJson(value);
    separator = ", ";
  }
  text += "},\n \"files\": [", separator = "\n";
  for (const ShardFile &file : files) {
    text += separator + "  {\"name\": " + quoteJson(file.name) +
            ", \"bytes\": " + std::to_string(file.bytes) + ", \"" + kHeaderChecksum +
            "\": " + quoteJson(file.headerChecksum) + "}";
    separator = ",\n";
  }
  text += "],\n \"tensors\": {", separator = "\n";
  for (const auto &[tensor, logical] : tensors) {
    text += separator + "  " + quoteJson(tensor) + ": {\"dtype\": \"" + typeName(logical.dtype) +
            "\", \"shape\": " + listed(sizesOf(logical.shape)) + ", \"shards\": [";
    separator = "\n";
    for (const LogicalTensor::Shard &shard : logical.shards) {
      text += separator + "   {\"file\": " + std::to_string(shard.file + 1) + ", \"slices\": [";
      for (size_t d = 0; d < shard.slices.dims.size(); ++d)
        text += (d ? ", " : "") + listed(shard.slices.dims[d]);
      text += "]";
      if (shard.slices.elements() != shard.slices.boxElements())
        text += ", \"elements\": " + listed({shard.slices.first, shard.slices.last});
      text += "}";
      separator = ",\n";
    }
    text += "]}", separator = ",\n";
  }
  text += "}}\n";
  setTextChecksum(text);
  return text;
}

//===-- Reading -----------------------------------------------------------------------------===//

std::string formatNote(const std::map<std::string, std::string> &metadata, bool hasChecksums,
                       const std::string &path) {
  auto format = metadata.find("format");
  if (format == metadata.end())
    return "";
  const std::string &found = format->second;
  if (hasChecksumsAlways(found) && !hasChecksums)
    fail("%s: its format, '%s', has checksums, but they are not there: it is damaged", path.c_str(),
         found.c_str());
  std::string weakness = weaknessOfFormat(found);
  return weakness.empty() ? "" : path + " is of format '" + found + "', " + weakness;
}

CheckpointFiles::CheckpointFiles(const std::string &path) : name(path) {
  if (path.size() > 5 && path.compare(path.size() - 5, 5, ".json") == 0)
    readIndex();
  else
    readUnsharded();
}

void CheckpointFiles::readUnsharded() {
  files.push_back({name, "", std::make_unique<SafetensorsFile>(name)});
  meta = files[0].opened->metadata();
  said = formatNote(meta, files[0].opened->hasChecksums(), name);
  for (const auto &[tensor, stored] : files[0].opened->tensors()) {
    LogicalTensor logical{stored.dtype, stored.shape, {{0, {}}}};
    for (int64_t size : sizesOf(stored.shape))
      logical.shards[0].slices.dims.push_back({0, size});
    logical.shards[0].slices.last = stored.shape.elements();
    table.emplace(tensor, std::move(logical));
  }
}

const LogicalTensor &CheckpointFiles::get(const std::string &tensor, DType dtype,
                                          const Shape &shape) const {
  auto entry = table.find(tensor);
  if (entry == table.end())
    fail("checkpoint %s has no tensor '%s'", name.c_str(), tensor.c_str());
  const LogicalTensor &logical = entry->second;
  if (logical.shape != shape || logical.dtype != dtype)
    fail("checkpoint %s: tensor '%s' is %s %s, the program needs %s %s", name.c_str(),
         tensor.c_str(), nameOf(logical.dtype), toString(logical.shape).c_str(), nameOf(dtype),
         toString(shape).c_str());
  return logical;
}

/// Fails unless the file is the one that the index lists; an error about swapped files names both.
void CheckpointFiles::checkFile(const File &file, const SafetensorsFile &opened) const {
  auto save = opened.metadata().find("save"), own = meta.find("save");
  if (save == opened.metadata().end() || own == meta.end() || save->second != own->second)
    fail("checkpoint index %s: its file %s is of another save", name.c_str(), file.path.c_str());
  formatNote(opened.metadata(), opened.hasChecksums(), file.path);
  auto entry = opened.metadata().find(kTextChecksum);
  std::string found = entry == opened.metadata().end() ? "none" : entry->second;
  if (file.headerChecksum.empty() || found == file.headerChecksum)
    return;
  for (const File &other : files)
    if (other.headerChecksum == found)
      fail("checkpoint index %s: its file %s has the contents of %s: shards were swapped, or one "
           "was copied over another",
           name.c_str(), file.path.c_str(), other.path.c_str());
  fail("checkpoint index %s: its file %s is not the one that was saved: its header has CRC-32C %s, "
       "but %s was recorded",
       name.c_str(), file.path.c_str(), found.c_str(), file.headerChecksum.c_str());
}

/// Returns a shard in its file, if the file's header agrees with the index.
const StoredTensor &CheckpointFiles::open(const std::string &tensor, const LogicalTensor &logical,
                                          const LogicalTensor::Shard &shard) const {
  File &file = files[shard.file];
  if (!file.opened) {
    auto opened = std::make_unique<SafetensorsFile>(file.path);
    checkFile(file, *opened);
    file.opened = std::move(opened);
  }
  const StoredTensor *stored = file.opened->find(tensor);
  if (!stored)
    fail("checkpoint index %s: tensor '%s' is not in %s", name.c_str(), tensor.c_str(),
         file.path.c_str());
  std::vector<int64_t> shape = shard.slices.shapeInFile();
  if (stored->dtype != logical.dtype || sizesOf(stored->shape) != shape)
    fail("checkpoint index %s: the shard of tensor '%s' in %s is %s %s, it should be %s %s",
         name.c_str(), tensor.c_str(), file.path.c_str(), nameOf(stored->dtype),
         toString(stored->shape).c_str(), nameOf(logical.dtype), listed(shape).c_str());
  return *stored;
}

/// Calls visit(stored, byte, run) for the subranges of the runs, each within one shard. `byte` is
/// the position in the tensor as its file stores it.
template <typename VisitPart>
void CheckpointFiles::walk(const std::string &tensor, const std::vector<Run> &runs,
                           VisitPart visit) const {
  const LogicalTensor &logical = table.at(tensor);
  for (const LogicalTensor::Shard &shard : logical.shards) {
    const StoredTensor *stored = nullptr;
    int64_t before = 0, width = sizeOf(logical.dtype);
    size_t run = 0;
    // Both ascend, so one pass over the two finds the overlaps.
    forSlices(sizesOf(logical.shape), shard.slices, [&](int64_t index, int64_t n) {
      while (run < runs.size() && runs[run].global + runs[run].count <= index)
        ++run;
      for (size_t r = run; r < runs.size() && runs[r].global < index + n; ++r) {
        int64_t begin = std::max(index, runs[r].global);
        int64_t end = std::min(index + n, runs[r].global + runs[r].count);
        if (!stored)
          stored = &open(tensor, logical, shard);
        visit(*stored, (before + begin - index) * width,
              Run{begin, runs[r].local + begin - runs[r].global, end - begin});
      }
      before += n;
    });
  }
}

void CheckpointFiles::forParts(const std::string &tensor, const std::vector<Run> &runs,
                               const Visit &visit) const {
  walk(tensor, runs, [&](const StoredTensor &stored, int64_t byte, const Run &run) {
    stored.check(tensor, byte, byte + run.count * sizeOf(stored.dtype));
    visit(stored.data + byte, run);
  });
}

void CheckpointFiles::checkShard(const std::string &tensor,
                                 const LogicalTensor::Shard &shard) const {
  const StoredTensor &stored = open(tensor, table.at(tensor), shard);
  stored.check(tensor, 0, shard.slices.elements() * sizeOf(stored.dtype));
}

void CheckpointFiles::openParts(const std::string &tensor, const std::vector<Run> &runs) const {
  walk(tensor, runs, [](const StoredTensor &, int64_t, const Run &) {});
}

} // namespace partita_rt
