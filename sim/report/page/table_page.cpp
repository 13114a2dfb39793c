#include "sim/report/page/table_page.h"

#include "sim/document/json.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/report/page/page_data.h"

namespace hdpsim {
namespace {

Json table_json(const ShownTable& table) {
  Json groups = Json::array();
  for (const auto& [name, rows] : table.groups) groups.push_back({{"name", name}, {"rows", rows}});
  return {{"title", table.title}, {"titles", table.titles}, {"groups", groups}};
}

Json curves_json(const ShownCurves& curves) {
  Json series = Json::array();
  for (const auto& [name, points] : curves.series) {
    Json of_series = Json::array();
    for (const auto& [x, y] : points) of_series.push_back({x, rounded(y)});
    series.push_back({{"name", name}, {"points", of_series}});
  }
  return {{"title", curves.title},
          {"about", curves.about},
          {"x", curves.x},
          {"y", curves.y},
          {"limit", {{"at", curves.limit}, {"text", curves.limit_text}}},
          {"series", series}};
}

}  // namespace

std::string table_text(const ShownTable& table) {
  std::vector<TextRow> cells = {table.titles};
  for (const auto& group : table.groups) cells.insert(cells.end(), group.rows.begin(), group.rows.end());
  const std::vector<std::string> lines = aligned_lines(cells);
  std::string text = lines.front();
  std::size_t next = 1;
  for (const auto& group : table.groups) {
    if (next > 1) text += "\n";
    if (!group.name.empty()) text += group.name + "\n";
    for (std::size_t i = 0; i < group.rows.size(); ++i) text += lines[next++];
  }
  return text;
}

std::string table_page(const TablePage& page) {
  Json tables = Json::array();
  for (const ShownTable& table : page.tables) tables.push_back(table_json(table));
  const Json data = {{"plans", page.plans},
                     {"colors", plan_colors(page.plans)},
                     {"definitions", definitions(page.plans)},
                     {"answer", {{"lead", page.lead}, {"notes", page.notes}}},
                     {"curves", page.curves ? curves_json(*page.curves) : Json()},
                     {"tables", tables}};
  return html_page(page.title, page_files::tables_js, json_line(data));
}

}  // namespace hdpsim
