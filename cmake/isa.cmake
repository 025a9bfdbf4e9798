# Each ISA folder of the cpu backend is compiled with its own flags and nothing else is; which table of kernels runs is
# decided at run time by what the processor has (src/backend/cpu/select.cpp).
function(minfer_isa folder)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cpu/${folder}/*.cpp
       ${CMAKE_SOURCE_DIR}/src/backend/testing/${folder}/*.cpp)
  list(FILTER files EXCLUDE REGEX "_test\\.cpp$")
  if(files)
    set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${ARGN}")
  endif()
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  minfer_isa(avx2 -O3 -mavx2 -mfma -mf16c)
  minfer_isa(avxvnni -O3 -mavx2 -mfma -mf16c -mavxvnni)
  # The kernels of avxvnni with the encoding that AVX-512 processors have, for their test.
  minfer_isa(avxvnni_evex -O3 -mavx2 -mfma -mf16c -mavx512f -mavx512vl -mavx512vnni)
  minfer_isa(avx512 -O3 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Scheduled before registers are given out, the loops load early and spill.
  minfer_isa(neon -O3 -march=armv8.2-a+dotprod+fp16 -fno-schedule-insns)
endif()

# Sanitizers would check every load of the unrolled matmul kernels: minutes of compile time a file. Their test runs them
# on buffers that end at an unmapped page instead (src/backend/cpu/matmul_test.cpp).
if(MINFER_SANITIZE)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cpu/avx2/matmul_*.cpp
       ${CMAKE_SOURCE_DIR}/src/backend/cpu/avxvnni/matmul_*.cpp
       ${CMAKE_SOURCE_DIR}/src/backend/testing/avxvnni_evex/matmul_*.cpp
       ${CMAKE_SOURCE_DIR}/src/backend/cpu/avx512/matmul_*.cpp ${CMAKE_SOURCE_DIR}/src/backend/cpu/neon/matmul_*.cpp)
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=all)
endif()
