# The two functions that every folder uses: one library, one test binary. Includes are written from
# the repository root, e.g. #include "planner/plan/plan.h".
include_guard()

find_program(TESSERA_CCACHE ccache)
if(TESSERA_CCACHE)
  # Sloppiness: without it files that use a precompiled header are not cached. External sum: such
  # files are looked up by what the header was made of, not by its bytes.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 "${TESSERA_CCACHE}")
endif()

if(TESSERA_SANITIZE)
  add_compile_options(-fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TESSERA_SANITIZE})
  if(TESSERA_SANITIZE MATCHES "undefined")
    # A null pointer ends the program without them, and checks at every access take a fifth of the
    # compiling.
    add_compile_options(-fno-sanitize=null,vptr)
  endif()
endif()

# With TESSERA_UNITY the sources of a target are compiled in groups, as cmake/unity_groups.py finds
# them: half the work from nothing, more of it after an edit.
function(tessera_unity name)
  get_target_property(sources ${name} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$].*\\.cc$")
  list(LENGTH sources count)
  if(NOT TESSERA_UNITY OR count LESS 2)
    return()
  endif()
  execute_process(
    COMMAND python3 "${PROJECT_SOURCE_DIR}/cmake/unity_groups.py" ${sources}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  string(REPLACE ";" " " groups "${groups}")
  string(REPLACE "\n" ";" groups "${groups}")
  set(number 0)
  foreach(group ${groups})
    math(EXPR number "${number} + 1")
    string(REPLACE " " ";" members "${group}")
    set_source_files_properties(${members} PROPERTIES UNITY_GROUP ${name}_${number})
  endforeach()
  # An edit can make two sources of a group clash: group them anew. One spelling of each path: ninja
  # takes ../model/fixture.cc in one folder and fixture.cc in another for two rules of one file.
  foreach(source ${sources})
    get_filename_component(path "${source}" ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  endforeach()
endfunction()

function(tessera_compile_settings name)
  tessera_unity(${name})
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_compile_features(${name} PUBLIC cxx_std_20)
  # GCC 12 warns of overlapping copies in std::string's own operator+ (GCC PR 105651).
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Wno-missing-field-initializers
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                         $<$<BOOL:${TESSERA_WERROR}>:-Werror>)
endfunction()

# What most libraries without torch and Qt include, compiled once where everything is built from
# nothing: a tenth of their compiling. Elsewhere every source shows that it includes what it needs.
set(TESSERA_LIBRARY_HEADER)
if(TESSERA_UNITY)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/library_header.cc" CONTENT "")
  add_library(tessera_library_header STATIC "${PROJECT_BINARY_DIR}/library_header.cc")
  tessera_compile_settings(tessera_library_header)
  target_precompile_headers(tessera_library_header PRIVATE
    <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <numeric>
    <optional> <set> <span> <string> <string_view> <utility> <variant> <vector>)
  set(TESSERA_LIBRARY_HEADER tessera_library_header)
endif()

# tessera_library(NAME SOURCES a.cc ... [PUBLIC lib ...] [PRIVATE lib ...])
# It takes the precompiled header of the target TESSERA_LIBRARY_HEADER, which may be empty.
function(tessera_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(tessera_${name} STATIC ${arg_SOURCES})
  add_library(tessera::${name} ALIAS tessera_${name})
  set_target_properties(tessera_${name} PROPERTIES EXPORT_NAME ${name})
  tessera_compile_settings(tessera_${name})
  if(TESSERA_LIBRARY_HEADER)
    target_precompile_headers(tessera_${name} REUSE_FROM ${TESSERA_LIBRARY_HEADER})
  endif()
  target_link_libraries(tessera_${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
endfunction()

# tessera_test(NAME SOURCES a_test.cc ... LIBS lib ... [LABEL label] [RANKS n] [LONG])
# One GoogleTest binary, run as one CTest entry; scripts/test.sh counts the cases. With RANKS it
# runs under mpirun on so many ranks (and brings its own main). LONG: it calculates so much, as a
# search of many plans, that it takes a minute and more under sanitizers; it is there with
# TESSERA_LONG_TESTS alone.
# It takes TESSERA_TEST_OPTIONS, and the precompiled header of the target TESSERA_TEST_HEADER; both
# may be empty (tests/CMakeLists.txt).
function(tessera_test name)
  cmake_parse_arguments(arg "LONG" "LABEL;TIMEOUT;RANKS" "SOURCES;LIBS" ${ARGN})
  if(arg_LONG AND NOT TESSERA_LONG_TESTS)
    return()
  endif()
  if(arg_LONG)  # optimised, without the header that is not
    set(TESSERA_TEST_OPTIONS)
    set(TESSERA_TEST_HEADER)
  endif()
  add_executable(${name} ${arg_SOURCES})
  tessera_compile_settings(${name})
  target_compile_options(${name} PRIVATE ${TESSERA_TEST_OPTIONS})
  if(TESSERA_TEST_HEADER)
    target_precompile_headers(${name} REUSE_FROM ${TESSERA_TEST_HEADER})
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gmock_main)
  target_compile_definitions(${name} PRIVATE
    TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TESSERA_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(arg_RANKS)
    add_test(NAME ${name}
      COMMAND ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe -n ${arg_RANKS}
              $<TARGET_FILE:${name}>)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${arg_RANKS})
  else()
    add_test(NAME ${name} COMMAND ${name})
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# Torch's headers take long to parse, so everything that includes them shares one precompiled header
# (tessera_torch_header). The flags must be the same everywhere, hence -fPIC for executables too.
function(tessera_torch_settings name)
  target_link_libraries(${name} PRIVATE tessera_torch)
  # A header that cannot be used (made by another compiler, say) costs time only. The work is done
  # inside torch: -O3 on the calls to it only takes a quarter longer to compile.
  target_compile_options(${name} PRIVATE -fPIC -fpch-preprocess -Wno-error=invalid-pch
                         $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(${name} REUSE_FROM tessera_torch_header)
endfunction()

# tessera_torch_library and tessera_torch_test: as tessera_library and tessera_test, with torch.
function(tessera_torch_library name)
  set(TESSERA_LIBRARY_HEADER)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  tessera_library(${name} SOURCES ${arg_SOURCES} PUBLIC ${arg_PUBLIC} tessera_torch
                  PRIVATE ${arg_PRIVATE})
  tessera_torch_settings(tessera_${name})
endfunction()

function(tessera_torch_test name)
  set(TESSERA_TEST_OPTIONS)
  set(TESSERA_TEST_HEADER)
  tessera_test(${name} ${ARGN})
  tessera_torch_settings(${name})
endfunction()
