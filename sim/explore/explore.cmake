# The server of `hdpsim explore` is optional: without libcpp-httplib the command says so. Debian has it as a shared
# library alone, which takes no part in static builds.
set(page ${CMAKE_CURRENT_LIST_DIR}/page)
hdpsim_embed(hdpsim_explore sim/explore/explore_page_files.h hdpsim::explore_files
  explore_html=${page}/explore.html explore_css=${page}/explore.css program_js=${page}/program.js
  settings_js=${page}/settings.js
  controls_js=${page}/controls.js results_js=${page}/results.js explore_js=${page}/explore.js)

if(NOT HDPSIM_STATIC AND NOT EMSCRIPTEN)
  find_package(PkgConfig)
  if(PkgConfig_FOUND)
    pkg_check_modules(HTTPLIB IMPORTED_TARGET cpp-httplib)
  endif()
endif()
set(HDPSIM_EXPLORE_SERVED OFF CACHE INTERNAL "Whether hdpsim explore has a server")
if(TARGET PkgConfig::HTTPLIB)
  set(HDPSIM_EXPLORE_SERVED ON CACHE INTERNAL "")
  target_sources(hdpsim_explore PRIVATE ${CMAKE_CURRENT_LIST_DIR}/server/http_server.cpp
    ${CMAKE_CURRENT_LIST_DIR}/server/connection.cpp)
  target_link_libraries(hdpsim_explore PRIVATE PkgConfig::HTTPLIB)
else()
  target_sources(hdpsim_explore PRIVATE ${CMAKE_CURRENT_LIST_DIR}/server/no_http_server.cpp)
  message(STATUS "No libcpp-httplib: `hdpsim explore` has no server")
endif()
if(EMSCRIPTEN)
  include(${CMAKE_CURRENT_LIST_DIR}/browser/browser.cmake)
endif()
