// A library for LD_PRELOAD: the shell runs $BEFORE_FLOCK before the first folder is locked.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>

int flock(int descriptor, int operation) {
  static int calls;
  struct stat status;
  const char *command = getenv("BEFORE_FLOCK");
  if (command && fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode) && calls++ == 0)
    (void)!system(command);
  int (*original)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
  return original(descriptor, operation);
}
