# Instruction-set flags, per file of src/kernels only (STYLE.md 3): *_avx2.c, *_avx512.c.
# The files compile to stubs where the compiler does not know the instruction set. Preset `emulate` compiles *_avx512.c with
# portable stand-ins for the intrinsics, so that tests run them on machines without AVX-512.
option(GROVE_EMULATE_AVX512 "tests only: AVX-512 kernels by portable code (libsimde-dev)" OFF)
include(CheckCCompilerFlag)
check_c_compiler_flag(-mavx2 GROVE_HAS_AVX2)
check_c_compiler_flag(-mavx512f GROVE_HAS_AVX512)
# With sanitizers unrolled kernels take minutes to compile: none for an instruction set that this machine cannot run, and -O3 in
# optimised builds only.
if(GROVE_SANITIZE AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo avx512_flags REGEX "avx512dq" LIMIT_COUNT 1)
  if(NOT avx512_flags)
    set(GROVE_HAS_AVX512 FALSE)
  endif()
endif()
function(grove_kernel_flags)
  set(optimise "$<$<CONFIG:Release,RelWithDebInfo>:-O3>")
  foreach(source ${ARGN})
    if(source MATCHES "/kernels/[^/]*_avx2\\.c$" AND GROVE_HAS_AVX2)
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;${optimise}")
    elseif(source MATCHES "/kernels/[^/]*_avx512\\.c$" AND GROVE_EMULATE_AVX512)
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx2;-mfma;-DGRVI_AVX512=1;-include;${PROJECT_SOURCE_DIR}/tests/support/emulated_avx512.h;-Wno-psabi;-fopenmp-simd")
    elseif(source MATCHES "/kernels/[^/]*/?isa\\.c$" AND GROVE_EMULATE_AVX512)
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-DGRVI_EMULATE_AVX512=1")
    elseif(source MATCHES "/kernels/[^/]*_avx512\\.c$" AND GROVE_HAS_AVX512)
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-DGRVI_AVX512=1;-mavx512f;-mavx512vl;-mavx512dq;-mavx512bw;-mfma;-mprefer-vector-width=512;${optimise}")
    endif()
    if(source MATCHES "/kernels/" AND GROVE_SANITIZE STREQUAL "fuzzer")
      # no parser is in there, and unrolled loops with all checks take minutes to compile
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=all;-O0")
    endif()
  endforeach()
endfunction()
