#include "tests/fuzz/change.h"

#include <algorithm>

namespace hdpsim::fuzz {
namespace {

constexpr std::size_t longest_slice = 64;

std::size_t place(const std::string& text, RandomStream& random) {
  return static_cast<std::size_t>(random.below(text.size() + 1));
}

/// The number that follows becomes one that arithmetic dislikes.
void change_number(std::string& text, std::size_t at, RandomStream& random) {
  static const std::vector<std::string> numbers = {
      "0", "-1", "9223372036854775807", "9223372036854775808", "1e308", "-0.0", "nan", "1e-320", "4294967296", "1Ti"};
  const std::size_t begin = text.find_first_of("0123456789", at);
  if (begin == std::string::npos) return;
  const std::size_t end = std::min(text.find_first_not_of("0123456789.e", begin), text.size());
  text.replace(begin, end - begin, numbers[random.below(numbers.size())]);
}

}  // namespace

Changer::Changer(std::string_view extension, std::vector<std::string> seeds)
    : extension_(extension), seeds_(std::move(seeds)) {
  for (const std::string& seed : seeds_) trees_.push_back(tree_of(extension_, seed));
  for (const auto& tree : trees_) {
    if (tree) whole_.push_back(&*tree);
  }
}

void Changer::change_bytes(std::string& text, RandomStream& random) const {
  const std::size_t at = place(text, random);
  const std::size_t length = std::min<std::size_t>(text.size() - at, random.below(longest_slice));
  switch (random.below(7)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(random.below(256));
      return;
    case 1:
      text.erase(at, length);
      return;
    case 2:
      text.insert(at, text.substr(place(text, random), longest_slice));
      return;
    case 3:
      return change_number(text, at, random);
    case 4:
      text.insert(at, random.below(2) == 0 ? std::string(1000, '[') : std::string(1000, '{'));
      return;
    case 5:
      text.resize(at);
      return;
    default:
      const std::string& other = seeds_[random.below(seeds_.size())];
      text.replace(at, length, other.substr(place(other, random), 4 * longest_slice));
  }
}

std::string Changer::input(std::uint64_t seed, std::uint64_t number) const {
  if (number < seeds_.size()) return seeds_[number];
  RandomStream random(seed, "fuzz", number);
  const std::size_t chosen = random.below(seeds_.size());
  const std::uint64_t changes = random.below(2) == 0 ? 1 : 1 + random.below(4);
  // Three of four: bytes alone seldom leave a document that can be read.
  if (trees_[chosen] && random.below(4) > 0) {
    Value tree = *trees_[chosen];
    for (std::uint64_t i = 0; i < changes; ++i) change_tree(tree, whole_, random);
    return text_of_tree(extension_, tree);
  }
  std::string text = seeds_[chosen];
  for (std::uint64_t i = 0; i < changes; ++i) change_bytes(text, random);
  return text;
}

}  // namespace hdpsim::fuzz
