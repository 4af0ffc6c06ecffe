//===- WireScanner.cpp ------------------------------------------------------------------------===//
//
// A table per message says what happens to each field; a field that the table does not list is
// skipped. Every message has a table, even the smallest: for a field that it does not know, the
// protobuf parser allocates whatever length the field claims, without checking how much there is.
// The length of a nested message is not known before its contents have been written, so it gets
// five bytes (a varint may be padded), filled in afterwards: one buffer, nothing is copied twice.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/WireScanner.h"
#include "lib/Import/File/ExportRecord.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <climits>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using WireType = WireFormatLite::WireType;

namespace partita::importer {
namespace {

constexpr int maxDepth = 64;
constexpr uint32_t payloadField = 1000;
constexpr size_t paddedLength = 5;

struct Message;

/// What to do with one field: copy it, descend into it, or note where it lies.
struct Field {
  enum Action { copy, descend, locate };
  uint32_t number;
  Action action;
  const Message *message = nullptr;
};

struct Message {
  const char *name;
  llvm::ArrayRef<Field> fields;

  const Field *find(uint32_t number) const {
    for (const Field &field : fields)
      if (field.number == number)
        return &field;
    return nullptr;
  }
};

extern const Message modelMessage, graphMessage, nodeMessage, attributeMessage, tensorMessage,
    valueInfoMessage, functionMessage, leafMessage, opsetMessage, stringPairMessage,
    nodeNoteMessage, typeMessage, tensorTypeMessage, shapeMessage, dimensionMessage, devicesMessage,
    nodeDevicesMessage, shardingMessage, deviceGroupMessage, shardedDimMessage,
    simpleShardingMessage;

constexpr auto copy = Field::copy;
constexpr auto descend = Field::descend;
constexpr auto locate = Field::locate;

const Field modelFields[] = {{1, copy},
                             {2, copy},
                             {3, copy},
                             {7, descend, &graphMessage},
                             {8, descend, &opsetMessage},
                             {25, descend, &functionMessage},
                             {26, descend, &devicesMessage}};
const Field graphFields[] = {{1, descend, &nodeMessage},       {2, copy},
                             {5, descend, &tensorMessage},     {11, descend, &valueInfoMessage},
                             {12, descend, &valueInfoMessage}, {13, descend, &valueInfoMessage},
                             {15, descend, &leafMessage},      {16, descend, &stringPairMessage}};
const Field nodeFields[] = {{1, copy},
                            {2, copy},
                            {3, copy},
                            {4, copy},
                            {5, descend, &attributeMessage},
                            {7, copy},
                            {8, copy},
                            {9, descend, &nodeNoteMessage},
                            {10, descend, &nodeDevicesMessage}};
const Field attributeFields[] = {{1, copy},
                                 {2, copy},
                                 {3, copy},
                                 {4, copy},
                                 {5, descend, &tensorMessage},
                                 {6, descend, &graphMessage},
                                 {7, copy},
                                 {8, copy},
                                 {9, copy},
                                 {20, copy},
                                 {21, copy}};
const Field tensorFields[] = {{1, copy},
                              {2, copy},
                              {4, locate},
                              {5, locate},
                              {6, locate},
                              {7, locate},
                              {8, copy},
                              {9, locate},
                              {10, locate},
                              {11, locate},
                              {13, descend, &stringPairMessage},
                              {14, copy}};
const Field valueInfoFields[] = {
    {1, copy}, {2, descend, &typeMessage}, {4, descend, &stringPairMessage}};
const Field functionFields[] = {{1, copy},
                                {4, copy},
                                {5, copy},
                                {6, copy},
                                {7, descend, &nodeMessage},
                                {9, descend, &opsetMessage},
                                {10, copy},
                                {11, descend, &attributeMessage},
                                {13, copy}};
const Field pairFields[] = {{1, copy}, {2, copy}};
const Field typeFields[] = {{1, descend, &tensorTypeMessage},
                            {4, descend, &leafMessage},
                            {5, descend, &leafMessage},
                            {8, descend, &leafMessage},
                            {9, descend, &leafMessage}};
const Field tensorTypeFields[] = {{1, copy}, {2, descend, &shapeMessage}};
const Field shapeFields[] = {{1, descend, &dimensionMessage}};
const Field devicesFields[] = {{1, copy}, {2, copy}, {3, copy}};
const Field nodeDevicesFields[] = {{1, copy}, {2, descend, &shardingMessage}, {3, copy}};
const Field shardingFields[] = {
    {1, copy}, {2, copy}, {3, descend, &deviceGroupMessage}, {4, descend, &shardedDimMessage}};
const Field shardedDimFields[] = {{1, copy}, {2, descend, &simpleShardingMessage}};
const Field simpleShardingFields[] = {{1, copy}, {2, copy}, {3, copy}};

const Message modelMessage{"model", modelFields};
const Message graphMessage{"graph", graphFields};
const Message nodeMessage{"node", nodeFields};
const Message attributeMessage{"attribute", attributeFields};
const Message tensorMessage{"tensor", tensorFields};
const Message valueInfoMessage{"value", valueInfoFields};
const Message functionMessage{"function", functionFields};
const Message leafMessage{"message that is not read", {}};
const Message opsetMessage{"version of an operator set", pairFields};
const Message stringPairMessage{"pair of strings", pairFields};
const Message nodeNoteMessage{"node's metadata", pairFields};
const Message typeMessage{"type", typeFields};
const Message tensorTypeMessage{"tensor's type", tensorTypeFields};
const Message shapeMessage{"shape", shapeFields};
const Message dimensionMessage{"dimension", pairFields};
const Message devicesMessage{"device configuration", devicesFields};
const Message nodeDevicesMessage{"node's devices", nodeDevicesFields};
const Message shardingMessage{"sharding", shardingFields};
const Message deviceGroupMessage{"device group", pairFields};
const Message shardedDimMessage{"sharded dimension", shardedDimFields};
const Message simpleShardingMessage{"simple sharding", simpleShardingFields};

class Scanner {
public:
  Scanner(const uint8_t *data, size_t size) : data(data), in(data, static_cast<int>(size)) {}

