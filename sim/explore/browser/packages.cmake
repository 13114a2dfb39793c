# What the simulator needs of other packages when emscripten compiles it. Headers alone are the system's; the three
# libraries are compiled from the sources that scripts/build_page has fetched to HDPSIM_PACKAGE_SOURCES.
set(HDPSIM_PACKAGE_SOURCES "" CACHE PATH "Folder with the sources of yaml-cpp, pugixml and zlib (scripts/build_page)")
set(sources ${HDPSIM_PACKAGE_SOURCES})
foreach(file yaml-cpp/src/parser.cpp pugixml/src/pugixml.cpp zlib/inflate.c)
  if(NOT EXISTS ${sources}/${file})
    message(FATAL_ERROR "No ${file} in HDPSIM_PACKAGE_SOURCES (${sources}): scripts/build_page fetches it")
  endif()
endforeach()

# /usr/include itself belongs to another C library, so that single folders of it are linked to.
set(headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(package fmt nlohmann CLI)
  if(NOT EXISTS /usr/include/${package})
    message(FATAL_ERROR "No /usr/include/${package}: scripts/build_page installs it")
  endif()
  file(CREATE_LINK /usr/include/${package} ${headers}/${package} SYMBOLIC)
endforeach()

function(hdpsim_header_package target include)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${include})
endfunction()
hdpsim_header_package(fmt::fmt ${headers})
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
hdpsim_header_package(nlohmann_json::nlohmann_json ${headers})
hdpsim_header_package(CLI11::CLI11 ${headers})
hdpsim_header_package(Eigen3::Eigen /usr/include/eigen3)
hdpsim_header_package(Threads::Threads ${headers})  # there are none, and nothing is linked for them

file(GLOB yaml_sources ${sources}/yaml-cpp/src/*.cpp)
add_library(yaml-cpp STATIC ${yaml_sources})
target_include_directories(yaml-cpp SYSTEM PUBLIC ${sources}/yaml-cpp/include)
target_compile_definitions(yaml-cpp PUBLIC YAML_CPP_STATIC_DEFINE)
add_library(hdpsim_pugixml STATIC ${sources}/pugixml/src/pugixml.cpp)
target_include_directories(hdpsim_pugixml SYSTEM PUBLIC ${sources}/pugixml/src)
add_library(pugixml::pugixml ALIAS hdpsim_pugixml)
enable_language(C)
file(GLOB zlib_sources ${sources}/zlib/*.c)
add_library(hdpsim_zlib STATIC ${zlib_sources})
target_include_directories(hdpsim_zlib SYSTEM PUBLIC ${sources}/zlib)
target_compile_options(hdpsim_zlib PRIVATE -include unistd.h)  # its configure would change a header to include it
add_library(ZLIB::ZLIB ALIAS hdpsim_zlib)
