#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/random.h"
#include "sim/document/document.h"

namespace hdpsim::fuzz {

/// A text as a tree, where the extension says that it is one (YAML, JSON; lines of JSON, cells of CSV and words of text
/// as a list of lists) and it can be read so.
[[nodiscard]] std::optional<Value> tree_of(std::string_view extension, const std::string& text);
/// The tree as such a text.
[[nodiscard]] std::string text_of_tree(std::string_view extension, const Value& tree);
/// Changes a value of the tree as hostile or careless writers would: its number, its place, its type, its neighbours.
/// `others` are trees whose values may be taken.
void change_tree(Value& tree, const std::vector<const Value*>& others, RandomStream& random);

/// Inputs that are changes of seeds. The same seeds, seed and number give the same input.
class Changer {
 public:
  Changer(std::string_view extension, std::vector<std::string> seeds);
  [[nodiscard]] std::size_t seeds() const { return seeds_.size(); }
  /// The seeds themselves first, then changes of them: of bytes, or of the tree where there is one.
  [[nodiscard]] std::string input(std::uint64_t seed, std::uint64_t number) const;

 private:
  void change_bytes(std::string& text, RandomStream& random) const;

  std::string extension_;
  std::vector<std::string> seeds_;
  std::vector<std::optional<Value>> trees_;  ///< Of the seeds.
  std::vector<const Value*> whole_;          ///< Those that there are.
};

}  // namespace hdpsim::fuzz
