#include "sim/explore/explore_page.h"

#include <fmt/format.h>

#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/explore/controls.h"
#include "sim/explore/page_files.h"
#include "sim/model/memory.h"
#include "sim/page/markup.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/plan/policy.h"
#include "sim/report/page/page_data.h"

namespace hdpsim {
namespace {

Json names_of_memory_parts() {
  Json names = Json::array();
  for (std::size_t i = 0; i < memory_parts; ++i) names.push_back(memory_part_name(static_cast<MemoryPart>(i)));
  return names;
}

Json names_of_plans(const Study& study) {
  Json names = Json::array();
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  return names;
}

}  // namespace

std::string explore_page(const Study& study, Catalog& catalog, std::string_view version, std::string_view nonce) {
  const Json json = {{"version", version},
                     {"name", study.name},
                     {"study", json_of(study.resolved)},
                     {"plans", names_of_plans(study)},
                     {"colors", plan_colors(policy_names())},
                     {"definitions", definitions(policy_names())},
                     {"memory_parts", names_of_memory_parts()},
                     {"controls", controls_json(catalog)}};
  const std::string title = escaped_markup(study.name);
  const std::string data = script_safe(json_line(json));
  const std::string style = fmt::format("{}\n{}", page_files::page_css, explore_files::explore_css);
  const std::string script =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", page_files::charts_js, page_files::parts_js, explore_files::settings_js,
                  explore_files::controls_js, explore_files::results_js, explore_files::explore_js);
  return filled(explore_files::explore_html,
                {{"title", title}, {"style", style}, {"nonce", nonce}, {"data", data}, {"script", script}});
}

}  // namespace hdpsim
