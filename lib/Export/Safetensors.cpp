//===- Safetensors.cpp - reads a checkpoint's tensors -----------------------------------------===//

#include "lib/Export/Safetensors.h"
#include "partita/Import/ModelFile.h"
#include "partita/Support/ParseJson.h"
#include "runtime/include/partita_rt/checkpoint_format.h"
#include "runtime/include/partita_rt/checksum.h"
#include "runtime/include/partita_rt/safetensors_names.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace partita;

static constexpr uint64_t kMostHeaderBytes = 100'000'000; // the format's own limit

uint64_t partita::widthOf(StringRef dtype) {
  return StringSwitch<uint64_t>(dtype)
      .Cases({"F64", "I64", "U64"}, 8)
      .Cases({"F32", "I32", "U32"}, 4)
      .Cases({"F16", "BF16", "I16", "U16"}, 2)
      .Cases({"I8", "U8", "BOOL"}, 1)
      .Default(0);
}

std::unique_ptr<WeightFile> WeightFile::open(StringRef path, std::string &problem) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    problem = (path + ": " + buffer.getError().message()).str();
    if (std::string index = (path + ".index.json").str(); sys::fs::exists(index))
      problem += "; give its index, " + index;
    return nullptr;
  }
  auto file = std::make_unique<WeightFile>();
  file->name = path.str();
  file->buffer = std::move(*buffer);
  bool index = path.ends_with(".json");
  problem = index ? file->parseIndex(sys::path::parent_path(path)) : file->parse();
  if (problem.empty())
    return file;
  problem =
      (path + ": not a " + (index ? "valid checkpoint index: " : "safetensors file: ") + problem)
          .str();
  return nullptr;
}

std::string WeightFile::parse() {
  StringRef all = buffer->getBuffer();
  if (all.size() < 8)
    return "it is shorter than 8 bytes";
  uint64_t length = support::endian::read64le(all.data());
  if (length > kMostHeaderBytes || length > all.size() - 8)
    return "its header would have " + std::to_string(length) + " bytes, the file has " +
           std::to_string(all.size());
  StringRef text = all.substr(8, length);
  if (std::string damage = partita_rt::textDamage(text); !damage.empty())
    return "header: " + damage;
  Expected<json::Value> header = parseJson(text);
  if (!header)
    return toString(header.takeError());
  const json::Object *entries = header->getAsObject();
  if (!entries)
    return "its header is not a JSON object";
  return parseHeader(*entries, all.drop_front(8 + length));
}

/// Parses an entry of the header.
static std::string parseEntry(const json::Value &value, StringRef data, WeightTensor &tensor) {
  const json::Object *entry = value.getAsObject();
  const json::Array *shape = entry ? entry->getArray("shape") : nullptr;
  const json::Array *range = entry ? entry->getArray("data_offsets") : nullptr;
  std::optional<StringRef> dtype = entry ? entry->getString("dtype") : std::nullopt;
  if (!shape || !range || !dtype || range->size() != 2)
    return "lacks dtype, shape or data_offsets";
  tensor.dtype = dtype->str();
  bool overflow = false;
  uint64_t bytes = widthOf(*dtype);
  if (!bytes)
    return "has the unknown type " + importer::quoted(*dtype);
  for (const json::Value &dim : *shape) {
    int64_t size = dim.getAsInteger().value_or(-1);
    if (size < 0)
      return "has a wrong shape";
    bool wraps;
    bytes = SaturatingMultiply<uint64_t>(bytes, size, &wraps);
    overflow |= wraps;
    tensor.shape.push_back(size);
  }
  int64_t begin = (*range)[0].getAsInteger().value_or(-1),
          end = (*range)[1].getAsInteger().value_or(-1);
  if (overflow || begin < 0 || end < begin || uint64_t(end) > data.size() ||
      uint64_t(end - begin) != bytes)
    return "has a range that does not fit its shape and the file";
  tensor.bytes = data.slice(begin, end);
  tensor.size = bytes;
  return {};
}

