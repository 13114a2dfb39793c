#include "sim/import/impl/layer_list.h"

#include <charconv>
#include <utility>

namespace hdpsim {
namespace {

using Numbers = std::optional<std::vector<std::int64_t>>;

constexpr int deepest_list = 32;

class ListReader {
 public:
  ListReader(std::string_view text, std::size_t most) : text_(text), most_(most) {}

  Numbers read() {
    Numbers all = sum();
    return next() == '\0' ? all : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  Numbers sum() {
    Numbers left = product();
    while (left && takes('+')) {
      Numbers right = product();
      if (!right || left->size() + right->size() > most_) return std::nullopt;
      left->insert(left->end(), right->begin(), right->end());
    }
    return left;
  }

  Numbers product() {
    Numbers list = atom();
    while (list && takes('*')) {
      const auto times = number();
      if (!times || *times < 0) return std::nullopt;
      const auto count = static_cast<std::size_t>(*times);
      if (!list->empty() && count > most_ / list->size()) return std::nullopt;
      std::vector<std::int64_t> repeated;
      for (std::size_t i = 0; i < (list->empty() ? 0 : count); ++i)
        repeated.insert(repeated.end(), list->begin(), list->end());
      list = std::move(repeated);
    }
    return list;
  }

  Numbers atom() {
    if (++depth_ > deepest_list) return std::nullopt;
    Numbers list = takes('(') ? inside() : items();
    --depth_;
    return list;
  }

  Numbers inside() {
    Numbers list = sum();
    return takes(')') ? list : std::nullopt;
  }

  Numbers items() {
    if (!takes('[')) return std::nullopt;
    std::vector<std::int64_t> all;
    while (!takes(']')) {
      const auto each = number();
      if (!each || all.size() == most_) return std::nullopt;
      all.push_back(*each);
      if (!takes(',') && next() != ']') return std::nullopt;
    }
    return all;
  }

  std::optional<std::int64_t> number() {
    (void)next();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  std::size_t most_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::vector<std::int64_t>> layer_list(std::string_view text, std::size_t most) {
  return ListReader(text, most).read();
}

}  // namespace hdpsim
