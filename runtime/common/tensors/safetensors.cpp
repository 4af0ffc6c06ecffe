// Reads and writes safetensors (safetensors.h).

#include "common/tensors/safetensors.h"

#include "common/convert.h"
#include "common/json.h"
#include "partita_rt/checksum.h"
#include "partita_rt/half.h"
#include "partita_rt/safetensors_names.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace partita_rt {

//===-- Reading -----------------------------------------------------------------------------===//

namespace {

struct TypeName {
  DType dtype;
  const char *name;
};
constexpr TypeName kTypeNames[] = {{DType::Float32, "F32"}, {DType::Float64, "F64"},
                                   {DType::Float16, "F16"}, {DType::BFloat16, "BF16"},
                                   {DType::Int32, "I32"},   {DType::Int64, "I64"},
                                   {DType::UInt8, "U8"},    {DType::UInt16, "U16"},
                                   {DType::UInt32, "U32"},  {DType::Bool, "BOOL"}};

} // namespace

const char *typeName(DType dtype) {
  for (const TypeName &candidate : kTypeNames)
    if (candidate.dtype == dtype)
      return candidate.name;
  return "";
}

DType parseType(const std::string &name) {
  for (const TypeName &candidate : kTypeNames)
    if (name == candidate.name)
      return candidate.dtype;
  fail("its type '%s' is not supported", name.c_str());
}

namespace {

constexpr int64_t kLargestHeader = 100'000'000;

const Json &entryOf(const Json &object, const char *key, Json::Kind kind) {
  const Json *value = object.kind == Json::Object ? object.find(key) : nullptr;
  if (!value || value->kind != kind)
    fail("its entry has no valid %s", key);
  return *value;
}

/// Parses one entry of the header; `bytes` is the size of the file's data.
StoredTensor parseEntry(const Json &entry, const unsigned char *data, int64_t bytes,
                        std::pair<int64_t, int64_t> &range) {
  StoredTensor tensor{DType::Float32, {}, nullptr};
  tensor.dtype = parseType(entryOf(entry, "dtype", Json::String).string);

  const Json &shape = entryOf(entry, "shape", Json::Array);
  if (shape.items.size() > size_t(kMaxDims))
    fail("its shape has %zu dimensions, at most %d are possible", shape.items.size(), kMaxDims);
  int64_t size = sizeOf(tensor.dtype);
  for (const Json &dim : shape.items) {
    if (dim.kind != Json::Integer || dim.integer < 0)
      fail("its shape is not a list of sizes");
    if (dim.integer > 0 && size > bytes / dim.integer && size > 0)
      fail("its shape needs more bytes than the file has");
    size *= dim.integer;
    tensor.shape.dims[tensor.shape.rank++] = dim.integer;
  }

  const Json &offsets = entryOf(entry, "data_offsets", Json::Array);
  if (offsets.items.size() != 2 || offsets.items[0].kind != Json::Integer ||
      offsets.items[1].kind != Json::Integer)
    fail("its data_offsets are not two integers");
  int64_t begin = offsets.items[0].integer, end = offsets.items[1].integer;
  if (begin < 0 || end < begin || end > bytes)
    fail("its bytes %lld .. %lld lie outside the %lld bytes of data", (long long)begin,
         (long long)end, (long long)bytes);
  if (end - begin != size)
    fail("its shape %s of %s needs %lld bytes, the file gives it %lld",
         toString(tensor.shape).c_str(), nameOf(tensor.dtype), (long long)size,
         (long long)(end - begin));
  tensor.data = data + begin;
  range = {begin, end};
  return tensor;
}

} // namespace

