#include <algorithm>
#include <array>
#include <utility>

#include "tests/fuzz/change.h"

namespace hdpsim::fuzz {
namespace {

constexpr std::array numbers = {"0",
                                "-1",
                                "-0.0",
                                "1e-320",
                                "1e-9",
                                "1e-3",
                                "0.5",
                                "1",
                                "2",
                                "3",
                                "7",
                                "1e3",
                                "65536",
                                "1e6",
                                "1e9",
                                "1e12",
                                "1e18",
                                "2147483648",
                                "4294967296",
                                "4611686018427387904",
                                "9223372036854775807",
                                "1e19",
                                "1e308",
                                "nan",
                                "inf",
                                "-inf",
                                "0x10",
                                "1_000"};
constexpr std::array units = {"",     "Ki",    "Mi",      "Gi",   "Ti",       " s",           " ms",
                              " us",  " ns",   " ps",     " h",   " GB",      " MB",          " TB",
                              " GiB", " GB/s", " Gbit/s", " B/s", " TFLOP/s", " USD/GPU-hour"};
constexpr std::array words = {"true", "~", "auto", "none", "", "a", "0-3", "fixed"};

template <class List>
auto& one_of(List& list, RandomStream& random) {
  return list[static_cast<std::size_t>(random.below(list.size()))];
}

std::size_t size_of(const Value& value) {
  return value.is_map() ? value.entries.size() : value.items.size();
}

Value& child(Value& value, std::size_t index) {
  return value.is_map() ? value.entries[index].value : value.items[index];
}

/// All values below the tree, each after what holds it.
void collect(Value& tree, std::vector<Value*>& values, std::vector<Value*>& holders) {
  if (size_of(tree) > 0) holders.push_back(&tree);
  for (std::size_t i = 0; i < size_of(tree); ++i) {
    values.push_back(&child(tree, i));
    collect(child(tree, i), values, holders);
  }
}

/// One of the values of a tree, itself if it has none.
const Value& any_value(const Value& tree, RandomStream& random) {
  const Value* value = &tree;
  while (size_of(*value) > 0 && (value == &tree || random.below(3) > 0)) {
    value = &child(const_cast<Value&>(*value), random.below(size_of(*value)));
  }
  return *value;
}

void find_keys(const Value& tree, std::string_view key, std::vector<const Value*>& found) {
  for (const Value::Entry& entry : tree.entries) {
    if (entry.key == key) found.push_back(&entry.value);
    find_keys(entry.value, key, found);
  }
  for (const Value& item : tree.items) find_keys(item, key, found);
}

bool is_number(const Value& value) {
  return value.is_scalar() && value.text.find_first_of("0123456789") <= 1;
}

void change_number(Value& value, RandomStream& random) {
  const std::size_t end = std::min(value.text.find_first_not_of("-+.0123456789e"), value.text.size());
  const std::string unit = random.below(4) == 0 ? one_of(units, random) : value.text.substr(end);
  value.text = one_of(numbers, random) + unit;
}

/// By factors and steps that leave most values possible.
void nudge_number(Value& value, RandomStream& random) {
  const std::size_t end = std::min(value.text.find_first_not_of("0123456789"), value.text.size());
  constexpr std::size_t most_digits = 15;
  if (end == 0 || end > most_digits) return change_number(value, random);
  const long long number = std::stoll(value.text.substr(0, end));
  const std::array near = {number + 1, number - 1, number * 2, number / 2, number * 3, number * 1000, number / 1000};
  value.text.replace(0, end, std::to_string(one_of(near, random)));
}

void change_type(Value& value, RandomStream& random) {
  const Value old = value;
  switch (random.below(4)) {
    case 0:
      value = Value::sequence();
      value.items = {old, old};
      return;
    case 1:
      value = Value::map();
      value.set(one_of(words, random), old);
      return;
    case 2:
      value = Value{};
      return;
    default:
      value = Value::scalar(one_of(words, random));
  }
}

void remove(Value& holder, std::size_t index) {
  const auto at = static_cast<std::ptrdiff_t>(index);
  if (holder.is_map()) {
    holder.entries.erase(holder.entries.begin() + at);
  } else {
    holder.items.erase(holder.items.begin() + at);
  }
}

void insert(Value& holder, const std::string& key, const Value& value) {
  if (holder.is_map()) {
    holder.entries.push_back({key, {}, value});
  } else {
    holder.items.push_back(value);
  }
}

std::string key_of(const Value& holder, std::size_t index) {
  return holder.is_map() ? holder.entries[index].key : "key";
}

/// What lists and maps hold: one thing removed, doubled, moved, or another one's instead.
void change_holder(Value& holder, Value& other, const std::vector<const Value*>& trees, RandomStream& random) {
  constexpr std::size_t longest_list = 300;  // of values, of lists and maps fewer
  const std::size_t index = random.below(size_of(holder));
  const std::string key = key_of(holder, index);
  const Value chosen = child(holder, index);
  switch (random.below(6)) {
    case 0:
      return remove(holder, index);
    case 1:
      return insert(holder, key, chosen);
    case 2:
      insert(other, key, chosen);  // also into itself: what was a list is one that holds its own copy
      return;
    case 3:
      if (holder.is_sequence()) {
        const std::size_t longest = chosen.is_scalar() ? longest_list : longest_list / 10;
        holder.items.resize(random.below(2) == 0 ? 0 : longest, chosen);
      }
      return;
    case 4: {
      std::vector<const Value*> same;
      for (const Value* tree : trees) find_keys(*tree, key, same);
      if (!same.empty()) child(holder, index) = Value(*one_of(same, random));
      return;
    }
    default:
      std::swap(child(holder, index), child(holder, random.below(size_of(holder))));
  }
}

}  // namespace

void change_tree(Value& tree, const std::vector<const Value*>& others, RandomStream& random) {
  std::vector<Value*> values;
  std::vector<Value*> holders;
  collect(tree, values, holders);
  if (values.empty()) return;
  std::vector<Value*> found;
  std::copy_if(values.begin(), values.end(), std::back_inserter(found), [](const Value* v) { return is_number(*v); });
  const std::uint64_t choice = random.below(12);
  if (choice < 3 && !found.empty()) return change_number(*one_of(found, random), random);
  if (choice < 8 && !found.empty()) return nudge_number(*one_of(found, random), random);
  if (choice == 8) return change_type(*one_of(values, random), random);
  if (choice == 9) {
    *one_of(values, random) = Value(any_value(*one_of(others, random), random));
    return;
  }
  change_holder(*one_of(holders, random), *one_of(holders, random), others, random);
}

}  // namespace hdpsim::fuzz
