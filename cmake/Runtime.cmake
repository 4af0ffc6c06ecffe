# The runtime is a project of its own (runtime/CMakeLists.txt says why), built by g++ into
# build/lib/libpartita_rt_cpu.a (and libpartita_rt_mpi.a, where MPI is installed), its tests into build/bin/partita_rt_tests.
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
    -DPARTITA_SANITIZE=${PARTITA_SANITIZE}
    -DPARTITA_WERROR=${PARTITA_WERROR}
    -DPARTITA_UNITY=${PARTITA_UNITY}
  BUILD_ALWAYS TRUE
  BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target partita_rt_library partita-checkpoint
  INSTALL_COMMAND ""
  TEST_COMMAND ""
  USES_TERMINAL_BUILD TRUE)

# The runtime's tests are part of "all", but not of what a compiled program needs (./demo).
ExternalProject_Add_Step(partita_rt tests
  COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR>
  DEPENDEES build ALWAYS TRUE EXCLUDE_FROM_MAIN TRUE USES_TERMINAL TRUE)
ExternalProject_Add_StepTargets(partita_rt tests)
add_custom_target(partita_rt_all ALL)
add_dependencies(partita_rt_all partita_rt-tests)
add_dependencies(partita-test-depends partita_rt-tests)
