#include "sim/decide/prices.h"

#include <fmt/format.h>

#include "sim/base/real_number.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr std::string_view kilowatt_hour = "kWh";
constexpr double most_watts = 1e9;
constexpr Range pues = {1, 10};

void read_watts(const Value& value, std::optional<double>& watts, Diagnostics& diagnostics) {
  const std::string& text = value.text;
  double number = 0;
  const auto [end, error] = read_real_number(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const double scale = unit == "kW" ? 1e3 : 1;
  if (error == std::errc{} && (unit == "W" || unit == "kW") && number > 0 && scale * number <= most_watts) {
    watts = scale * number;
  } else {
    diagnostics.error(value.position, fmt::format("\"{}\" is not a positive power", text), "write 700 W or 10.2 kW");
  }
}

// Where a price is stated, and how many there are in other currencies.
void keep_currency(const std::optional<Price>& price, const Value& value, Prices& prices, Diagnostics& diagnostics) {
  if (!price) return;
  if (prices.currency.empty()) prices.currency = price->currency;
  if (price->currency != prices.currency) {
    diagnostics.error(value.position, fmt::format("a price in {}, after one in {}", price->currency, prices.currency),
                      "write all prices in one currency");
  }
}

const KeyTable<HardwarePrice>& hardware_table() {
  static const auto made = [] {
    KeyTable<HardwarePrice> keys("a price of hardware");
    keys.add({"price", price_shape(gpu_hour), "", "what an hour of one GPU costs: `2.10 USD/GPU-hour`", {}},
             [](const Value& value, HardwarePrice& entry, Diagnostics& diagnostics) {
               entry.price = read_price(value, gpu_hour, diagnostics);
             });
    KeyShape power = shape_of(KeyShape::Kind::text);
    power.unit = "a power";
    keys.add({"gpu_power", power, "", "what a GPU with its share of the node draws in training: `800 W`", {}},
             [](const Value& value, HardwarePrice& entry, Diagnostics& diagnostics) {
               read_watts(value, entry.gpu_watts, diagnostics);
             });
    keys.add({"node_power", power, "", "what a node draws in training, in place of `gpu_power`: `10.2 kW`", {}},
             [](const Value& value, HardwarePrice& entry, Diagnostics& diagnostics) {
               read_watts(value, entry.node_watts, diagnostics);
             });
    return keys;
  }();
  return made;
}

void read_hardware(const Value& value, Prices& prices, Diagnostics& diagnostics) {
  if (!value.is_map() || value.entries.empty()) {
    diagnostics.error(value.position, "'hardware' must be a map of names of clusters or devices",
                      "write hardware: {h100-rail: {price: 2.10 USD/GPU-hour}}");
    return;
  }
  for (const auto& [name, place, entry] : value.entries) {
    const std::size_t before = diagnostics.count();
    HardwarePrice& read = prices.hardware[name];
    (void)hardware_table().read(entry, read, diagnostics, fmt::format("the price of '{}'", name));
    if (diagnostics.count() != before) continue;
    if (const Value* price = entry.find("price")) keep_currency(read.price, *price, prices, diagnostics);
    if (read.gpu_watts && read.node_watts) {
      diagnostics.error(place, fmt::format("'{}' has both gpu_power and node_power", name), "state one of them");
    } else if (!read.price && !read.gpu_watts && !read.node_watts) {
      diagnostics.error(place, fmt::format("'{}' has neither a price nor a power", name),
                        "state price, gpu_power or node_power");
    }
  }
}

const KeyTable<Prices>& price_table() {
  static const auto made = [] {
    KeyTable<Prices> keys("the file of prices");
    keys.add({"hardware",
              dictionary_shape(map_shape(hardware_table().texts())),
              "",
              "by the name of a cluster, or of a type of device",
              {.required = true}},
             read_hardware);
    keys.add({"electricity",
              price_shape(kilowatt_hour),
              "",
              "what a kWh costs, beside what GPU-hours do: `0.09 USD/kWh`",
              {.otherwise = "nothing"}},
             [](const Value& value, Prices& prices, Diagnostics& diagnostics) {
               prices.electricity = read_price(value, kilowatt_hour, diagnostics);
               keep_currency(prices.electricity, value, prices, diagnostics);
             });
    keys.number("pue", pues, at(&Prices::pue), "power of the site over that of its nodes");
    return keys;
  }();
  return made;
}

void require_powers(const Value& file, const Prices& prices, Diagnostics& diagnostics) {
  if (!prices.electricity) return;
  for (const auto& [name, place, entry] : file.find("hardware")->entries) {
    if (prices.hardware.at(name).watts_of_gpu(1)) continue;
    diagnostics.error(place, fmt::format("'{}' has no power, which the price of electricity needs", name),
                      "state gpu_power or node_power");
  }
}

}  // namespace

std::optional<double> HardwarePrice::watts_of_gpu(std::int64_t gpus_per_node) const {
  return node_watts ? *node_watts / static_cast<double>(gpus_per_node) : gpu_watts;
}

const std::vector<KeyText>& price_keys() {
  return price_table().texts();
}

Prices load_prices(const std::string& path) {
  Diagnostics diagnostics;
  const Value file = load_document(path, diagnostics);
  diagnostics.throw_if_any();
  Prices prices;
  prices.file = path;
  (void)price_table().read(file, prices, diagnostics);
  if (diagnostics.empty()) require_powers(file, prices, diagnostics);
  diagnostics.throw_if_any();
  return prices;
}

const HardwarePrice& price_for(const Prices& prices, const ClusterSpec& cluster) {
  if (const auto own = prices.hardware.find(cluster.name); own != prices.hardware.end()) return own->second;
  const auto found = prices.hardware.find(cluster.device);
  if (found == prices.hardware.end()) {
    throw InputError(
        Position{prices.file, 0, 0},
        fmt::format("there is no price of the cluster {} or of its device {}", cluster.name, cluster.device),
        fmt::format("add below 'hardware', for example: {}: {{price: 2.10 USD/GPU-hour}}", cluster.device));
  }
  if (!cluster.kinds.empty()) {
    throw InputError(
        Position{prices.file, 0, 0},
        fmt::format("the cluster {} has several kinds of nodes, and only {} has a price", cluster.name, cluster.device),
        "price the cluster by its name");
  }
  return found->second;
}

}  // namespace hdpsim
