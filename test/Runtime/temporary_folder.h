// A test with a folder of its own, which goes with it.

#ifndef PARTITA_RT_TESTS_TEMPORARY_FOLDER_H
#define PARTITA_RT_TESTS_TEMPORARY_FOLDER_H

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

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

} // namespace partita_rt

#endif // PARTITA_RT_TESTS_TEMPORARY_FOLDER_H
