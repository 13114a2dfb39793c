#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "sim/cluster/impl/fabric_file.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_names = 1'000'000;

// "a[1-3,5],b": the parts between commas outside brackets.
std::vector<std::string_view> outer_parts(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= list.size(); ++at) {
    if (at == list.size() || (list[at] == ',' && depth == 0)) {
      if (at > begin) parts.push_back(list.substr(begin, at - begin));
      begin = at + 1;
    } else {
      depth += list[at] == '[' ? 1 : list[at] == ']' ? -1 : 0;
    }
  }
  return parts;
}

std::optional<std::int64_t> whole(std::string_view text) {
  constexpr std::size_t most_digits = 9;
  if (text.empty() || text.size() > most_digits || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return std::stoll(std::string(text));
}

// "n[01-03,7]" is n01, n02, n03, n7. False if a range is none, or the names are too many.
bool expand(std::string_view part, std::vector<std::string>& names) {
  const std::size_t open = part.find('[');
  if (open == std::string_view::npos) {
    names.emplace_back(part);
    return part.find(']') == std::string_view::npos;
  }
  const std::size_t close = part.find(']', open);
  if (close == std::string_view::npos) return false;
  for (const std::string_view range : outer_parts(part.substr(open + 1, close - open - 1))) {
    const std::size_t dash = range.find('-');
    const std::string_view first_text = range.substr(0, dash);
    const auto first = whole(first_text);
    const auto last = dash == std::string_view::npos ? first : whole(range.substr(dash + 1));
    if (!first || !last || *last < *first) return false;
    for (std::int64_t i = *first; i <= *last; ++i) {
      if (names.size() > most_names) return false;
      const std::string number = fmt::format("{:0{}}", i, first_text.size());
      if (!expand(fmt::format("{}{}{}", part.substr(0, open), number, part.substr(close + 1)), names)) return false;
    }
  }
  return true;
}

class SlurmReader {
 public:
  SlurmReader(const std::string& file, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    fabric_.position = {file, 0, 0};
  }

  ListedFabric read(const std::string& text) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) read_line(line.substr(0, line.find('#')), ++number);
    check();
    fabric_.notes.emplace_back(
        "Slurm's topology states no rates: switches carry all that the NICs below them can send; if not, write graph");
    return std::move(fabric_);
  }

 private:
  void read_line(const std::string& line, int number) {
    const Position at{fabric_.position.file, number, 1};
    std::istringstream words(line);
    std::string name;
    std::vector<std::string> below;
    std::vector<std::string> nodes;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      std::string key = word.substr(0, equals);
      std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
      const std::string_view value =
          std::string_view(word).substr(equals == std::string::npos ? word.size() : equals + 1);
      if (key == "switchname") name = value;
      if (key == "blockname") {
        diagnostics_.error(at, "blocks of Slurm (topology/block) name no switches", "write tiers or graph");
        return;
      }
      if (key == "switches") take(value, below, at);
      if (key == "nodes") take(value, nodes, at);
    }
    if (name.empty()) return;
    fabric_.switches.push_back(name);
    for (std::string& each : below) fabric_.cables.push_back({std::move(each), name, std::nullopt, 1});
    for (std::string& each : nodes) fabric_.hosts.push_back({std::move(each), {name}});
  }

  void take(std::string_view list, std::vector<std::string>& names, const Position& at) {
    for (const std::string_view part : outer_parts(list)) {
      if (expand(part, names)) continue;
      diagnostics_.error(at, fmt::format("'{}' is no list of names", part), "write n[01-16,20]");
      return;
    }
  }

  // A switch below two others would be a fabric of which Slurm's tree says too little.
  void check() {
    const auto& names = fabric_.switches;
    std::map<std::string, std::string> above;
    for (const ListedFabric::Cable& cable : fabric_.cables) {
      if (std::find(names.begin(), names.end(), cable.from) == names.end()) {
        diagnostics_.error(fabric_.position,
                           fmt::format("there is no switch '{}', which '{}' joins", cable.from, cable.to));
      }
      if (!above.emplace(cable.from, cable.to).second) {
        diagnostics_.error(fabric_.position, fmt::format("'{}' is below several switches", cable.from));
      }
    }
    for (const auto& [below, first] : above) {
      std::size_t steps = 0;
      for (auto at = above.find(below); at != above.end() && steps <= names.size(); at = above.find(at->second))
        ++steps;
      if (steps <= names.size()) continue;
      diagnostics_.error(fabric_.position, fmt::format("'{}' is below itself", below));
      return;
    }
    if (fabric_.hosts.empty()) diagnostics_.error(fabric_.position, "no switch has nodes");
  }

  Diagnostics& diagnostics_;
  ListedFabric fabric_;
};

}  // namespace

ListedFabric read_slurm_topology(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  return SlurmReader(file, diagnostics).read(text);
}

}  // namespace hdpsim
