#pragma once

#include <string_view>

/// The files of the folder `page`, as they were when the program was built (embed.cmake).
namespace hdpsim::explore_files {

extern const std::string_view explore_html;
extern const std::string_view explore_css;
extern const std::string_view program_js;
extern const std::string_view settings_js;
extern const std::string_view controls_js;
extern const std::string_view results_js;
extern const std::string_view explore_js;

}  // namespace hdpsim::explore_files
