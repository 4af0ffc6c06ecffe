// `partita checkpoint`: lists, verifies, merges and compares checkpoints, with the reader that
// programs use to resume.
//
//     partita-checkpoint ls DIR
//     partita-checkpoint verify PATH...
//     partita-checkpoint merge PATH -o FILE.safetensors
//     partita-checkpoint diff A B
//
// A PATH is a run's folder (its newest checkpoint; `verify`: all of them), the folder of one
// checkpoint, or its file. Exit status 0: done, or no difference; 1: damage (ls, verify), or a difference (diff); 2: an error.

#include "common/checkpoint/checkpoint_files.h"
#include "common/checkpoint/folder.h"
#include "common/grouped.h"
#include "partita_rt/printable.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

using namespace partita_rt;
namespace fs = std::filesystem;

namespace {

constexpr char kUsage[] =
    "usage: partita checkpoint ls DIR\n"
    "       partita checkpoint verify PATH...\n"
    "       partita checkpoint merge PATH -o FILE.safetensors\n"
    "       partita checkpoint diff A B\n\n"
    "ls      lists the checkpoints in the folder of a run, the newest first\n"
    "verify  reads everything, and compares it with the checksums that were written\n"
    "merge   writes the shards of a checkpoint as one file of full tensors\n"
    "diff    compares the tensors of two checkpoints, however they are split\n\n"
    "A PATH is the folder of a run (its newest checkpoint; verify: all of them), the folder of one\n"
    "checkpoint, or its file. Exit status 0: done, no damage, no difference; 1: damage (ls, verify),\n"
    "or a difference (diff); 2: an error, such as damage that keeps merge and diff from reading.\n";

using Words = std::vector<std::string>;

/// Returns the file of the checkpoint that a path names.
std::string fileOf(const std::string &path) {
  std::error_code none;
  if (!fs::is_directory(path, none))
    return path;
  std::string file = newestCheckpoint(path), folder = fs::path(file).parent_path();
  if (!fs::equivalent(folder, path, none))
    std::fprintf(stderr, "%s: using its newest checkpoint, %s\n", printable(path).c_str(),
                 printable(folder).c_str());
  return file;
}

/// The names of checkpoints that something other than a folder has.
std::vector<std::string> damagedNames(const std::string &folder) {
  std::vector<std::string> names = namesOfNoFolders(folder);
  names.erase(std::remove_if(names.begin(), names.end(), isUnfinishedName), names.end());
  return names;
}

std::string valueOf(const CheckpointFiles &file, const char *key) {
  auto entry = file.metadata().find(key);
  return entry == file.metadata().end() ? "" : entry->second;
}

int64_t bytesOf(const LogicalTensor &tensor) {
  return tensor.shape.elements() * sizeOf(tensor.dtype);
}

/// Returns the elements of a tensor in its order, after their checksums have been compared.
std::vector<unsigned char> read(const CheckpointFiles &file, const std::string &name) {
  const LogicalTensor &tensor = file.tensors().at(name);
  std::vector<unsigned char> bytes(size_t(bytesOf(tensor)));
  int64_t width = sizeOf(tensor.dtype);
  file.forParts(name, {{0, 0, tensor.shape.elements()}},
                [&](const unsigned char *from, const Run &run) {
                  std::memcpy(bytes.data() + run.global * width, from, size_t(run.count * width));
                });
  return bytes;
}

//===-- ls ----------------------------------------------------------------------------------===//

/// Returns false if it cannot be read, or its index is damaged.
bool listOne(const CheckpointEntry &entry) {
  bool isReadable = true;
  std::string name = fs::path(entry.path).filename().string(), about;
  try {
    CheckpointFiles file(checkpointFile(entry.path));
    int64_t bytes = 0;
    std::set<size_t> files;
    for (const auto &[tensor, logical] : file.tensors()) {
      bytes += bytesOf(logical);
      for (const LogicalTensor::Shard &shard : logical.shards)
        files.insert(shard.file);
    }
    std::string step = valueOf(file, "step"),
                other = otherStep(entry.path, std::strtoll(step.c_str(), nullptr, 10));
    isReadable = other.empty();
    about = grouped(bytes) + " bytes in " + std::to_string(files.size()) +
            (files.size() == 1 ? " file" : " files") + ", " + valueOf(file, "program") + ", " +
            valueOf(file, "optimizer") + ", step " + step + ", seed " + valueOf(file, "seed") +
            (other.empty() ? "" : ": " + other);
  } catch (const Unreadable &error) {
    about = std::string("cannot be read: ") + error.what();
    isReadable = false;
  } catch (const Error &error) {
    about = std::string("damaged: ") + error.what();
    isReadable = false;
  }
  std::printf("%-14s %s\n", printable(name).c_str(), printable(about).c_str());
  return isReadable;
}

int list(const Words &words) {
  if (words.size() != 1)
    fail("ls takes one folder; --help says more");
  std::error_code error;
  fs::directory_iterator entries(words[0], error);
  if (error)
    fail("%s: %s", words[0].c_str(), error.message().c_str());
  std::vector<CheckpointEntry> found = checkpointsIn(words[0]);
  bool areReadable = true;
  for (const CheckpointEntry &entry : found)
    areReadable &= listOne(entry);
  for (const std::string &name : damagedNames(words[0])) {
    std::printf("%-14s damaged: is not a folder\n", printable(name).c_str());
    areReadable = false;
  }
  int64_t unfinished = 0;
  for (const fs::directory_entry &entry : entries)
    if (std::string name = entry.path().filename().string(); isUnfinishedName(name)) {
      std::printf("%-14s unfinished: being written, or left by a run that was killed\n",
                  printable(name).c_str());
      ++unfinished;
    }
  if (found.empty() && unfinished == 0 && areReadable)
    newestCheckpoint(words[0]); // says what is missing
  return areReadable ? 0 : 1;
}

//===-- verify ------------------------------------------------------------------------------===//

/// What is wrong with the shards in one file of a checkpoint.
struct FileDamage {
  int64_t damaged = 0, all = 0; ///< tensors with a shard in it
  std::string first;
};

void print(const std::string &path, const std::string &text) {
  std::printf("%s: %s\n", printable(path).c_str(), printable(text).c_str());
}

/// Returns true if all bytes of the checkpoint are those that were written; else prints a line for each
/// file that has others.
bool verifyFile(const std::string &shown, const std::string &path) {
  CheckpointFiles file(path);
  int64_t bytes = 0;
  std::map<size_t, FileDamage> found;
  for (const auto &[name, tensor] : file.tensors()) {
    for (const LogicalTensor::Shard &shard : tensor.shards) {
      FileDamage &its = found[shard.file];
      ++its.all;
      try {
        file.checkShard(name, shard);
      } catch (const Error &error) {
        if (its.damaged++ == 0)
          its.first = error.what();
      }
    }
    bytes += bytesOf(tensor);
  }
  bool intact = true;
  for (const auto &[number, its] : found)
    if (its.damaged > 0) {
      intact = false;
      std::string others =
          "; " + grouped(its.damaged) + " of its " + grouped(its.all) + " tensors are";
      print(shown, its.first + (its.damaged == 1 ? "" : others));
    }
  if (std::string other =
          otherStep(shown, std::strtoll(valueOf(file, "step").c_str(), nullptr, 10));
      intact && !other.empty()) {
    print(shown, other);
    return false;
  }
  if (intact)
    print(shown, "undamaged: " + std::to_string(file.tensors().size()) + " tensors, " +
                     grouped(bytes) + " bytes" + (file.note().empty() ? "" : "; " + file.note()));
  return intact;
}

/// The same; what cannot be read at all is one line, which does not end the search.
template <typename Verify> bool isIntact(const std::string &path, Verify verify) {
  try {
    return verify();
  } catch (const Error &error) {
    print(path, error.what());
    return false;
  }
}

/// Verifies all checkpoints that a path names.
bool verifyPath(const std::string &path) {
  std::error_code none;
  if (!fs::is_directory(path, none))
    return verifyFile(path, path);
  std::vector<CheckpointEntry> found = checkpointsIn(path);
  bool intact = true;
  for (const std::string &name : damagedNames(path)) {
    print(path + "/" + name, "is not a folder");
    intact = false;
  }
  if (found.empty() && intact)
    newestCheckpoint(path); // says what is missing
  for (const CheckpointEntry &entry : found)
    intact &=
        isIntact(entry.path, [&] { return verifyFile(entry.path, checkpointFile(entry.path)); });
  return intact;
}

int verify(const Words &words) {
  if (words.empty())
    fail("verify takes a folder or file, or several; --help says more");
  bool intact = true;
  bool areThere = true;
  for (const std::string &path : words)
    if (std::error_code none; fs::exists(path, none)) {
      intact &= isIntact(path, [&] { return verifyPath(path); });
    } else {
      print(path, "no such file or folder");
      areThere = false;
    }
  return !areThere ? 2 : intact ? 0 : 1;
}

//===-- merge -------------------------------------------------------------------------------===//

int merge(const Words &words) {
  std::string path, output;
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == "-o" && i + 1 < words.size())
      output = words[++i];
    else if (path.empty() && words[i][0] != '-')
      path = words[i];
    else
      fail("merge: unexpected '%s'; --help says more", words[i].c_str());
  if (path.empty() || output.empty())
    fail("merge takes a checkpoint, and -o FILE.safetensors; --help says more");
  CheckpointFiles file(fileOf(path));
  fs::path from = fs::absolute(file.path()), to = fs::absolute(output);
  std::error_code none;
  // A folder for checkpoints, or any other folder with a file of tensors, may have more files.
  bool isWholeFolder = from.filename() == kUnshardedName || from.filename() == kIndexName;
  if (fs::equivalent(from, to, none) ||
      (isWholeFolder && fs::equivalent(from.parent_path(), to.parent_path(), none)))
    fail("-o: %s would lie in the checkpoint that is read; choose another name", output.c_str());
  std::map<std::string, std::string> metadata = file.metadata();
  for (const char *own : {"save", "crc32c", "block_crc32c"})
    metadata.erase(own);
  metadata["format"] = kUnshardedFormat;
  std::vector<SafetensorsWriter::Entry> entries;
  for (const auto &[name, tensor] : file.tensors())
    entries.push_back({name, tensor.dtype, tensor.shape});
  SafetensorsWriter writer(output, entries, metadata);
  int64_t bytes = 0;
  for (const SafetensorsWriter::Entry &entry : entries) {
    std::vector<unsigned char> values = read(file, entry.name);
    writer.write(values.data(), int64_t(values.size()));
    bytes += int64_t(values.size());
  }
  writer.commit();
  std::printf("wrote %s: %zu tensors, %s bytes\n", printable(output).c_str(), entries.size(),
              grouped(bytes).c_str());
  return 0;
}

