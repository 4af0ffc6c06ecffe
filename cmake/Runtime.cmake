# The runtime is a project of its own (runtime/CMakeLists.txt says why), built by g++ into
# build/lib/libpartita_rt_cpu.a, its tests into build/bin/partita_rt_tests.
include(ExternalProject)

find_program(PARTITA_RT_CXX NAMES g++-12 g++ REQUIRED)
ExternalProject_Add(partita_rt
  SOURCE_DIR ${PROJECT_SOURCE_DIR}/runtime
  BINARY_DIR ${PROJECT_BINARY_DIR}/runtime
  CMAKE_ARGS
    -DCMAKE_CXX_COMPILER=${PARTITA_RT_CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
    -DCMAKE_BUILD_TYPE=Release
    -DPARTITA_RT_OUTPUT=${PROJECT_BINARY_DIR}
  BUILD_ALWAYS TRUE
  INSTALL_COMMAND ""
  TEST_COMMAND ""
  USES_TERMINAL_BUILD TRUE)
