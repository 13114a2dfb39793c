#pragma once

#include <string_view>

/// The files in this folder, as they were when the program was built (embed.cmake).
namespace hdpsim::page_files {

extern const std::string_view report_html;
extern const std::string_view report_css;
extern const std::string_view parts_js;
extern const std::string_view report_js;
extern const std::string_view charts_js;  ///< Apache ECharts; empty in a build without charts.

}  // namespace hdpsim::page_files
