# What `cmake --install` and the package (cpack) hold: the program, what it reads, and what it says of itself. The program
# finds its data relative to itself, so that the whole may be moved.
include(GNUInstallDirs)
set(pages ${PROJECT_BINARY_DIR}/pages)
file(MAKE_DIRECTORY ${pages})
set(generated "")
function(print_page file)  # the arguments of hdpsim that print it follow
  add_custom_command(OUTPUT ${pages}/${file} COMMAND hdpsim ${ARGN} > ${pages}/${file} DEPENDS hdpsim VERBATIM)
  set(generated ${generated} ${pages}/${file} PARENT_SCOPE)
endfunction()
print_page(hdpsim.1 manual)
print_page(hdpsim.bash completion bash)
print_page(_hdpsim completion zsh)
print_page(hdpsim.fish completion fish)
add_custom_target(pages ALL DEPENDS ${generated})

function(install_data folder)  # options of install() follow
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs ${PROJECT_SOURCE_DIR}/traces DESTINATION ${folder} ${ARGN})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/calib/profiles DESTINATION ${folder}/calib ${ARGN})
endfunction()
install(TARGETS hdpsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install_data(${CMAKE_INSTALL_DATADIR}/hdpsim)
install(FILES ${pages}/hdpsim.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/hdpsim.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME hdpsim)
install(FILES ${pages}/_hdpsim DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${pages}/hdpsim.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# A package is for machines with other versions of Python, for each of which the module would have to be built.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};hdpsim;Unspecified;/")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME hdpsim)
set(CPACK_PACKAGE_VENDOR hdpsim)
set(CPACK_PACKAGE_CONTACT "hdpsim <maintainers@hdpsim.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # needs dpkg-dev
if(HDPSIM_KERNELS)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS libopenblas0)  # is opened at run time
endif()
set(CPACK_SYSTEM_NAME linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
include(CPack)