SafetensorsFile::SafetensorsFile(const std::string &path) : file(path, "safetensors file") {
  if (file.size() < 8)
    fail("safetensors file %s: a header takes at least 8 bytes, the file has %lld", path.c_str(),
         (long long)file.size());
  uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, file.data(), 8);
  bool fits = headerBytes <= uint64_t(kLargestHeader) && int64_t(headerBytes) <= file.size() - 8;
  if (!fits && file.size() > 8 && file.data()[8] != '{')
    fail("%s is not a safetensors file, or its beginning is damaged", path.c_str());
  if (!fits)
    fail("safetensors file %s: its header of %llu bytes does not fit into a file of %lld bytes",
         path.c_str(), (unsigned long long)headerBytes, (long long)file.size());
  std::string header(reinterpret_cast<const char *>(file.data() + 8), size_t(headerBytes));
  if (std::string damage = textDamage(header); !damage.empty())
    fail("safetensors file %s, header: %s", path.c_str(), damage.c_str());
  parse(header, file.data() + 8 + headerBytes, file.size() - 8 - int64_t(headerBytes));
}

void SafetensorsFile::parse(const std::string &text, const unsigned char *data, int64_t dataBytes) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::string where = "header";
  try {
    Json header = parseJson(text);
    if (header.kind != Json::Object)
      fail("it is not an object");
    for (const auto &[key, entry] : header.members) {
      bool isMetadata = key == kMetadataKey;
      std::string name = isMetadata ? key : nameOfStored(key);
      where = isMetadata ? "metadata" : "tensor '" + name + "'";
      if (isMetadata) {
        for (const auto &[key, value] : entry.members)
          if (value.kind == Json::String)
            meta[key] = value.string;
        continue;
      }
      ranges.emplace_back();
      StoredTensor tensor = parseEntry(entry, data, dataBytes, ranges.back());
      tensor.file = this;
      table.emplace(name, tensor);
    }
    where = "header";
    checkRanges(std::move(ranges), dataBytes);
    numberBlocks(dataBytes);
  } catch (const Error &error) {
    fail("safetensors file %s, %s: %s", path().c_str(), where.c_str(), error.what());
  }
}

/// Checks that the tensors cover the data without overlap or gap, as the format requires.
void SafetensorsFile::checkRanges(std::vector<std::pair<int64_t, int64_t>> ranges,
                                  int64_t dataBytes) const {
  std::sort(ranges.begin(), ranges.end());
  int64_t at = 0;
  for (const auto &[begin, end] : ranges) {
    if (begin < at)
      fail("two tensors overlap at byte %lld", (long long)begin);
    if (begin > at)
      fail("bytes %lld .. %lld of the data belong to no tensor", (long long)at, (long long)begin);
    at = end;
  }
  if (at != dataBytes)
    fail("its tensors have %lld bytes, %lld follow the header: the file has %lld byte%s too many",
         (long long)at, (long long)dataBytes, (long long)(dataBytes - at),
         dataBytes - at == 1 ? "" : "s");
}

/// Assigns the checksums, which are in the order of the data, to tensors.
void SafetensorsFile::numberBlocks(int64_t dataBytes) {
  auto entry = meta.find(kBlockChecksums);
  if (entry == meta.end())
    return;
  if (!meta.count(kTextChecksum)) // the key itself is damaged
    fail("it has checksums of the data, but none of its own: it is damaged");
  std::vector<StoredTensor *> tensors;
  for (auto &[name, tensor] : table)
    tensors.push_back(&tensor);
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor *a, const StoredTensor *b) { return a->data < b->data; });
  block = checksumBlock(dataBytes);
  int64_t blocks = 0;
  for (StoredTensor *tensor : tensors) {
    tensor->firstBlock = blocks;
    blocks += checksumBlocks(tensor->shape.elements() * sizeOf(tensor->dtype), block);
  }
  if (entry->second.size() != size_t(blocks) * kChecksumDigits)
    fail("it has %zu digits of checksums, its data have %lld blocks of %lld bytes, with %zu each",
         entry->second.size(), (long long)blocks, (long long)block, kChecksumDigits);
  checksums = std::move(entry->second);
  meta.erase(entry);
  checked.resize(size_t(blocks));
  isChecked = true;
}

