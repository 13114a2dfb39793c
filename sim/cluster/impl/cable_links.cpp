#include "sim/cluster/impl/cable_links.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/cluster/impl/keys.h"

namespace hdpsim {
namespace {

std::optional<std::size_t> find_switch(const SwitchGraphSpec& graph, std::string_view name) {
  const auto found = std::find_if(graph.switches.begin(), graph.switches.end(),
                                  [&](const SwitchGraphSpec::Switch& known) { return known.name == name; });
  if (found == graph.switches.end()) return std::nullopt;
  return static_cast<std::size_t>(found - graph.switches.begin());
}

/// One cable between two switches.
struct CableName {
  std::size_t from = 0;
  std::size_t to = 0;
  std::int64_t number = 0;
};

std::optional<CableName> parse(std::string_view text, const SwitchGraphSpec& graph) {
  constexpr std::string_view between = " to ";
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return std::nullopt;
  const auto from = find_switch(graph, text.substr(0, at));
  std::string_view rest = text.substr(at + between.size());
  std::int64_t number = 0;
  if (const std::size_t space = rest.rfind(' '); space != std::string_view::npos) {
    const auto last = parse_number_range(rest.substr(space + 1));
    if (!last || last->first != last->last) return std::nullopt;
    number = last->first;
    rest = rest.substr(0, space);
  }
  const auto to = find_switch(graph, rest);
  return from && to ? std::optional(CableName{*from, *to, number}) : std::nullopt;
}

// Splits cable `number` off the cables at `place`. Returns its new index.
std::size_t split(std::vector<SwitchGraphSpec::Cable>& cables, std::size_t place, std::int64_t number) {
  SwitchGraphSpec::Cable before = cables[place];
  SwitchGraphSpec::Cable after = before;
  after.count -= number + 1;
  before.count = number;
  cables[place].count = 1;
  const auto at = [&](std::size_t index) { return cables.begin() + static_cast<std::ptrdiff_t>(index); };
  if (after.count > 0) cables.insert(at(place + 1), after);
  if (before.count > 0) cables.insert(at(place), before);
  return before.count > 0 ? place + 1 : place;
}

}  // namespace

bool degrade_cable(SwitchGraphSpec& graph, std::string_view name, double share) {
  const auto cable = parse(name, graph);
  if (!cable) return false;
  std::int64_t number = cable->number;
  for (std::size_t place = 0; place < graph.cables.size(); ++place) {
    const SwitchGraphSpec::Cable& here = graph.cables[place];
    if (std::minmax(here.from, here.to) != std::minmax(cable->from, cable->to)) continue;
    if (number >= here.count) {
      number -= here.count;
      continue;
    }
    SwitchGraphSpec::Cable& own = graph.cables[split(graph.cables, place, number)];
    if (own.nominal == Bandwidth{}) own.nominal = own.bandwidth;  // of several lines the last one counts
    own.bandwidth = own.nominal.scaled(share);
    return true;
  }
  return false;
}

}  // namespace hdpsim
