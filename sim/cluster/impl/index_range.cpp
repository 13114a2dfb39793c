#include "sim/cluster/impl/index_range.h"

#include <charconv>

namespace hdpsim {
namespace {

std::optional<std::int64_t> index_of(std::string_view text) {
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

std::optional<IndexRange> parse_every(std::string_view text) {
  constexpr std::string_view from_word = " from ";
  const auto from = text.find(from_word);
  const auto step = index_of(text.substr(0, from));
  const auto first =
      from == std::string_view::npos ? std::optional<std::int64_t>{0} : index_of(text.substr(from + from_word.size()));
  if (!step || *step < 1 || !first) return std::nullopt;
  return IndexRange{.first = *first, .step = *step};
}

std::optional<IndexRange> parse_range(std::string_view text, std::size_t dash) {
  const auto first = index_of(text.substr(0, dash));
  const auto last = index_of(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return IndexRange{.first = *first, .last = last};
}

}  // namespace

std::optional<IndexRange> parse_index_range(std::string_view text) {
  constexpr std::string_view every = "every ";
  if (text.substr(0, every.size()) == every) return parse_every(text.substr(every.size()));
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) return parse_range(text, dash);
  const auto index = index_of(text);
  if (!index) return std::nullopt;
  return IndexRange{.first = *index, .last = index};
}

}  // namespace hdpsim
