# cmake -D OUTPUT=FILE.cpp -D FOLDER=sim/report/page -D CHARTS=echarts.min.js|"" -P embed.cmake
# Writes the definitions of page_files.h. Each file is a string literal as it stands: the compiler reads a megabyte of
# raw text in no time, where a list of numbers takes it seconds.
function(literal name file)
  set(text "")
  if(file)
    file(READ ${file} text)
  endif()
  set(delimiter hdpsim_page)
  string(FIND "${text}" ")${delimiter}\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} contains the end of a string literal")
  endif()
  file(APPEND ${OUTPUT}.part "const std::string_view ${name} = R\"${delimiter}(${text})${delimiter}\";\n")
endfunction()

file(WRITE ${OUTPUT}.part "#include \"sim/report/page/page_files.h\"\n\nnamespace hdpsim::page_files {\n\n")
literal(report_html ${FOLDER}/report.html)
literal(report_css ${FOLDER}/report.css)
literal(parts_js ${FOLDER}/parts.js)
literal(report_js ${FOLDER}/report.js)
literal(charts_js "${CHARTS}")
file(APPEND ${OUTPUT}.part "\n}  // namespace hdpsim::page_files\n")
file(RENAME ${OUTPUT}.part ${OUTPUT})
