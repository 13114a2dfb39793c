#include "sim/study/overheads.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

std::optional<Overhead> stated(const Value* value, std::string_view key, Diagnostics& diagnostics) {
  if (value == nullptr) return std::nullopt;
  const auto time = read_in<Duration>(*value, fmt::format("'{}'", key), limits::time, diagnostics);
  return time ? std::optional(Overhead{*time, "stated by the study"}) : std::nullopt;
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