void StoredTensor::check(const std::string &name, int64_t begin, int64_t end) const {
  if (!file || !file->hasChecksums() || begin >= end)
    return;
  int64_t bytes = shape.elements() * sizeOf(dtype), block = file->block;
  for (int64_t i = begin / block; i <= (end - 1) / block; ++i) {
    auto number = size_t(firstBlock + i);
    if (file->checked[number])
      continue;
    int64_t from = i * block, to = std::min(from + block, bytes);
    std::string found = checksumText(crc32c(data + from, to - from));
    std::string written = file->checksums.substr(number * kChecksumDigits, kChecksumDigits);
    if (found != written)
      fail("safetensors file %s, tensor '%s': its bytes %lld .. %lld have CRC-32C %s, but %s "
           "was recorded: the file is damaged",
           file->path().c_str(), name.c_str(), (long long)from, (long long)to, found.c_str(),
           written.c_str());
    file->checked[number] = true;
  }
}

const StoredTensor *SafetensorsFile::find(const std::string &name) const {
  auto entry = table.find(name);
  return entry == table.end() ? nullptr : &entry->second;
}

const StoredTensor &SafetensorsFile::get(const std::string &name, const Shape &shape) const {
  const StoredTensor *tensor = find(name);
  if (!tensor)
    fail("safetensors file %s has no tensor '%s'", path().c_str(), name.c_str());
  if (tensor->shape != shape)
    fail("safetensors file %s: tensor '%s' is %s, the program needs %s", path().c_str(),
         name.c_str(), toString(tensor->shape).c_str(), toString(shape).c_str());
  return *tensor;
}

//===-- Writing -----------------------------------------------------------------------------===//

static std::string headerOf(const std::vector<SafetensorsWriter::Entry> &entries,
                            const std::map<std::string, std::string> &metadata) {
  std::string header = "{" + quoteJson(kMetadataKey) + ":{";
  bool first = true;
  for (const auto &[key, value] : metadata) {
    header += (first ? "" : ",") + quoteJson(key) + ":" + quoteJson(value);
    first = false;
  }
  header += "}";
  int64_t offset = 0;
  for (const SafetensorsWriter::Entry &entry : entries) {
    header += "," + quoteJson(storedName(entry.name)) + ":{\"dtype\":\"" + typeName(entry.dtype) +
              "\",\"shape\":[";
    for (int d = 0; d < entry.shape.rank; ++d)
      header += (d ? "," : "") + std::to_string(entry.shape[d]);
    int64_t end = offset + entry.shape.elements() * sizeOf(entry.dtype);
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' '); // tensors start aligned
  return header;
}

static int64_t bytesOf(const SafetensorsWriter::Entry &entry) {
  return entry.shape.elements() * sizeOf(entry.dtype);
}

/// Writes zeros in place of the checksums until they are known, so the header's length never
/// changes.
SafetensorsWriter::SafetensorsWriter(const std::string &path, const std::vector<Entry> &entries,
                                     const std::map<std::string, std::string> &metadata)
    : path(path), file(path), entries(entries), announced(metadata) {
  int64_t total = 0, blocks = 0;
  for (const Entry &entry : entries)
    total += bytesOf(entry);
  blockBytes = checksumBlock(total);
  for (const Entry &entry : entries)
    blocks += checksumBlocks(bytesOf(entry), blockBytes);
  checksums.assign(size_t(blocks) * kChecksumDigits, '0');
  writeHeader(metadata);
  checksums.clear();
}

