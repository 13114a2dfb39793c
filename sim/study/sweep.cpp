#include "sim/study/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "sim/document/reader.h"
#include "sim/document/values.h"
#include "sim/study/override.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

// True if a path may differ between points; reports it otherwise.
bool is_swept(const std::string& path, const Position& position, Diagnostics& diagnostics) {
  if (!belongs_to_whole_study(path.substr(0, path.find('.')))) return true;
  diagnostics.error(position, fmt::format("'{}' cannot be swept", path), "it belongs to the study as a whole");
  return false;
}

// Reports paths of which one is part of another: the value of one would replace that of the other.
bool has_overlaps(const std::vector<Value::Entry>& entries, Diagnostics& diagnostics) {
  bool found = false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const std::string& first = entries[k].key;
      const std::string& second = entries[i].key;
      if (!is_at_or_below(second, first) && !is_at_or_below(first, second)) continue;
      found = true;
      diagnostics.error(entries[i].position, fmt::format("'{}' and '{}' say the same thing twice", first, second),
                        fmt::format("leave one of them out, or write all keys below '{}'",
                                    is_at_or_below(second, first) ? first : second));
    }
  }
  return found;
}

// True if a path has values, none of them twice: points would be one and the same. Reports otherwise.
bool has_values(const std::string& path, const Value& values, Diagnostics& diagnostics) {
  if (!values.is_sequence() || values.items.empty()) {
    diagnostics.error(values.position, fmt::format("the values of '{}' must be a list that is not empty", path),
                      "write [256Ki, 512Ki]");
    return false;
  }
  std::set<std::string> seen;
  for (const Value& value : values.items) {
    if (seen.insert(json_line_of(value)).second) continue;
    diagnostics.error(value.position, fmt::format("'{}' has {} twice", path, line_of(value)), "leave one of them out");
  }
  return seen.size() == values.items.size();
}

// The number of points; 0 if there is a problem.
std::size_t count_points(const Value& sweep, Diagnostics& diagnostics) {
  if (!sweep.is_map()) {
    diagnostics.error(sweep.position,
                      fmt::format("the sweep must be a map or a list of points, found {}", kind_name(sweep.kind)),
                      "write data.context: [256Ki, 512Ki]");
    return 0;
  }
  std::size_t points = has_overlaps(sweep.entries, diagnostics) ? 0 : 1;
  for (const auto& [path, position, values] : sweep.entries) {
    if (!is_swept(path, position, diagnostics) || !has_values(path, values, diagnostics)) {
      points = 0;
    } else if (points > most_points / values.items.size()) {
      diagnostics.error(position, fmt::format("the sweep has more than {} points", most_points));
      return 0;
    } else {
      points *= values.items.size();
    }
  }
  return points;
}

// The number of values in a document, itself included.
std::size_t count_values(const Value& value) {
  std::size_t count = 1;
  for (const Value& item : value.items) count += count_values(item);
  for (const Value::Entry& entry : value.entries) count += count_values(entry.value);
  return count;
}

// Every point holds the whole study, so a large study can have fewer points.
bool fits(const Value& study, const Value& sweep, std::size_t points, Diagnostics& diagnostics) {
  constexpr std::size_t most_held = 1'000'000;
  const std::size_t values = count_values(study);
  if (points <= most_held / values) return true;
  diagnostics.error(sweep.position, fmt::format("{} points of a study of {} values are too many", points, values),
                    fmt::format("at most {} values in all: name what is large by its file", most_held));
  return false;
}

Value without_sweep(const Value& study) {
  Value result = study;
  std::erase_if(result.entries, [](const Value::Entry& entry) { return entry.key == "sweep"; });
  return result;
}

// The value of each list at the point with this index: the digits of a number, with the last list as the lowest digit.
std::vector<RunInfo::Coordinate> coordinates_of(const Value& sweep, std::size_t index) {
  std::vector<RunInfo::Coordinate> coordinates(sweep.entries.size());
  for (std::size_t place = coordinates.size(); place-- > 0;) {
    const auto& [path, position, values] = sweep.entries[place];
    coordinates[place] = {path, values.items[index % values.items.size()]};
    index /= values.items.size();
  }
  return coordinates;
}

/// A point of a list: `{label: alone, set: {cluster.gpus: 64}}`.
struct NamedPoint {
  Value label;
  Value set;  ///< Values by path; empty: the study as it is.
};

std::optional<NamedPoint> read_named_point(const Value& item, Diagnostics& diagnostics) {
  Diagnostics found;
  MapReader map(item, "a point of the sweep", found);
  const Value* label = map.require("label");
  const Value* set = map.find("set");
  map.finish();
  if (label != nullptr && read<std::string>(*label, found) && label->text.empty()) {
    found.error(label->position, "the label is empty", "write what the point is");
  }
  if (set != nullptr && !set->is_null() && !set->is_map()) {
    found.error(set->position, "'set' must be a map of values by path", "write set: {data.context: 256Ki}");
  }
  for (const Value::Entry& entry : set == nullptr ? std::vector<Value::Entry>{} : set->entries) {
    (void)is_swept(entry.key, entry.position, found);
  }
  if (set != nullptr && set->is_map()) (void)has_overlaps(set->entries, found);
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  return NamedPoint{*label, set == nullptr ? Value::map(item.position) : *set};
}

// The points of a list, which have names of their own. Empty if there is a problem.
std::vector<SweepPoint> named_points(const Value& sweep, const Value& base, Diagnostics& diagnostics) {
  Diagnostics found;
  if (sweep.items.empty()) found.error(sweep.position, "the list of points is empty", "write sweep: {} for none");
  if (sweep.items.size() > most_points) {
    found.error(sweep.position, fmt::format("the sweep has more than {} points", most_points));
  }
  std::vector<SweepPoint> points;
  std::set<std::string> labels;
  const std::size_t count = sweep.items.size() > most_points ? 0 : sweep.items.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto named = read_named_point(sweep.items[i], found);
    if (!named) continue;
    if (!labels.insert(named->label.text).second) {
      found.error(named->label.position, fmt::format("'{}' is a point already", named->label.text));
    }
    SweepPoint point{{{"label", named->label}}, base};
    for (const auto& [path, position, value] : named->set.entries) (void)put_at(point.study, path, value, found);
    points.push_back(std::move(point));
  }
  diagnostics.append(found);
  return found.empty() ? points : std::vector<SweepPoint>{};
}

}  // namespace

std::vector<SweepPoint> expand_sweep(const Value& study, Diagnostics& diagnostics) {
  const Value* sweep = study.find("sweep");
  Value base = without_sweep(study);
  std::vector<SweepPoint> points;
  if (sweep == nullptr || sweep->is_null()) {
    points.push_back({{}, std::move(base)});
    return points;
  }
  if (sweep->is_sequence()) {
    const bool is_held = fits(base, *sweep, sweep->items.size(), diagnostics);
    return is_held ? named_points(*sweep, base, diagnostics) : std::vector<SweepPoint>{};
  }
  const std::size_t count = count_points(*sweep, diagnostics);
  if (!fits(base, *sweep, count, diagnostics)) return {};
  for (std::size_t index = 0; index < count; ++index) {
    SweepPoint point{coordinates_of(*sweep, index), base};
    bool applied = true;
    for (const auto& [path, value] : point.coordinates) {
      applied = put_at(point.study, path, value, diagnostics) && applied;
    }
    if (!applied) return {};
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace hdpsim
