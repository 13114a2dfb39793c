# cmake -D OUTPUT=FILE.cpp -D HEADER=INCLUDE -D NAMESPACE=NAME -D FILES=NAME=FILE;NAME=... -P embed.cmake
# Writes the definitions of the header's string_views, each the text of a file. Each is a string literal as it stands:
# the compiler reads a megabyte of raw text in no time, where a list of numbers takes it seconds.
function(literal name file)
  file(READ ${file} text)
  set(delimiter hdpsim_text)
  string(FIND "${text}" ")${delimiter}\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} contains the end of a string literal")
  endif()
  file(APPEND ${OUTPUT}.part "const std::string_view ${name} = R\"${delimiter}(${text})${delimiter}\";\n")
endfunction()

file(WRITE ${OUTPUT}.part "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
foreach(entry ${FILES})
  string(FIND ${entry} "=" sign)
  string(SUBSTRING ${entry} 0 ${sign} name)
  math(EXPR after "${sign} + 1")
  string(SUBSTRING ${entry} ${after} -1 file)
  literal(${name} "${file}")
endforeach()
file(APPEND ${OUTPUT}.part "\n}  // namespace ${NAMESPACE}\n")
file(RENAME ${OUTPUT}.part ${OUTPUT})
