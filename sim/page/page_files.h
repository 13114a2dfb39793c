#pragma once

#include <string_view>

/// The files in this folder, as they were when the program was built (embed.cmake).
namespace hdpsim::page_files {

extern const std::string_view page_html;  ///< The template, with {{title}}, {{style}}, {{data}} and {{script}}.
extern const std::string_view page_css;
extern const std::string_view charts_js;  ///< Charts as SVG; its first lines are its interface.
extern const std::string_view parts_js;   ///< Numbers, elements, sections and tables.

// The script of a page: what it makes of its data.
extern const std::string_view report_js;
extern const std::string_view replay_js;
extern const std::string_view comparison_js;
extern const std::string_view validation_js;
extern const std::string_view tuning_js;
extern const std::string_view tables_js;

}  // namespace hdpsim::page_files
