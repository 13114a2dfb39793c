#include "sim/profile/impl/field_reader.h"

#include <fmt/format.h>

#include <charconv>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

constexpr Between<FlopRate> limits_of(FlopRate) {
  return limits::flop_rate;
}
constexpr Between<Bandwidth> limits_of(Bandwidth) {
  return limits::bandwidth;
}
constexpr Between<Bytes> limits_of(Bytes) {
  return limits::message;
}
constexpr Between<Duration> limits_of(Duration) {
  return {1_ps, limits::time.most};
}

// Tokens (300), or queries by keys (300x150).
PackedDocument document_of(const Value& value, Diagnostics& diagnostics) {
  const auto side = [&](std::string_view text) {
    std::int64_t tokens = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), tokens);
    return error == std::errc{} && end == text.data() + text.size() ? tokens : 0;
  };
  const std::string_view text = value.text;
  const auto cross = text.find('x');
  const PackedDocument document{side(text.substr(0, cross)), side(text.substr(cross == text.npos ? 0 : cross + 1))};
  if (!value.is_scalar() || document.queries < 1 || document.keys < 1) {
    diagnostics.error(value.position, "a document is its tokens (300) or queries by keys (300x150)");
  }
  return document;
}

}  // namespace

void FieldReader::schema(const char* name) {
  if (const Value* schema = map_.require("schema")) (void)read_choice(*schema, "schema", {name}, diagnostics());
}

void FieldReader::text(std::string_view key, std::string& text) {
  const auto stated = map_.required<std::string>(key);
  if (stated && stated->empty()) {
    diagnostics().error(map_.value().find(key)->position, fmt::format("'{}' says nothing", key));
  }
  text = stated.value_or("");
}

void FieldReader::source(std::string& source) {
  may_have_samples(known_.label) ? optional_text("source", source) : text("source", source);
}

void FieldReader::numbers(std::string_view key, std::vector<double>& numbers) {
  for (const Value& value : values(key, {"a number", "number"})) {
    numbers.push_back(hdpsim::read<double>(value, diagnostics()).value_or(0));
  }
}

template <class Quantity>
void FieldReader::read_quantity(std::string_view key, const Value& value, Quantity& quantity) {
  const auto stated = hdpsim::read<Quantity>(value, diagnostics());
  if (!stated) return;
  quantity = *stated;
  const Between<Quantity> range = limits_of(quantity);
  if (quantity >= range.least && quantity <= range.most) return;
  diagnostics().error(value.position, fmt::format("'{}' is {}, it must be from {} to {}", key, value.text,
                                                  limit_text(range.least), limit_text(range.most)));
}

template void FieldReader::read_quantity(std::string_view, const Value&, FlopRate&);
template void FieldReader::read_quantity(std::string_view, const Value&, Bandwidth&);
template void FieldReader::read_quantity(std::string_view, const Value&, Bytes&);
template void FieldReader::read_quantity(std::string_view, const Value&, Duration&);

void FieldReader::tile(std::string_view key, const TileSides& sides, std::int64_t& first, std::int64_t& second) {
  const Value* value = map_.require(key);
  if (value == nullptr) return;
  read_inner(*value, "a tile", [&](FieldReader& tile) {
    tile.count(sides.first, first, tile_side);
    tile.count(sides.second, second, tile_side);
  });
}

void FieldReader::counts_between(std::string_view key, const char* what, std::int64_t& least, std::int64_t& most) {
  const Value* value = map_.require(key);
  if (value == nullptr) return;
  read_inner(*value, what, [&](FieldReader& range) {
    range.count("least", least);
    range.count("most", most);
  });
}

void FieldReader::bytes_between(std::string_view key, const char* what, Bytes& least, Bytes& most) {
  const Value* value = map_.require(key);
  if (value == nullptr) return;
  read_inner(*value, what, [&](FieldReader& range) {
    range.quantity("least", least);
    range.quantity("most", most);
    if (least > most) range.map_.error("'least' is more than 'most'");
  });
}

void FieldReader::spread(std::optional<Spread>& spread) {
  const auto p10 = map_.optional<Duration>("p10");
  const auto p90 = map_.optional<Duration>("p90");
  const auto runs = map_.optional_in<std::int64_t>("runs", positive_range);
  if (!p10 && !p90 && !runs) return;
  if (p10 && p90 && runs && *p10 > Duration{} && *p10 <= *p90) {
    spread = Spread{*p10, *p90, *runs};
  } else {
    map_.error("a spread needs 'p10', 'p90' and 'runs', with p10 no more than p90");
  }
}

Duration FieldReader::time_of_work(Flops work, double speed) {
  const Value* time_value = map_.find("time");
  const Value* rate_value = map_.find("rate");
  if ((time_value == nullptr) == (rate_value == nullptr)) {
    if (map_.value().is_map()) map_.error("a sample needs either 'time' or 'rate'");
    return {};
  }
  Duration time;
  if (time_value != nullptr) {
    read_quantity("time", *time_value, time);
  } else {
    FlopRate rate;
    read_quantity("rate", *rate_value, rate);
    if (rate > FlopRate{}) time = work / rate;
  }
  if (time > Duration{} && known_.peak > FlopRate{} && time < work / FlopRate(speed * known_.peak.per_second())) {
    const Value& stated = time_value != nullptr ? *time_value : *rate_value;
    diagnostics().error(stated.position, fmt::format("{} is faster than the peak of the data sheet", stated.text));
  }
  return time;
}

void FieldReader::documents(std::string_view key, std::vector<PackedDocument>& documents) {
  for (const Value& value : values(key, {"a document", "document", true})) {
    documents.push_back(document_of(value, diagnostics()));
  }
}

// The items of a list of at least one; none if the key is absent, which is reported if it is required.
const std::vector<Value>& FieldReader::values(std::string_view key, const ListText& text) {
  static const std::vector<Value> none;
  const Value* value = text.required ? map_.require(key) : map_.find(key);
  if (value == nullptr) return none;
  if (!value->is_sequence() || value->items.empty()) {
    diagnostics().error(value->position, fmt::format("'{}' must be a list of at least one {}", key, text.of));
  }
  return value->items;
}

}  // namespace hdpsim