  ScanResult run(size_t size) {
    scan(modelMessage, size, 0);
    if (!result.error.empty())
      result.skeleton.clear();
    return std::move(result);
  }

private:
  size_t position() { return static_cast<size_t>(in.CurrentPosition()); }

  bool fail(std::string message) {
    if (result.error.empty())
      result.error = std::move(message);
    return false;
  }

  bool truncated(const Message &message, size_t end) {
    return fail(llvm::formatv("damaged or truncated: a {0} ends in the middle of a field at byte "
                              "{1}, its last byte is {2}",
                              message.name, position(), end));
  }

  void putVarint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      result.skeleton.push_back(static_cast<char>(value | 0x80));
    result.skeleton.push_back(static_cast<char>(value));
  }

  void copyRange(size_t begin, size_t end) {
    result.skeleton.append(reinterpret_cast<const char *>(data) + begin, end - begin);
  }

  /// Writes a length-delimited field whose contents `contents()` writes.
  template <typename Function> bool nested(uint32_t number, Function contents) {
    putVarint(WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    size_t hole = result.skeleton.size();
    result.skeleton.append(paddedLength, '\0');
    if (!contents())
      return false;
    size_t length = result.skeleton.size() - hole - paddedLength;
    if (length > INT_MAX)
      return fail("a message is larger than 2 GB without its tensors");
    for (size_t i = 0; i < paddedLength; ++i, length >>= 7)
      result.skeleton[hole + i] =
          static_cast<char>((length & 0x7f) | (i + 1 < paddedLength ? 0x80 : 0));
    return true;
  }

  bool putPayload(uint32_t field, size_t offset, size_t length) {
    return nested(payloadField, [&] {
      putVarint(1 << 3), putVarint(field);
      putVarint(2 << 3), putVarint(offset);
      putVarint(3 << 3), putVarint(length);
      return true;
    });
  }

  bool lengthDelimited(const Message &message, const Field *field, size_t start, size_t end,
                       int depth) {
    uint64_t length = 0;
    if (!in.ReadVarint64(&length) || position() > end)
      return truncated(message, end);
    size_t begin = position();
    if (length > end - begin)
      return fail(llvm::formatv("damaged or truncated: a field of a {0} at byte {1} says that it "
                                "has {2} bytes, {3} remain",
                                message.name, start, length, end - begin));
    if (field && field->action == descend) {
      size_t before = result.skeleton.size();
      if (!nested(field->number, [&] { return scan(*field->message, begin + length, depth + 1); }))
        return false;
      // Most of a node's metadata is the stack trace of the Python program that made it.
      llvm::StringRef added = llvm::StringRef(result.skeleton).drop_front(before);
      if (field->message == &nodeNoteMessage && !added.contains(tracedKey) &&
          !added.contains(scopesKey))
        result.skeleton.resize(before);
      return true;
    }
    if (field && field->action == locate && !putPayload(field->number, begin, length))
      return false;
    in.Skip(static_cast<int>(length));
    if (field && field->action == copy)
      copyRange(start, begin + length);
    return true;
  }

  bool scan(const Message &message, size_t end, int depth) {
    if (depth > maxDepth)
      return fail(
          llvm::formatv("messages are nested deeper than {0} at byte {1}", maxDepth, position()));
    while (position() < end) {
      size_t start = position();
      uint32_t tag = in.ReadTagNoLastTag();
      uint32_t number = tag >> 3;
      WireType type = WireFormatLite::GetTagWireType(tag);
      if (tag == 0 || number == 0 || position() > end)
        return fail(llvm::formatv("no protobuf field at byte {0} of a {1}", start, message.name));
      const Field *field = message.find(number);
      if (type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (!lengthDelimited(message, field, start, end, depth))
          return false;
        continue;
      }
      if (field && field->action == descend)
        return fail(llvm::formatv("field {0} of a {1} at byte {2} is not a message", number,
                                  message.name, start));
      size_t begin = position();
      uint64_t ignored = 0;
      bool ok = false;
      if (type == WireFormatLite::WIRETYPE_VARINT)
        ok = in.ReadVarint64(&ignored);
      else if (type == WireFormatLite::WIRETYPE_FIXED64)
        ok = in.Skip(8);
      else if (type == WireFormatLite::WIRETYPE_FIXED32)
        ok = in.Skip(4);
      else
        return fail(llvm::formatv("unknown wire type {0} at byte {1} of a {2}",
                                  static_cast<int>(type), start, message.name));
      if (!ok || position() > end)
        return truncated(message, end);
      if (!field)
        continue;
      if (field->action == copy)
        copyRange(start, position());
      else if (!putPayload(number, begin, position() - begin))
        return false;
    }
    return true;
  }

  const uint8_t *data;
  CodedInputStream in;
  ScanResult result;
};

} // namespace

ScanResult scanModel(const uint8_t *data, size_t size) {
  ScanResult result;
  if (size == 0) {
    result.error = "it is empty";
  } else if (size > INT_MAX) {
    result.error = llvm::formatv("the file has {0} bytes, but a protobuf message has fewer than "
                                 "2147483648: store the weights as external data",
                                 size);
  } else {
    result = Scanner(data, size).run(size);
  }
  return result;
}

} // namespace partita::importer