//===-- diff --------------------------------------------------------------------------------===//

constexpr int64_t kBlock = 4096;

/// Returns up to kBlock elements of a tensor of floats.
std::vector<double> doublesOf(const std::vector<unsigned char> &bytes, DType dtype, int64_t at) {
  int64_t width = sizeOf(dtype), count = std::min(kBlock, int64_t(bytes.size()) / width - at);
  std::vector<double> values(static_cast<size_t>(count));
  const unsigned char *from = bytes.data() + at * width;
  if (dtype == DType::Float64) {
    std::memcpy(values.data(), from, size_t(count * width));
    return values;
  }
  std::vector<float> narrow(values.size());
  convertToFloat(narrow.data(), from, dtype, count);
  std::copy(narrow.begin(), narrow.end(), values.begin());
  return values;
}

/// Returns how two tensors of one type and shape differ; "" if all their bits are equal.
std::string difference(const LogicalTensor &tensor, const std::vector<unsigned char> &a,
                       const std::vector<unsigned char> &b) {
  if (a == b)
    return "";
  int64_t elements = tensor.shape.elements(), width = sizeOf(tensor.dtype), differ = 0;
  for (int64_t i = 0; i < elements; ++i)
    differ += std::memcmp(&a[size_t(i * width)], &b[size_t(i * width)], size_t(width)) != 0;
  std::string text =
      grouped(differ) + " of " + grouped(elements) + (elements == 1 ? " element" : " elements");
  if (!isFloat(tensor.dtype))
    return text;
  double largest = 0, scale = 0;
  int64_t infinite = 0; // elements that differ, and of which one is infinite or NaN
  for (int64_t at = 0; at < elements; at += kBlock) {
    std::vector<double> x = doublesOf(a, tensor.dtype, at), y = doublesOf(b, tensor.dtype, at);
    for (size_t i = 0; i < x.size(); ++i) {
      size_t byte = size_t(at * width) + i * size_t(width);
      if (std::isfinite(x[i]))
        scale = std::fmax(scale, std::fabs(x[i]));
      if (std::isfinite(x[i]) && std::isfinite(y[i]))
        largest = std::fmax(largest, std::fabs(x[i] - y[i]));
      else
        infinite += std::memcmp(&a[byte], &b[byte], size_t(width)) != 0;
    }
  }
  char numbers[96];
  std::snprintf(numbers, sizeof(numbers), ", by up to %.3g (max of the first: %.3g)", largest,
                scale);
  return text + (infinite ? ", " + grouped(infinite) + " infinite or NaN" : "") +
         (infinite < differ ? numbers : "");
}

