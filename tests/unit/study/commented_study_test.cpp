#include "sim/study/commented_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "sim/study/study_keys.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

Value parsed_study(const std::string& text) {
  Diagnostics none;
  Value value = parse_document("study.yaml", text, none);
  REQUIRE(none.empty());
  return value;
}

std::string sentence_of(const std::string& path) {
  const std::vector<StudyKey> keys = all_study_keys();
  return std::find_if(keys.begin(), keys.end(), [&](const StudyKey& each) { return each.path == path; })->key->sentence;
}

// Comments as running text.
std::string comments_of(const std::string& text) {
  std::string comments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t sign = line.find("# ");
    if (sign != std::string::npos) comments += line.substr(sign + 2) + ' ';
  }
  return comments;
}

TEST_CASE("a study reads the same with its comments", "[new]") {
  const Value study = parsed_study(test::good_study);
  CHECK(to_yaml(parsed_study(commented_study(study))) == to_yaml(study));
}

TEST_CASE("a key stands under the sentence by which it is declared, and under what is remarked of it", "[new]") {
  const std::string text = commented_study(parsed_study(test::good_study), {{"data.context", "as long as a book"}});
  const std::string comments = comments_of(text);
  for (const char* path : {"name", "cluster", "data", "data.lengths", "data.tokens_per_step", "plans"}) {
    CAPTURE(path);
    CHECK(comments.find(sentence_of(path)) != std::string::npos);
  }
  CHECK(text.find("  # " + sentence_of("data.context") + "\n  # as long as a book\n  context: 64Ki\n") !=
        std::string::npos);
}

TEST_CASE("lines of comments are not longer than a hundred columns", "[new]") {
  const std::string word(400, 'x');
  const std::string remark = fmt::format("{} y", word);
  std::istringstream lines(commented_study(parsed_study(test::good_study), {{"plans", remark}}));
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK((line.size() <= 100 || line == fmt::format("# {}", word)));  // a word is not cut
  }
}

}  // namespace
}  // namespace hdpsim
