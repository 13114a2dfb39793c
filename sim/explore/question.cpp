#include "sim/explore/question.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

// In the order of Question::Want.
constexpr std::array<std::string_view, 3> wants = {"answer", "study", "report"};

}  // namespace

Question read_question(const std::string& text) {
  const Json json = parsed_json(text);
  const InputError wrong("the page has asked for something that this program does not know", "load it again");
  if (!json.is_object() || !json.contains("want") || !json.contains("set") || !json["set"].is_array()) throw wrong;
  const auto want = std::find(wants.begin(), wants.end(), json["want"]);
  if (want == wants.end()) throw wrong;
  Question question{static_cast<Question::Want>(want - wants.begin()), {}};
  for (const auto& assignment : json["set"]) {
    if (!assignment.is_string()) throw wrong;
    question.set.push_back(assignment.get<std::string>());
  }
  return question;
}

}  // namespace hdpsim
