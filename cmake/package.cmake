# The installed package: bin/minfer, include/minfer, one static library with every layer up to the engine, and what
# find_package(minfer) needs. A program that uses it writes:
#   find_package(minfer REQUIRED)
#   target_link_libraries(program PRIVATE minfer::minfer)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The layers' objects again, in one archive: nothing is compiled twice.
set(objects)
foreach(layer base tensor quant gguf trace tokenizer chat graph backend plan model kv sample grammar engine)
  get_target_property(type minfer_${layer} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:minfer_${layer}>)
  endif()
endforeach()
add_library(minfer_package STATIC ${objects})
set_target_properties(minfer_package PROPERTIES OUTPUT_NAME minfer EXPORT_NAME minfer LINKER_LANGUAGE CXX)
target_include_directories(minfer_package INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(minfer_package INTERFACE cxx_std_20)
target_link_libraries(minfer_package PRIVATE fmt::fmt Threads::Threads OpenSSL::Crypto PkgConfig::UTF8PROC)

install(TARGETS minfer_package EXPORT minferTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET minfer)
  install(TARGETS minfer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/minfer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/minfer)
install(EXPORT minferTargets NAMESPACE minfer:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/minferConfig.cmake.in ${CMAKE_BINARY_DIR}/minferConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/minferConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/minferConfig.cmake ${CMAKE_BINARY_DIR}/minferConfigVersion.cmake
        DESTINATION ${package_dir})
