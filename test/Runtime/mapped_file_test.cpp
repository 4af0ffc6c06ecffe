#include "common/tensors/mapped_file.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <memory>
#include <unistd.h>
#include <vector>

using namespace partita_rt;

/// Makes a file of two pages, the second of which is gone when the file is cut to the first.
static std::string twoPages() {
  std::string path = ::testing::TempDir() + "mapped_file_test." + std::to_string(getpid());
  FILE *file = std::fopen(path.c_str(), "w");
  for (long i = 0; i < 2 * sysconf(_SC_PAGESIZE); ++i)
    std::fputc('a', file);
  std::fclose(file);
  return path;
}

static int lastByte(const MappedFile &file) {
  const volatile unsigned char *data = file.data();
  return data[file.size() - 1];
}

TEST(MappedFile, ThatBecomesShorterEndsTheProcessWithItsName) {
  std::string path = twoPages();
  EXPECT_EXIT(
      {
        MappedFile file(path, "weights");
        if (truncate(path.c_str(), sysconf(_SC_PAGESIZE)) == 0)
          lastByte(file);
      },
      ::testing::ExitedWithCode(1), path + ": the file became shorter while it was read");
  unlink(path.c_str());
}

TEST(MappedFile, ManyAreMappedAtOnce) {
  std::string path = twoPages();
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<MappedFile>> files;
    for (int i = 0; i < 300; ++i) // more than the table of mappings holds
      files.push_back(std::make_unique<MappedFile>(path, "weights"));
    EXPECT_EQ(lastByte(*files.front()), 'a');
    EXPECT_EQ(lastByte(*files.back()), 'a');
  }
  unlink(path.c_str());
}
