//===- CheckpointIndex.cpp - tensors in shards ------------------------------------------------===//
//
// Reads, for the compiler, what runtime/common/checkpoint/checkpoint_files.h describes.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Export/Safetensors.h"
#include "partita/Import/ModelFile.h"
#include "partita/Support/ParseJson.h"
#include "runtime/include/partita_rt/checkpoint_format.h"
#include "runtime/include/partita_rt/checksum.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace partita;

/// Returns a list of integers; nothing if it is not one.
static std::optional<std::vector<int64_t>> integers(const json::Value *value) {
  const json::Array *list = value ? value->getAsArray() : nullptr;
  if (!list)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json::Value &number : *list) {
    if (!number.getAsInteger())
      return std::nullopt;
    numbers.push_back(*number.getAsInteger());
  }
  return numbers;
}

/// Parses a shard's slices of a tensor with this shape. Returns what is wrong, or "".
static std::string parseSlices(const json::Object &entry, const std::vector<int64_t> &shape,
                               partita_rt::Slices &slices) {
  const json::Array *dims = entry.getArray("slices");
  if (!dims)
    return "a shard has no slices";
  for (const json::Value &dim : *dims) {
    std::optional<std::vector<int64_t>> ranges = integers(&dim);
    if (!ranges)
      return "its slices are not lists of ranges";
    slices.dims.push_back(*ranges);
  }
  slices.last = 1; // check ranges before counting their elements
  if (std::string problem = partita_rt::problemOf(shape, slices); !problem.empty())
    return problem;
  slices.last = slices.boxElements();
  if (const json::Value *elements = entry.get("elements")) {
    std::optional<std::vector<int64_t>> ends = integers(elements);
    if (!ends || ends->size() != 2)
      return "its elements are not two integers";
    slices.first = (*ends)[0];
    slices.last = (*ends)[1];
  }
  return partita_rt::problemOf(shape, slices);
}

std::string WeightFile::parseTensor(const json::Object &entry, WeightTensor &tensor,
                                    StringRef name) const {
  std::optional<StringRef> dtype = entry.getString("dtype");
  std::optional<std::vector<int64_t>> shape = integers(entry.get("shape"));
  const json::Array *shards = entry.getArray("shards");
  if (!dtype || !shape || !shards)
    return "it lacks dtype, shape or shards";
  int64_t width = widthOf(*dtype), size = width;
  if (!width)
    return "it has the unknown type " + importer::quoted(*dtype);
  for (int64_t dim : *shape)
    if (dim < 0 || MulOverflow(size, dim, size))
      return "its shape must be a list of sizes, none too large";
  tensor.dtype = dtype->str();
  tensor.shape.assign(shape->begin(), shape->end());
  tensor.size = size;
  std::vector<partita_rt::Slices> all;
  llvm::SmallDenseSet<int64_t> seen;
  for (const json::Value &value : *shards) {
    const json::Object *shard = value.getAsObject();
    int64_t file = shard ? shard->getInteger("file").value_or(0) : 0;
    if (file < 1 || file > int64_t(files.size()))
      return "a shard is in file " + std::to_string(file) + " of " + std::to_string(files.size());
    if (!seen.insert(file).second) // a file has one shard per name
      return "two of its shards are in file " + std::to_string(file);
    partita_rt::Slices slices;
    if (std::string problem = parseSlices(*shard, *shape, slices); !problem.empty())
      return problem;
    const WeightTensor *stored = files[file - 1]->find(name);
    std::vector<int64_t> inFile = slices.shapeInFile();
    if (!stored || stored->dtype != *dtype || ArrayRef(stored->shape) != ArrayRef(inFile))
      return "file " + std::to_string(file) + " has no shard of it that is " + dtype->str() + " [" +
             llvm::join(llvm::map_range(inFile, [](int64_t n) { return std::to_string(n); }),
                        ", ") +
             "]";
    tensor.shards.push_back({slices, stored->bytes, files[file - 1].get(), stored->checksums});
    all.push_back(std::move(slices));
  }
  return partita_rt::problemOfAll(*shape, std::move(all));
}

