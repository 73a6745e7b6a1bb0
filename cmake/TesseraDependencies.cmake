# What is found, what is missing, and how to get it. Core libraries are required; the executor
# (torch wheel) and the window (Qt 6) are tiers that build only where their parts are.
include_guard()

find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Boost REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(TESSERA_HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
find_path(TESSERA_XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(TESSERA_XXHASH xxhash REQUIRED)
find_path(TESSERA_VALIJSON_INCLUDE valijson/validator.hpp REQUIRED)
find_path(TESSERA_RANDOM123_INCLUDE Random123/philox.h REQUIRED)
find_library(TESSERA_PCRE2 pcre2-8 REQUIRED)
find_library(TESSERA_UTF8PROC utf8proc REQUIRED)
if(TESSERA_TESTS)
  find_package(GTest REQUIRED)
  find_path(TESSERA_RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
  find_library(TESSERA_RAPIDCHECK rapidcheck REQUIRED)
endif()
find_package(MPI COMPONENTS C)

set(TESSERA_TIERS "core: found" CACHE INTERNAL "")
function(tessera_tier line)
  set(TESSERA_TIERS "${TESSERA_TIERS};${line}" CACHE INTERNAL "")
endfunction()

# --- Python: brings torch, and what tests compare with -------------------------------------------
if(NOT TESSERA_PYTHON)
  if(DEFINED ENV{TESSERA_VENV})
    set(TESSERA_PYTHON "$ENV{TESSERA_VENV}/bin/python3")
  elseif(EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python3")
    set(TESSERA_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python3")
  else()
    set(TESSERA_PYTHON python3)
  endif()
endif()

# --- Parquet: libarrow and libparquet of pyarrow's wheel, which has their headers
set(TESSERA_PARQUET AUTO CACHE STRING "Read Parquet files: ON, OFF or AUTO (when pyarrow is found)")
set(TESSERA_HAVE_PARQUET FALSE)
if(NOT TESSERA_PARQUET STREQUAL "OFF")
  execute_process(
    COMMAND ${TESSERA_PYTHON} -c
      "import importlib.util as u, os; print(os.path.dirname(u.find_spec('pyarrow').origin))"
    OUTPUT_VARIABLE TESSERA_ARROW_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(GLOB TESSERA_ARROW_LIBRARIES
    "${TESSERA_ARROW_DIR}/libarrow.so.*00" "${TESSERA_ARROW_DIR}/libparquet.so.*00")
  list(LENGTH TESSERA_ARROW_LIBRARIES count)
  if(TESSERA_ARROW_DIR AND count EQUAL 2)
    set(TESSERA_HAVE_PARQUET TRUE)
    add_library(tessera_parquet INTERFACE)
    target_include_directories(tessera_parquet SYSTEM INTERFACE "${TESSERA_ARROW_DIR}/include")
    target_link_libraries(tessera_parquet INTERFACE ${TESSERA_ARROW_LIBRARIES})
    target_link_options(tessera_parquet INTERFACE "-Wl,-rpath,${TESSERA_ARROW_DIR}"
      "-Wl,-rpath-link,${TESSERA_ARROW_DIR}" "-Wl,--allow-shlib-undefined")
    tessera_tier("Parquet: pyarrow in ${TESSERA_ARROW_DIR}")
  elseif(TESSERA_PARQUET STREQUAL "ON")
    message(FATAL_ERROR "Parquet needs pyarrow==26.0.1 beside torch: scripts/setup.sh installs it")
  else()
    tessera_tier("Parquet: missing pyarrow==26.0.1 (scripts/setup.sh)")
  endif()
endif()

# --- executor: torch from a Python wheel, linked by path (find_package(Torch) would demand a CUDA
# toolkit although nothing here needs one) -----------------------------------------------------
set(TESSERA_HAVE_TORCH FALSE)
if(NOT TESSERA_EXECUTOR STREQUAL "OFF")
  execute_process(
    COMMAND ${TESSERA_PYTHON} -c
      "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
    OUTPUT_VARIABLE TESSERA_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(EXISTS "${TESSERA_TORCH_DIR}/lib/libtorch_cpu.so")
    set(TESSERA_HAVE_TORCH TRUE)
    get_filename_component(TESSERA_SITE "${TESSERA_TORCH_DIR}" DIRECTORY)
    add_library(tessera_torch INTERFACE)
    target_include_directories(tessera_torch SYSTEM INTERFACE
      "${TESSERA_TORCH_DIR}/include"
      "${TESSERA_TORCH_DIR}/include/torch/csrc/api/include"
      "${TESSERA_SITE}/nvidia/cu13/include"
      "${TESSERA_SITE}/nvidia/nccl/include")
    # Only what is called is linked; libtorch_cuda is kept although nothing names it directly.
    target_link_libraries(tessera_torch INTERFACE
      "${TESSERA_TORCH_DIR}/lib/libtorch_cpu.so"
      "${TESSERA_TORCH_DIR}/lib/libc10.so"
      "-Wl,--no-as-needed"
      "${TESSERA_TORCH_DIR}/lib/libtorch_cuda.so"
      "${TESSERA_TORCH_DIR}/lib/libc10_cuda.so"
      "-Wl,--as-needed"
      "${TESSERA_SITE}/nvidia/nccl/lib/libnccl.so.2"
      "${TESSERA_SITE}/nvidia/cu13/lib/libcudart.so.13")
    foreach(folder "${TESSERA_TORCH_DIR}/lib" "${TESSERA_SITE}/nvidia/nccl/lib"
                   "${TESSERA_SITE}/nvidia/cu13/lib" "${TESSERA_SITE}/nvidia/cudnn/lib")
      target_link_options(tessera_torch INTERFACE "-Wl,-rpath,${folder}")
    endforeach()
    target_link_options(tessera_torch INTERFACE
      "-Wl,-rpath-link,${TESSERA_TORCH_DIR}/lib" "-Wl,--allow-shlib-undefined")
    # The precompiled header of everything that includes torch (tessera_torch_settings).
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/torch_header.cc" CONTENT "")
    add_library(tessera_torch_header STATIC "${PROJECT_BINARY_DIR}/torch_header.cc")
    tessera_compile_settings(tessera_torch_header)
    target_link_libraries(tessera_torch_header PRIVATE tessera_torch)
    target_compile_options(tessera_torch_header PRIVATE -fPIC -fpch-preprocess)
    target_precompile_headers(tessera_torch_header PRIVATE
      "${PROJECT_SOURCE_DIR}/executor/tensor/torch.h")
    # Not through ccache: 550 MB, and of use to this build tree only. Written to the disk at once:
    # a header with holes is refused in every later compilation (a warning of an undefined macro
    # whose name ends where the hole begins), and each then takes 10 s longer.
    set_target_properties(tessera_torch_header PROPERTIES
      CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/write_to_disk.sh")
    file(READ "${TESSERA_TORCH_DIR}/version.py" TESSERA_TORCH_VERSION)
    file(SHA256 "${PROJECT_SOURCE_DIR}/executor/tensor/torch.h" TESSERA_TORCH_HEADER_HASH)
    string(JOIN " " torch_header_is "${TESSERA_TORCH_VERSION}" "${TESSERA_TORCH_HEADER_HASH}"
      "${CMAKE_BUILD_TYPE}" "${CMAKE_CXX_FLAGS}" "${TESSERA_SANITIZE}")
    file(WRITE
      "${PROJECT_BINARY_DIR}/CMakeFiles/tessera_torch_header.dir/cmake_pch.hxx.gch.sum"
      "${torch_header_is}")
    tessera_tier("executor: torch in ${TESSERA_TORCH_DIR}")
  elseif(TESSERA_EXECUTOR STREQUAL "ON")
    message(FATAL_ERROR "The executor needs the torch wheel: scripts/setup.sh installs it, or pass "
                        "-DTESSERA_PYTHON=<python with torch 2.11.0>")
  else()
    string(CONCAT line "executor: missing the torch wheel "
           "(scripts/setup.sh, or pip install torch==2.11.0)")
    tessera_tier("${line}")
  endif()
endif()
# --- kernels: nvcc (a CUDA toolkit's, or the one of the venv) and cuDNN's header-only front end
set(TESSERA_HAVE_KERNELS FALSE)
if(TESSERA_HAVE_TORCH AND NOT TESSERA_KERNELS STREQUAL "OFF")
  find_program(TESSERA_NVCC nvcc
    HINTS ENV CUDA_PATH /usr/local/cuda "${TESSERA_SITE}/nvidia/cu13"
    PATH_SUFFIXES bin)
  find_path(TESSERA_CUDNN_FRONTEND cudnn_frontend.h HINTS "${TESSERA_SITE}/include")
  if(TESSERA_NVCC AND TESSERA_CUDNN_FRONTEND)
    set(TESSERA_HAVE_KERNELS TRUE)
    tessera_tier("kernels: ${TESSERA_NVCC}")
  elseif(TESSERA_KERNELS STREQUAL "ON")
    message(FATAL_ERROR "Kernels need nvcc 13 and nvidia-cudnn-frontend==1.32.0: scripts/setup.sh "
                        "installs both")
  else()
    tessera_tier("kernels: missing nvcc 13 or nvidia-cudnn-frontend==1.32.0 (scripts/setup.sh)")
  endif()
endif()
if(MPI_C_FOUND)
  tessera_tier("MPI: ${MPI_C_VERSION}")
else()
  tessera_tier("MPI: missing (apt install libopenmpi-dev openmpi-bin)")
endif()

set(TESSERA_HAVE_QT FALSE)
if(NOT TESSERA_GUI STREQUAL "OFF")
  find_package(Qt6 QUIET COMPONENTS Widgets Svg PrintSupport Test)
  find_package(QCustomPlotQt6 QUIET)
  find_package(simdjson QUIET)
  if(Qt6_FOUND AND QCustomPlotQt6_FOUND AND simdjson_FOUND)
    set(TESSERA_HAVE_QT TRUE)
    find_program(TESSERA_LRELEASE lrelease PATHS /usr/lib/qt6/bin NO_DEFAULT_PATH)
    if(TESSERA_LRELEASE)
      tessera_tier("window: Qt ${Qt6_VERSION}, English and Chinese")
    else()
      tessera_tier("window: Qt ${Qt6_VERSION}, English alone (apt install qt6-l10n-tools)")
    endif()
  elseif(TESSERA_GUI STREQUAL "ON")
    message(FATAL_ERROR "The window needs Qt 6, QCustomPlot and simdjson: apt install "
                        "qt6-base-dev qt6-svg-dev libqcustomplot-dev libsimdjson-dev")
  else()
    tessera_tier("window: missing (apt install qt6-base-dev qt6-svg-dev libqcustomplot-dev libsimdjson-dev)")
  endif()
endif()

function(tessera_print_tiers)
  message(STATUS "Tessera tiers:")
  foreach(line ${TESSERA_TIERS})
    message(STATUS "  ${line}")
  endforeach()
endfunction()