std::string WeightFile::parseHeader(const json::Object &entries, StringRef data) {
  std::string format;
  bool hasChecksums = false;
  for (const auto &[key, value] : entries) {
    if (StringRef(key) == partita_rt::kMetadataKey) {
      const json::Object *metadata = value.getAsObject();
      if (!metadata)
        continue;
      save = metadata->getString("save").value_or("").str();
      format = metadata->getString("format").value_or("").str();
      headerChecksum = metadata->getString(partita_rt::kTextChecksum).value_or("none").str();
      if (auto digits = metadata->getString(partita_rt::kBlockChecksums)) {
        checksums = digits->str();
        hasChecksums = true;
        if (!metadata->getString(partita_rt::kTextChecksum))
          return "it has checksums of the data, but none of its header: it is damaged";
      }
      continue;
    }
    std::string tensor = partita_rt::nameOfStored(StringRef(key).str());
    if (std::string problem = parseEntry(value, data, tensors[tensor]); !problem.empty())
      return "tensor " + importer::quoted(tensor) + " " + problem;
  }
  if (std::string problem = numberBlocks(data); !problem.empty())
    return problem;
  return checkFormat(format, hasChecksums);
}

/// Checks that the tensors cover all data, as the format requires, and assigns checksums to
/// tensors.
std::string WeightFile::numberBlocks(StringRef data) {
  SmallVector<WeightTensor *> ordered;
  for (auto &entry : tensors)
    ordered.push_back(&entry.second);
  sort(ordered, [](const WeightTensor *a, const WeightTensor *b) {
    return std::pair(a->bytes.begin(), a->size) < std::pair(b->bytes.begin(), b->size);
  });
  const char *at = data.begin();
  StringRef digits = checksums;
  checksumBlock = partita_rt::checksumBlock(int64_t(data.size()));
  for (WeightTensor *tensor : ordered) {
    if (tensor->bytes.begin() != at)
      return tensor->bytes.begin() < at ? "two of its tensors overlap"
                                        : "some of its bytes belong to no tensor";
    at = tensor->bytes.end();
    size_t count = partita_rt::checksumBlocks(int64_t(tensor->size), checksumBlock) *
                   partita_rt::kChecksumDigits;
    if (!checksums.empty() && digits.size() < count)
      return "it has fewer checksums than its data have blocks";
    tensor->checksums = digits.take_front(count);
    digits = digits.drop_front(tensor->checksums.size());
  }
  if (at != data.end())
    return "its last " + std::to_string(data.end() - at) + " bytes belong to no tensor";
  return digits.empty() ? "" : "it has more checksums than its data have blocks";
}

std::string WeightFile::checkFormat(const std::string &format, bool hasChecksums) {
  if (partita_rt::hasChecksumsAlways(format) && !hasChecksums)
    return "its format, '" + format + "', has checksums, but they are not there: it is damaged";
  if (std::string weakness = partita_rt::weaknessOfFormat(format); !weakness.empty())
    said = name + " is of format '" + format + "', " + weakness;
  return {};
}

static std::string damageOf(StringRef bytes, StringRef checksums, size_t blockBytes) {
  for (uint64_t from = 0; !checksums.empty() && from < bytes.size(); from += blockBytes) {
    StringRef block = bytes.substr(from, blockBytes);
    std::string found = partita_rt::checksumText(
        partita_rt::crc32c(reinterpret_cast<const unsigned char *>(block.data()), block.size()));
    StringRef written = checksums.take_front(partita_rt::kChecksumDigits);
    checksums = checksums.drop_front(partita_rt::kChecksumDigits);
    if (written != found)
      return "its bytes " + std::to_string(from) + " .. " + std::to_string(from + block.size()) +
             " have CRC-32C " + found + ", but " + written.str() +
             " was recorded: the file is damaged";
  }
  return {};
}

std::string WeightFile::damageOf(StringRef tensor) const {
  const WeightTensor *found = find(tensor);
  auto check = [&](const WeightFile &file, StringRef bytes, StringRef digits) {
    std::string damage = ::damageOf(bytes, digits, size_t(file.checksumBlock));
    return damage.empty() ? "" : file.name + ": tensor " + importer::quoted(tensor) + ": " + damage;
  };
  if (found->shards.empty())
    return check(*this, found->bytes, found->checksums);
  for (const WeightTensor::Shard &shard : found->shards)
    if (std::string damage = check(*shard.file, shard.bytes, shard.checksums); !damage.empty())
      return damage;
  return {};
}

const WeightTensor *WeightFile::find(StringRef name) const {
  auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}
