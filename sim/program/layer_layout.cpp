#include "sim/program/layer_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace hdpsim {
namespace {

constexpr std::size_t longest = 1 << 20;  // letters, with all repetitions
constexpr int deepest = 64;               // parentheses in each other
constexpr std::string_view letters = "EtmL|";

class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  // The letters with all repetitions written out.
  std::string expanded() {
    std::string all = sequence();
    if (problem_.empty() && at_ < text_.size()) fail("a ')' that closes nothing");
    return all;
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::string sequence() {
    std::string all;
    while (problem_.empty() && at_ < text_.size() && text_[at_] != ')') {
      const std::string one = item();
      const std::size_t times = repetitions();
      if (one.size() * times + all.size() > longest) {
        fail("more than a million letters");
        return "";
      }
      for (std::size_t i = 0; i < times && !one.empty(); ++i) all += one;
    }
    return all;
  }

  std::string item() {
    const char letter = text_[at_++];
    if (letter == ' ' || letter == ',') return "";
    if (letters.find(letter) != std::string_view::npos) return {letter};
    if (letter != '(') {
      fail(fmt::format("'{}' where E, t, m, L, a bar or a parenthesis belongs", letter));
      return "";
    }
    if (++depth_ > deepest) fail("more than 64 parentheses in each other");
    std::string inside = sequence();
    --depth_;
    if (at_ == text_.size()) {
      fail("a '(' that nothing closes");
      return "";
    }
    ++at_;
    return inside;
  }

  std::size_t repetitions() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    ++at_;
    std::size_t times = 0;
    const std::size_t first = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 && times <= longest) {
      times = times * 10 + static_cast<std::size_t>(text_[at_++] - '0');
    }
    if (at_ == first) fail("no number behind '*'");
    return times;
  }

  void fail(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string problem_;
};

}  // namespace

LayerLayout read_layout(std::string_view text) {
  LayoutReader reader(text);
  const std::string all = reader.expanded();
  LayerLayout layout{{0}, reader.problem()};
  if (!layout.problem.empty()) return layout;
  for (const char letter : all) {
    if (letter == '|') layout.layers.push_back(0);
    if (letter == 't' || letter == 'm') ++layout.layers.back();
  }
  const auto once_at = [&](char letter, bool at_end) {
    const std::size_t place = all.find(letter);
    return place != std::string::npos && place == all.rfind(letter) && (at_end ? place + 1 == all.size() : place == 0);
  };
  if (!once_at('E', false)) layout.problem = "it has to begin with its only E, the embedding";
  if (layout.problem.empty() && !once_at('L', true)) layout.problem = "it has to end with its only L, head and loss";
  return layout;
}

}  // namespace hdpsim
