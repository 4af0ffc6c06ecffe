// Writes TensorBoard's event files (event_file.h).

#include "common/report/event_file.h"

#include "partita_rt/checksum.h"
#include "partita_rt/machine.h"
#include "partita_rt/types.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita_rt {

namespace {

/// Returns the little-endian bytes of a value, on any machine.
template <typename T> std::string littleEndian(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes += char(bits >> (8 * i));
  return bytes;
}

uint32_t maskedCrc(const std::string &bytes) {
  uint32_t crc =
      crc32c(reinterpret_cast<const unsigned char *>(bytes.data()), int64_t(bytes.size()));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7)
    bytes += char(value | 128);
  return bytes + char(value);
}

/// Fields of a message by their wire types: 0 varint, 1 eight bytes, 2 text or message, 5 four
/// bytes.
std::string key(int field, int wire) { return varint(uint64_t(field) << 3 | uint64_t(wire)); }
std::string number(int field, int64_t value) { return key(field, 0) + varint(uint64_t(value)); }
std::string real64(int field, double value) { return key(field, 1) + littleEndian(value); }
std::string real32(int field, float value) { return key(field, 5) + littleEndian(value); }
std::string text(int field, const std::string &bytes) {
  return key(field, 2) + varint(bytes.size()) + bytes;
}

double wallTime() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

void makeFolders(const std::string &folder) {
  for (size_t end = 1; end <= folder.size(); ++end)
    if (end == folder.size() || folder[end] == '/')
      if (mkdir(folder.substr(0, end).c_str(), 0777) != 0 && errno != EEXIST)
        fail("--tensorboard: cannot make the folder %s: %s", folder.substr(0, end).c_str(),
             std::strerror(errno));
}

} // namespace

EventFile::EventFile(const std::string &folder, int64_t firstStep) {
  makeFolders(folder);
  std::string name = folder + "/events.out.tfevents." + std::to_string(int64_t(wallTime())) + "." +
                     hostName() + "." + std::to_string(getpid()) + ".";
  for (int n = 0; !file; ++n) {
    std::string path = name + std::to_string(n);
    int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor >= 0)
      file.emplace(descriptor, "--tensorboard: " + path);
    else if (errno != EEXIST || n > 1000)
      fail("--tensorboard: cannot write %s: %s", path.c_str(), std::strerror(errno));
  }
  write(real64(1, wallTime()) + text(3, "brain.Event:2"));
  if (firstStep > 0)
    write(real64(1, wallTime()) + number(2, firstStep) + text(7, number(1, 1)));
}

void EventFile::write(const std::string &event) {
  std::string length = littleEndian(uint64_t(event.size()));
  file->add(length + littleEndian(maskedCrc(length)) + event + littleEndian(maskedCrc(event)));
}

void EventFile::add(int64_t step, const std::vector<std::pair<std::string, double>> &values) {
  std::string summary;
  for (const auto &[tag, value] : values)
    summary += text(1, text(1, tag) + real32(2, float(value)));
  write(real64(1, wallTime()) + number(2, step) + text(5, summary));
}

void EventFile::addText(int64_t step, const std::string &tag, const std::string &bytes) {
  std::string tensor = number(1, 7) + text(8, bytes), metadata = text(1, text(1, "text"));
  std::string value = text(1, tag) + text(8, tensor) + text(9, metadata);
  write(real64(1, wallTime()) + number(2, step) + text(5, text(1, value)));
}

} // namespace partita_rt
