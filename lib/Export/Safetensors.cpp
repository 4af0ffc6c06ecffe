//===- Safetensors.cpp - reading a checkpoint's tensors ---------------------------------------===//

#include "lib/Export/Safetensors.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace partita;

static constexpr uint64_t kMostHeaderBytes = 100u << 20;

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
  Expected<json::Value> header = json::parse(all.substr(8, length));
  if (!header)
    return toString(header.takeError());
  const json::Object *entries = header->getAsObject();
  if (!entries)
    return "its header is no JSON object";
  StringRef data = all.drop_front(8 + length);
  for (const auto &[name, value] : *entries) {
    if (StringRef(name) == "__metadata__") {
      if (const json::Object *metadata = value.getAsObject())
        save = metadata->getString("save").value_or("").str();
      continue;
    }
    const json::Object *entry = value.getAsObject();
    const json::Array *shape = entry ? entry->getArray("shape") : nullptr;
    const json::Array *range = entry ? entry->getArray("data_offsets") : nullptr;
    std::optional<StringRef> dtype = entry ? entry->getString("dtype") : std::nullopt;
    std::string about = "tensor '" + StringRef(name).str() + "'";
    if (!shape || !range || !dtype || range->size() != 2)
      return about + " lacks dtype, shape or data_offsets";
    WeightTensor tensor;
    tensor.dtype = dtype->str();
    bool overflow = false;
    uint64_t bytes = widthOf(*dtype);
    if (!bytes)
      return about + " has the unknown type '" + dtype->str() + "'";
    for (const json::Value &dim : *shape) {
      int64_t size = dim.getAsInteger().value_or(-1);
      if (size < 0)
        return about + " has a wrong shape";
      bool wraps;
      bytes = SaturatingMultiply<uint64_t>(bytes, size, &wraps);
      overflow |= wraps;
      tensor.shape.push_back(size);
    }
    int64_t begin = (*range)[0].getAsInteger().value_or(-1),
            end = (*range)[1].getAsInteger().value_or(-1);
    if (overflow || begin < 0 || end < begin || uint64_t(end) > data.size() ||
        uint64_t(end - begin) != bytes)
      return about + " has a range that does not fit its shape and the file";
    tensor.whole = data.slice(begin, end);
    tensor.size = bytes;
    tensors[StringRef(name)] = std::move(tensor);
  }
  return {};
}

const WeightTensor *WeightFile::find(StringRef name) const {
  auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}
