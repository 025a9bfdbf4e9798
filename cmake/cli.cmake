# The minfer binary: cli/*.cpp, one thin file per command.
find_package(CLI11 REQUIRED)
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cli/*.cpp)
if(cli_sources)
  add_executable(minfer ${cli_sources})
  target_link_libraries(minfer PRIVATE minfer_server minfer_engine nlohmann_json::nlohmann_json CLI11::CLI11)
endif()
