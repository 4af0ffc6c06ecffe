# cmake --install build --prefix FOLDER: the tools, the runtime that programs are built with, and what passes
# of one's own need (docs/tutorials/writing_a_pass.md): headers, libraries and a CMake package.
#
#   bin/                    partita, partita-opt, partita-reduce, partita-interp, partita-lsp-server
#   lib/                    the CPU runtime; lib/partita: the compiler's libraries; lib/cmake/Partita
#   include/partita-mlir/   headers and TableGen files, in a folder of their own: `dialects` is no name
#                           for one that other projects share
#   share/partita/runtime/  sources and headers of the runtime
#   share/man/man1/         man pages, if help2man is there
include(CMakePackageConfigHelpers)

install(TARGETS partita partita-opt partita-reduce partita-interp partita-lsp-server RUNTIME DESTINATION bin)
get_property(libraries GLOBAL PROPERTY PARTITA_LIBRARIES)
install(TARGETS ${libraries} ARCHIVE DESTINATION lib/partita)
install(FILES ${PROJECT_BINARY_DIR}/lib/libpartita_rt_cpu.a DESTINATION lib)
install(FILES ${PROJECT_BINARY_DIR}/lib/libpartita_rt_mpi.a DESTINATION lib OPTIONAL) # where MPI is
install(PROGRAMS ${PROJECT_BINARY_DIR}/bin/partita-checkpoint DESTINATION bin)
install(DIRECTORY runtime/common runtime/cpu runtime/cuda runtime/processes runtime/include DESTINATION share/partita/runtime)
foreach(folder include/partita dialects ${PARTITA_GENERATED}/partita ${PARTITA_GENERATED}/dialects)
  install(DIRECTORY ${folder} DESTINATION include/partita-mlir
    FILES_MATCHING PATTERN *.h PATTERN *.td PATTERN *.inc PATTERN *.def)
endforeach()
# What installed headers include of the runtime's.
install(FILES runtime/include/partita_rt/block_layout.h runtime/include/partita_rt/collectives.h
  runtime/include/partita_rt/exact_steps.h runtime/include/partita_rt/host_device.h
  runtime/include/partita_rt/printable.h runtime/include/partita_rt/workspaces.h
  DESTINATION include/partita-mlir/runtime/include/partita_rt)
configure_package_config_file(cmake/PartitaConfig.cmake.in ${PROJECT_BINARY_DIR}/PartitaConfig.cmake
  INSTALL_DESTINATION lib/cmake/Partita)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PartitaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PartitaConfig.cmake ${PROJECT_BINARY_DIR}/PartitaConfigVersion.cmake
  DESTINATION lib/cmake/Partita)

find_program(HELP2MAN help2man)
if(HELP2MAN)
  install(CODE "execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/docs/man\" \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1\" COMMAND_ERROR_IS_FATAL ANY)")
endif()
