# The page of `hdpsim explore` without a server: hdpsim_browser_page is a folder of static files (scripts/build_page).
set(browser ${CMAKE_CURRENT_LIST_DIR})
add_executable(hdpsim_browser ${browser}/engine.cpp)
target_link_libraries(hdpsim_browser PRIVATE hdpsim_explore)
target_compile_definitions(hdpsim_browser PRIVATE HDPSIM_VERSION="${PROJECT_VERSION}")
# Stacks are as deep as on Linux; no file is read but those in the program.
target_link_options(hdpsim_browser PRIVATE -sMODULARIZE=1 -sEXPORT_NAME=make_engine -sENVIRONMENT=worker,node
  -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=8MB -sEXPORTED_RUNTIME_METHODS=ccall,FS
  -sEXPORTED_FUNCTIONS=_malloc,_free -sFORCE_FILESYSTEM=1)
foreach(folder configs traces calib/profiles)
  target_link_options(hdpsim_browser PRIVATE
    "SHELL:--embed-file ${PROJECT_SOURCE_DIR}/${folder}@/hdpsim/${folder}")
endforeach()

set(page ${PROJECT_BINARY_DIR}/page/index.html)
add_custom_command(OUTPUT ${page}
  COMMAND python3 ${browser}/bundle.py ${PROJECT_SOURCE_DIR} $<TARGET_FILE:hdpsim_browser> ${page}
  DEPENDS hdpsim_browser ${browser}/bundle.py ${browser}/loader.js ${browser}/page.html ${browser}/worker.js VERBATIM)
add_custom_target(hdpsim_browser_page DEPENDS ${page})
