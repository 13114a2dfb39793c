# TOML is read by the headers of toml++. Without version 3 (Ubuntu 22.04 has version 2) `hdpsim import` reads no TOML,
# and says so.
find_package(tomlplusplus 3 CONFIG QUIET)
if(tomlplusplus_FOUND)
  target_sources(hdpsim_import PRIVATE ${CMAKE_CURRENT_LIST_DIR}/toml/toml_document.cpp)
  get_target_property(include tomlplusplus::tomlplusplus INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(hdpsim_import SYSTEM PRIVATE ${include})
else()
  target_sources(hdpsim_import PRIVATE ${CMAKE_CURRENT_LIST_DIR}/toml/no_toml_document.cpp)
  message(STATUS "No libtomlplusplus-dev of version 3: `hdpsim import` reads no TOML")
endif()