std::string WeightFile::parseIndex(StringRef folder) {
  if (std::string damage = partita_rt::textDamage(buffer->getBuffer()); !damage.empty())
    return damage;
  Expected<json::Value> index = parseJson(buffer->getBuffer());
  if (!index)
    return toString(index.takeError());
  const json::Object *top = index->getAsObject();
  const json::Object *metadata = top ? top->getObject("metadata") : nullptr;
  const json::Array *entries = top ? top->getArray("files") : nullptr;
  const json::Object *table = top ? top->getObject("tensors") : nullptr;
  if (!metadata || !entries || !table)
    return "it lacks metadata, files or tensors";
  std::string format = metadata->getString("format").value_or("").str();
  if (!partita_rt::isShardedFormat(format))
    return "its format is " + importer::quoted(format) + ", not '" + partita_rt::kShardedFormat +
           "' or version 1 or 2 of it";
  if (std::string problem =
          checkFormat(format, metadata->getString(partita_rt::kTextChecksum).has_value());
      !problem.empty())
    return problem;
  save = metadata->getString("save").value_or("").str();
  if (std::string problem =
          openFiles(*entries, folder, /*isChecked=*/format == partita_rt::kShardedFormat);
      !problem.empty())
    return problem;
  for (const auto &[name, value] : *table) {
    const json::Object *entry = value.getAsObject();
    std::string problem =
        entry ? parseTensor(*entry, tensors[StringRef(name)], name) : "it is not an object";
    if (!problem.empty())
      return "tensor " + importer::quoted(name) + ": " + problem;
  }
  return {};
}

std::string WeightFile::openFiles(const json::Array &entries, StringRef folder, bool isChecked) {
  std::vector<StringRef> recorded;
  for (const json::Value &value : entries) {
    const json::Object *entry = value.getAsObject();
    StringRef name = entry ? entry->getString("name").value_or("") : "";
    if (name.empty() || name.contains('/') || name.contains('\0') ||
        !name.ends_with(".safetensors"))
      return "there is no file " + importer::quoted(name) + " beside it";
    SmallString<128> path(folder);
    sys::path::append(path, name);
    std::string problem;
    files.push_back(open(path, problem));
    if (!problem.empty())
      return problem;
    if (std::optional<int64_t> bytes = entry->getInteger("bytes");
        !bytes || *bytes < 0 || files.back()->buffer->getBufferSize() != uint64_t(*bytes))
      return "its file " + path.str().str() + " has " +
             std::to_string(files.back()->buffer->getBufferSize()) + " bytes, it should have " +
             (bytes ? std::to_string(*bytes) : "an unknown number");
    if (save.empty() || files.back()->save != save)
      return "its file " + path.str().str() + " is of another save";
    std::optional<StringRef> checksum = entry->getString(partita_rt::kHeaderChecksum);
    if (isChecked && !checksum)
      return "it has no checksum of the header of its file " + path.str().str();
    recorded.push_back(checksum.value_or(""));
  }
  for (size_t i = 0; isChecked && i < files.size(); ++i) {
    StringRef found = files[i]->headerChecksum;
    if (found == recorded[i])
      continue;
    auto other = llvm::find(recorded, found);
    return "its file " + files[i]->name +
           (other == recorded.end()
                ? " is not the one that was saved: its header has CRC-32C " + found.str() +
                      ", but " + recorded[i].str() + " was recorded"
                : " has the contents of " + files[size_t(other - recorded.begin())]->name +
                      ": shards were swapped, or one was copied over another");
  }
  return {};
}

StringRef WeightTensor::read(std::string &storage) const {
  if (shards.empty())
    return bytes;
  storage.assign(size, 0);
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  for (const Shard &shard : shards) {
    uint64_t at = 0, width = shard.bytes.size() / shard.slices.elements();
    partita_rt::forSlices(sizes, shard.slices, [&](int64_t index, int64_t n) {
      std::copy_n(shard.bytes.data() + at, n * width, storage.data() + index * width);
      at += n * width;
    });
  }
  return storage;
}
