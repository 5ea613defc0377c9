# Third-party libraries, all in Debian 12 (README.md lists the packages).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
pkg_check_modules(JSONC REQUIRED IMPORTED_TARGET json-c)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(LZMA REQUIRED IMPORTED_TARGET liblzma)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
find_package(ZLIB REQUIRED)
find_package(BZip2 REQUIRED)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_library(BLOSC_LIBRARY blosc REQUIRED)
find_path(BLOSC_INCLUDE_DIR blosc.h REQUIRED)

add_library(grove_base_dependencies INTERFACE)
target_include_directories(grove_base_dependencies SYSTEM INTERFACE ${BLOSC_INCLUDE_DIR})
target_link_libraries(grove_base_dependencies INTERFACE PkgConfig::JSONC PkgConfig::YAML PkgConfig::ZSTD PkgConfig::LZ4 PkgConfig::LZMA
  PkgConfig::DEFLATE ZLIB::ZLIB
  BZip2::BZip2 ${BLOSC_LIBRARY} PkgConfig::CURL PkgConfig::XXHASH Threads::Threads ${CMAKE_DL_LIBS} m)

add_library(grove_full_dependencies INTERFACE)
target_link_libraries(grove_full_dependencies INTERFACE MPI::MPI_C PkgConfig::PNG)
# Open MPI's C++ bindings are never wanted, and its header is not ours to warn about.
target_compile_definitions(grove_full_dependencies INTERFACE OMPI_SKIP_MPICXX=1)

if(GROVE_THREADS STREQUAL "openmp")
  find_package(OpenMP REQUIRED COMPONENTS C)
  target_link_libraries(grove_base_dependencies INTERFACE OpenMP::OpenMP_C)
  set(GROVE_THREADS_VALUE 1)
elseif(GROVE_THREADS STREQUAL "pthreads")
  set(GROVE_THREADS_VALUE 2)
elseif(GROVE_THREADS STREQUAL "serial")
  set(GROVE_THREADS_VALUE 0)
else()
  message(FATAL_ERROR "GROVE_THREADS must be openmp, pthreads or serial, found '${GROVE_THREADS}'")
endif()

# For `grove info`.
set(BLOSC_VERSION "unknown")
file(STRINGS ${BLOSC_INCLUDE_DIR}/blosc.h blosc_version_line REGEX "define BLOSC_VERSION_STRING")
if(blosc_version_line MATCHES "\"([0-9.]+)")
  set(BLOSC_VERSION ${CMAKE_MATCH_1})
endif()
set(GROVE_LIBRARIES "{\"blosc\", \"${BLOSC_VERSION}\"}, {\"bzip2\", \"${BZIP2_VERSION_STRING}\"}, {\"json-c\", \"${JSONC_VERSION}\"}, \
    {\"libcurl\", \"${CURL_VERSION}\"}, {\"libdeflate\", \"${DEFLATE_VERSION}\"}, {\"liblz4\", \"${LZ4_VERSION}\"}, {\"liblzma\", \"${LZMA_VERSION}\"}, {\"libpng\", \"${PNG_VERSION}\"}, \
    {\"libyaml\", \"${YAML_VERSION}\"}, {\"MPI standard\", \"${MPI_C_VERSION}\"}, {\"xxhash\", \"${XXHASH_VERSION}\"}, \
    {\"zlib\", \"${ZLIB_VERSION_STRING}\"}, {\"zstd\", \"${ZSTD_VERSION}\"}")
