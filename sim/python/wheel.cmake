# What a wheel holds (cmake --install BUILD --component wheel; wheel_commands.py packs it). It has no other package:
# what the module reads lies in the package, and so do the libraries that it needs, but for those that every Python for
# this C library has.
set(wheel COMPONENT wheel EXCLUDE_FROM_ALL)
set_target_properties(hdpsim_python PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS hdpsim_python LIBRARY DESTINATION hdpsim ${wheel})
install(DIRECTORY python/hdpsim/ DESTINATION hdpsim ${wheel}
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN py.typed PATTERN __pycache__ EXCLUDE)
install_data(hdpsim/share/hdpsim ${wheel})
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES $<TARGET_FILE:hdpsim_python> RESOLVED_DEPENDENCIES_VAR libraries
    PRE_EXCLUDE_REGEXES "^lib(c|m|z|stdc\\+\\+|gcc_s)\\.so" "^ld-linux")
  foreach(library ${libraries})
    get_filename_component(name ${library} NAME)
    configure_file(${library} ${CMAKE_INSTALL_PREFIX}/hdpsim/${name} COPYONLY)
  endforeach()
]] ${wheel})
