#include "sim/report/markup.h"

#include <fmt/format.h>

namespace hdpsim {

std::string escaped_markup(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string page_beginning(std::string_view title, std::string_view style) {
  constexpr std::string_view page = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{0}</title>
<style>
body {{ font: 15px/1.45 sans-serif; color: #222; background: #fff; }}
body {{ max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 0.5rem 0 1.5rem; }}
th, td {{ padding: 0.2rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child, td:first-child {{ text-align: left; }}
p.note {{ color: #555; }}
{1}@media print {{ body {{ margin: 0; max-width: none; }} section {{ break-inside: avoid; }} }}
</style>
</head>
<body>
<h1>{0}</h1>
)";
  return fmt::format(page, escaped_markup(title), style);
}

}  // namespace hdpsim
