#include "sim/study/overheads.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double longest_s = 1e6;

std::optional<Overhead> stated(const Value* value, std::string_view key, Diagnostics& diagnostics) {
  if (value == nullptr) return std::nullopt;
  const std::optional<Duration> time = read<Duration>(*value, diagnostics);
  if (!time) return std::nullopt;
  if (*time < Duration{} || time->seconds() > longest_s) {
    diagnostics.error(value->position, fmt::format("'{}' must lie between 0 and 1e6 s", key),
                      fmt::format("write {}: 2 s", key));
    return std::nullopt;
  }
  return Overhead{*time, "stated by the study"};
}

}  // namespace

std::shared_ptr<const DeviceProfile> with_overheads(std::shared_ptr<const DeviceProfile> profile,
                                                    const Value& overheads, Diagnostics& diagnostics) {
  MapReader map(overheads, "'overheads'", diagnostics);
  const auto per_step = stated(map.find("per_step"), "per_step", diagnostics);
  const auto per_micro_batch = stated(map.find("per_micro_batch"), "per_micro_batch", diagnostics);
  map.finish();
  if (profile == nullptr) return profile;
  auto changed = std::make_shared<DeviceProfile>(*profile);
  if (per_step) changed->overheads.per_step = *per_step;
  if (per_micro_batch) changed->overheads.per_micro_batch = *per_micro_batch;
  return changed;
}

}  // namespace hdpsim
