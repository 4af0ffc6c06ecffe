# partita_library(NAME SOURCES... [LIBS ...] [DEPENDS ...]): one library of the compiler.
# partita_tablegen(OUT_TARGET FILE.td  flag:output ...): TableGen outputs below build/include.

include(${CMAKE_CURRENT_LIST_DIR}/Unite.cmake)
set(PARTITA_GENERATED ${PROJECT_BINARY_DIR}/include)
add_library(partita_flags INTERFACE)
target_include_directories(partita_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PARTITA_GENERATED})
target_include_directories(partita_flags SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_compile_options(partita_flags INTERFACE -Wall -Wextra -Wno-unused-parameter -fno-exceptions -fdiagnostics-color)
option(PARTITA_WERROR "Warnings are errors; for the compilers of packages.txt, with which there are none" OFF)
if(PARTITA_WERROR)
  target_compile_options(partita_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(partita_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# Two precompiled headers for the whole compiler: MLIR's headers cost 4 to 7 seconds a file without, the dialects' classes
# another one. partita_pch is what the dialects are built with, partita_dialects_pch all that stands on them.
file(WRITE ${PROJECT_BINARY_DIR}/pch/pch.cpp "")
function(partita_header target header)
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/pch/pch.cpp)
  target_link_libraries(${target} PRIVATE partita_flags)
  target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
endfunction()
partita_header(partita_pch pch.h)

# partita_dialects_header(): called when all dialects are known.
function(partita_dialects_header)
  partita_header(partita_dialects_pch dialects_pch.h)
  get_property(generated GLOBAL PROPERTY PARTITA_TABLEGEN)
  add_dependencies(partita_dialects_pch ${generated})
endfunction()

# The one that a target takes.
function(partita_reuse_header target)
  if(TARGET partita_dialects_pch)
    target_precompile_headers(${target} REUSE_FROM partita_dialects_pch)
  else()
    target_precompile_headers(${target} REUSE_FROM partita_pch)
  endif()
endfunction()

function(partita_tablegen target td)
  set(outputs)
  set(LLVM_TARGET_DEFINITIONS ${CMAKE_CURRENT_SOURCE_DIR}/${td})
  foreach(item ${ARGN})
    string(REGEX MATCH "^([^:]+):(.+)$" _ ${item})
    set(output ${PARTITA_GENERATED}/${CMAKE_MATCH_2})
    get_filename_component(folder ${output} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    string(REPLACE "|" ";" flags "${CMAKE_MATCH_1}")
    set(args)
    foreach(flag ${flags})
      list(APPEND args -${flag})
    endforeach()
    # MLIR's statistics count nothing in a release build of LLVM (partita/Support/PassStatistic.h).
    set(edit)
    if("-gen-pass-decls" IN_LIST args)
      set(edit COMMAND sed -i s/::mlir::Pass::Statistic/::partita::PassStatistic/ ${output}.tmp)
    endif()
    file(GLOB_RECURSE tds CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/dialects/*.td)
    add_custom_command(OUTPUT ${output}
      COMMAND ${LLVM_BINDIR}/mlir-tblgen ${args} -I ${PROJECT_SOURCE_DIR} -I ${PROJECT_SOURCE_DIR}/include
              -I ${LLVM_PREFIX}/include ${CMAKE_CURRENT_SOURCE_DIR}/${td} -o ${output}.tmp
      ${edit}
      COMMAND ${CMAKE_COMMAND} -E copy_if_different ${output}.tmp ${output}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${td} ${tds} COMMENT "TableGen ${CMAKE_MATCH_2}")
    list(APPEND outputs ${output})
  endforeach()
  add_custom_target(${target} DEPENDS ${outputs})
  set_property(GLOBAL APPEND PROPERTY PARTITA_TABLEGEN ${target})
endfunction()

function(partita_library name)
  cmake_parse_arguments(ARG "" "" "LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC partita_flags ${ARG_LIBS})
  partita_reuse_header(${name})
  partita_unite(${name} ${PROJECT_SOURCE_DIR})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  get_property(generated GLOBAL PROPERTY PARTITA_TABLEGEN)
  if(generated)
    add_dependencies(${name} ${generated})
  endif()
  set_property(GLOBAL APPEND PROPERTY PARTITA_LIBRARIES ${name})
endfunction()

# partita_tool(NAME SOURCES... LIBS ...): a program in build/bin, linked against the shared MLIR.
function(partita_tool name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE partita_flags ${ARG_LIBS} MLIR LLVM)
  # The header was compiled with -fPIC; CMake would give programs -fPIE, which does not fit it.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  partita_reuse_header(${name})
  partita_unite(${name} ${PROJECT_SOURCE_DIR})
  get_property(generated GLOBAL PROPERTY PARTITA_TABLEGEN)
  if(generated)
    add_dependencies(${name} ${generated})
  endif()
endfunction()

# partita_passes(Folder): TableGen for include/partita/<Folder>/Passes.td, in running order, and a
# place in registerEverything: include/partita/<Folder>/Passes.h has the GEN_PASS_REGISTRATION within
# namespace partita.
function(partita_passes folder)
  set(LLVM_TARGET_DEFINITIONS)
  file(RELATIVE_PATH up ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include/partita/${folder}/Passes.td)
  partita_tablegen(Partita${folder}PassesIncGen ${up}
    "gen-pass-decls|name=${folder}:partita/${folder}/Passes.h.inc")
  set_property(GLOBAL APPEND PROPERTY PARTITA_PASS_FOLDERS ${folder})
  link_libraries(PartitaSupport) # the folder's library: statistics
endfunction()
