# Warnings and sanitizers for grove's own targets (STYLE.md 2).
function(grove_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-qual -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wundef -Wdouble-promotion -Wwrite-strings -Wno-sign-conversion
    -Wno-missing-field-initializers) # option tables leave out what is zero
  # Contraction would make results depend on how the compiler inlines; kernels say fma where they mean it.
  target_compile_options(${target} PRIVATE -ffp-contract=off -fno-math-errno -fno-trapping-math)
  if(CMAKE_C_COMPILER_ID MATCHES Clang)
    target_compile_options(${target} PRIVATE -Wno-unknown-pragmas) # GCC's unroll; clang unrolls constant loops by itself
  endif()
  if(GROVE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_definitions(${target} PRIVATE GRVI_DEBUG=1)
  endif()
endfunction()

if(GROVE_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(GROVE_SANITIZE STREQUAL "fuzzer")
  # what libFuzzer needs to see which code an input reaches; clang only
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(GROVE_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT GROVE_SANITIZE STREQUAL "")
  message(FATAL_ERROR "GROVE_SANITIZE must be empty, 'address', 'fuzzer' or 'thread', found '${GROVE_SANITIZE}'")
endif()
