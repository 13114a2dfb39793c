#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/document/document.h"
#include "sim/profile/impl/exact_text.h"
#include "sim/profile/measured_samples.h"

namespace hdpsim {

/// A map under construction. Optional texts are left out when empty.
class MapWriter {
 public:
  template <class T>
  MapWriter& quantity(std::string_view key, const T& value) {
    return add(key, Value::scalar(exact_text(value)));
  }
  template <class T>
  MapWriter& number(std::string_view key, T value) {
    return add(key, Value::scalar(fmt::format("{}", value)));
  }
  MapWriter& text(std::string_view key, std::string_view value) {
    if (value.empty()) return *this;
    Value scalar = Value::scalar(std::string(value));
    scalar.quoted = true;
    return add(key, std::move(scalar));
  }
  MapWriter& word(std::string_view key, std::string_view value) { return add(key, Value::scalar(std::string(value))); }
  MapWriter& add(std::string_view key, Value value) {
    map_.set(key, std::move(value));
    return *this;
  }
  [[nodiscard]] bool empty() const { return map_.entries.empty(); }
  [[nodiscard]] Value done() { return std::move(map_); }
  /// The map for one line; for samples.
  [[nodiscard]] Value one_line() {
    map_.one_line = true;
    return done();
  }

 private:
  Value map_ = Value::map();
};

inline MapWriter& add_timing(MapWriter& map, Duration time, const std::optional<Spread>& spread) {
  map.quantity("time", time);
  if (spread) map.quantity("p10", spread->p10).quantity("p90", spread->p90).number("runs", spread->runs);
  return map;
}

template <class T, class ToValue>
Value list_of(const std::vector<T>& items, ToValue to_value) {
  Value list = Value::sequence();
  for (const T& item : items) list.items.push_back(to_value(item));
  return list;
}

}  // namespace hdpsim