int compare(const Words &words) {
  if (words.size() != 2)
    fail("diff takes two checkpoints; --help says more");
  CheckpointFiles a(fileOf(words[0])), b(fileOf(words[1]));
  int64_t differences = 0; // the program's name is none: another layout has another
  auto say = [&](const std::string &what, const std::string &how) {
    std::printf("%s: %s\n", printable(what).c_str(), printable(how).c_str());
    ++differences;
  };
  for (const char *key :
       {"optimizer", "step", "skipped_steps", "seed", "order", "data", "samples_per_step"})
    if (std::string x = valueOf(a, key), y = valueOf(b, key); x != y)
      say(key, "'" + x + "' and '" + y + "'");
  std::set<std::string> names;
  for (const CheckpointFiles *file : {&a, &b})
    for (const auto &[name, tensor] : file->tensors())
      names.insert(name);
  for (const std::string &name : names) {
    auto x = a.tensors().find(name), y = b.tensors().find(name);
    if (x == a.tensors().end() || y == b.tensors().end()) {
      say(name, std::string("only in the ") + (y == b.tensors().end() ? "first" : "second"));
      continue;
    }
    const LogicalTensor &one = x->second, &other = y->second;
    if (one.dtype != other.dtype || !(one.shape == other.shape)) {
      say(name, std::string(typeName(one.dtype)) + " " + toString(one.shape) + " and " +
                    typeName(other.dtype) + " " + toString(other.shape));
      continue;
    }
    if (std::string how = difference(one, read(a, name), read(b, name)); !how.empty())
      say(name, how);
  }
  if (differences == 0)
    std::printf("no difference: %zu tensors\n", names.size());
  return differences == 0 ? 0 : 1;
}

