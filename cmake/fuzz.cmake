# Fuzz targets: every fuzz/fuzz_<x>.cpp becomes the program fuzz_<x>, linked with libFuzzer and the layers that the file
# names in a line "// Layers: gguf tokenizer" (layers below them come along). Build with the preset "fuzz" (clang), run:
#   build/fuzz/fuzz_gguf -max_total_time=60 build/corpus/gguf tests/data/gguf
# (new inputs go into the first folder, which must exist; further folders are seeds).
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "MINFER_FUZZ needs clang (cmake --preset fuzz), found ${CMAKE_CXX_COMPILER_ID}")
endif()

# The layers' code tells libFuzzer where it goes; only the fuzz programs get libFuzzer's main. The check of indirect calls
# stays off: clang 14 cannot place its data before the parts of a coroutine.
get_property(minfer_targets DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS minfer_targets)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY" OR type STREQUAL "OBJECT_LIBRARY")
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link -fno-sanitize=function)
  endif()
endforeach()

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/fuzz_*.cpp)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  file(STRINGS ${source} layers REGEX "^// Layers:" LIMIT_COUNT 1)
  string(REGEX REPLACE "^// Layers: *" "" layers "${layers}")
  string(REGEX MATCHALL "[a-z]+" layers "${layers}")
  if(NOT layers)
    message(FATAL_ERROR "${source} names no layers: expected a line '// Layers: gguf ...'")
  endif()
  list(TRANSFORM layers PREPEND minfer_)
  add_executable(${name} ${source})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE ${layers})
endforeach()
