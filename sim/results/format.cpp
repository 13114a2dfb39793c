#include "sim/results/format.h"

#include "sim/base/printable.h"

#include <nlohmann/json.hpp>

#include "sim/document/json.h"
#include "sim/results/csv.h"
#include "sim/results/result_files.h"
#include "sim/results/table.h"

namespace hdpsim {
namespace {

template <class Figures>
std::string formatted_figures(const Figures& figures, Format format) {
  switch (format) {
    case Format::table:
      return text_of(figures);
    case Format::csv:
      return csv_of(figures);
    case Format::json:
      return json_page(json_of(figures));
  }
  return {};
}

}  // namespace

std::string formatted(const std::vector<Run>& runs, const Value& resolved, std::string_view version, Format format,
                      const RunAdvice& advice) {
  const Value* name = resolved.find("name");
  switch (format) {
    case Format::table:
      return result_table(name == nullptr ? "study" : printable(name->text), runs, advice);
    case Format::csv:
      return table_csv(ResultTable::runs, runs);
    case Format::json:
      return result_json(resolved, version, runs);
  }
  return {};
}

std::string formatted(const Description& description, Format format) {
  return formatted_figures(description, format);
}

std::string formatted(const LengthFit& fit, Format format) {
  return formatted_figures(fit, format);
}

}  // namespace hdpsim