uint32_t SafetensorsWriter::writeHeader(const std::map<std::string, std::string> &metadata) {
  std::map<std::string, std::string> all = metadata;
  all[kTextChecksum] = std::string(kChecksumDigits, '0');
  all[kBlockChecksums] = checksums;
  std::string header = headerOf(entries, all);
  if (int64_t(header.size()) > kLargestHeader)
    fail("cannot write %s: its header would have %zu bytes, the format allows %lld", path.c_str(),
         header.size(), (long long)kLargestHeader);
  uint32_t checksum = setTextChecksum(header);
  if (headerBytes == 0) {
    headerBytes = header.size();
    uint64_t length = headerBytes;
    file.write(&length, 8);
    file.write(header.data(), int64_t(header.size()));
    return checksum;
  }
  if (header.size() != headerBytes)
    fail("%s: its metadata or tensors are not as long as those announced", path.c_str());
  file.rewrite(8, header.data(), int64_t(header.size()));
  return checksum;
}

void SafetensorsWriter::write(const void *data, int64_t bytes) {
  file.write(data, bytes);
  auto *from = static_cast<const unsigned char *>(data);
  while (bytes > 0) {
    while (entry < entries.size() && written == bytesOf(entries[entry])) {
      ++entry;
      written = 0;
    }
    if (entry == entries.size())
      fail("%s: more is written than the tensors that were announced", path.c_str());
    int64_t end = std::min(written / blockBytes * blockBytes + blockBytes, bytesOf(entries[entry]));
    int64_t count = std::min(bytes, end - written);
    block = crc32c(from, count, block);
    from += count;
    bytes -= count;
    written += count;
    if (written == end) {
      checksums += checksumText(block);
      block = 0;
    }
  }
}

uint32_t SafetensorsWriter::commit() {
  uint32_t checksum = writeHeader(announced);
  file.commit();
  return checksum;
}

//===-- Conversion --------------------------------------------------------------------------===//

void convertToFloat(float *out, const unsigned char *in, DType dtype, int64_t n) {
  switch (dtype) {
  case DType::Float32:
    std::memcpy(out, in, size_t(n) * 4);
    return;
  case DType::Float64:
    for (int64_t i = 0; i < n; ++i) {
      double value;
      std::memcpy(&value, in + 8 * i, 8);
      out[i] = float(value);
    }
    return;
  case DType::Float16:
    for (int64_t i = 0; i < n; ++i) {
      uint16_t bits;
      std::memcpy(&bits, in + 2 * i, 2);
      out[i] = half::widen(bits);
    }
    return;
  case DType::BFloat16:
    for (int64_t i = 0; i < n; ++i) {
      uint16_t half;
      std::memcpy(&half, in + 2 * i, 2);
      uint32_t bits = uint32_t(half) << 16;
      std::memcpy(out + i, &bits, 4);
    }
    return;
  default:
    fail("a parameter cannot be read from %s", nameOf(dtype));
  }
}

/// Rounds n floats; returns how many have become infinite.
template <typename T> static int64_t roundFloats(T *out, const float *in, int64_t n) {
  int64_t infinite = 0;
  convertArray(out, in, n);
  for (int64_t i = 0; i < n; ++i)
    infinite += std::isinf(float(out[i])) && !std::isinf(in[i]);
  return infinite;
}

int64_t convertFloats(void *out, DType to, const unsigned char *in, DType from, int64_t n) {
  if (to == from) {
    std::memcpy(out, in, size_t(n * sizeOf(to)));
    return 0;
  }
  if (to == DType::Float32) {
    convertToFloat(static_cast<float *>(out), in, from, n);
    return 0;
  }
  constexpr int64_t kTile = 1024;
  float tile[kTile];
  int64_t infinite = 0;
  for (int64_t at = 0; at < n; at += kTile) {
    int64_t count = std::min(kTile, n - at);
    convertToFloat(tile, in + at * sizeOf(from), from, count);
    infinite += to == DType::Float16 ? roundFloats(static_cast<Half *>(out) + at, tile, count)
                                     : roundFloats(static_cast<BFloat16 *>(out) + at, tile, count);
  }
  return infinite;
}

} // namespace partita_rt
