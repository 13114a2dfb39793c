#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hdpsim {

/// A text escaped for XML and HTML, between tags and between double quotes.
[[nodiscard]] std::string escaped_markup(std::string_view text);

/// One HTML file that opens without a network and asks for nothing from one: its content security policy forbids it.
/// It consists of the common template and style, charts.js, parts.js and `script` (page_files), which finds the
/// object of the text `json` as `data`. Whatever is in `title` and `json` stays text. The same arguments give the same
/// bytes.
[[nodiscard]] std::string html_page(std::string_view title, std::string_view script, std::string_view json);

/// The parts of a page by the names that its template has for them.
using PageParts = std::vector<std::pair<std::string_view, std::string_view>>;
/// A template in which each `{{name}}` is replaced by the part of that name.
[[nodiscard]] std::string filled(std::string_view text, const PageParts& parts);
/// JSON for a script element, where HTML would interpret some texts.
[[nodiscard]] std::string script_safe(std::string_view json);

/// A figure rounded to the digits that a page shows, so that its data stay small: the exact ones are in the files
/// next to it.
[[nodiscard]] double rounded(double value);

}  // namespace hdpsim
