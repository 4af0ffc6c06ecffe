// A test fixture with a folder of its own, which is removed with it.

#ifndef PARTITA_RT_TESTS_TEMPORARY_FOLDER_H
#define PARTITA_RT_TESTS_TEMPORARY_FOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace partita_rt {

class InTemporaryFolder : public testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/partita-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern));
    folder = pattern;
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    ASSERT_FALSE(error) << folder << ": " << error.message();
  }

  std::string folder;
};

/// The same, with files in it.
class Files : public InTemporaryFolder {
protected:
  std::string write(const char *name, const std::string &bytes) {
    std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  template <typename T> static std::string bytesOf(const std::vector<T> &values) {
    return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
  }
  int64_t filesInFolder() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }
};

} // namespace partita_rt

#endif // PARTITA_RT_TESTS_TEMPORARY_FOLDER_H