struct Command {
  const char *name;
  int (*run)(const Words &words);
};

constexpr Command kCommands[] = {
    {"ls", list}, {"verify", verify}, {"merge", merge}, {"diff", compare}};

} // namespace

int main(int argc, char **argv) {
  Words words(argv + 1, argv + argc);
  bool wantsHelp = words.empty();
  for (const std::string &word : words)
    wantsHelp |= word == "--help" || word == "-h";
  if (wantsHelp) {
    std::fputs(kUsage, words.empty() ? stderr : stdout);
    return words.empty() ? 2 : 0;
  }
  try {
    for (const std::string &word : words)
      if (word.size() > 1 && word[0] == '-' && (word != "-o" || words[0] != "merge"))
        fail("unknown option '%s'; --help says more", word.c_str());
    for (const Command &command : kCommands)
      if (words[0] == command.name) {
        int status = command.run(Words(words.begin() + 1, words.end()));
        if (std::fflush(stdout) != 0)
          fail("cannot write to the standard output: %s", std::strerror(errno));
        return status;
      }
    fail("'%s' is none of ls, verify, merge, diff", words[0].c_str());
  } catch (const std::exception &error) {
    std::fflush(stdout);
    std::fprintf(stderr, "partita checkpoint: error: %s\n", printable(error.what()).c_str());
    return 2;
  }
}
