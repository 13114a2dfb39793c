#include "sim/study/overheads.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".yaml";

struct StatedOverheads {
  std::optional<Overhead> per_step;
  std::optional<Overhead> per_micro_batch;
};

std::optional<Overhead> stated(MapReader& map, const std::string& key, const std::string& source,
                               Diagnostics& diagnostics) {
  const Value* value = map.find(key);
  if (value == nullptr) return std::nullopt;
  const auto time = read_in<Duration>(*value, fmt::format("'{}'", key), limits::time, diagnostics);
  return time ? std::optional(Overhead{*time, source}) : std::nullopt;
}

StatedOverheads read_times(MapReader& map, const std::string& source, Diagnostics& diagnostics) {
  return {stated(map, "per_step", source, diagnostics), stated(map, "per_micro_batch", source, diagnostics)};
}

std::vector<std::string> preset_names(const fs::path& presets) {
  std::vector<std::string> names;
  if (!fs::is_directory(presets)) return names;
  for (const auto& entry : fs::directory_iterator(presets)) {
    if (entry.path().extension() == ending) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

StatedOverheads read_preset(const Value& preset, const fs::path& presets, Diagnostics& diagnostics) {
  const std::vector<std::string> names = preset_names(presets);
  if (std::find(names.begin(), names.end(), preset.text) == names.end()) {
    diagnostics.error(preset.position, fmt::format("there are no overheads '{}'", preset.text),
                      suggestion(preset.text, names));
    return {};
  }
  Diagnostics found;
  const Value document = load_document((presets / (preset.text + std::string(ending))).string(), found);
  StatedOverheads overheads;
  if (found.empty()) {
    MapReader map(document, "overheads", found);
    const std::string source = map.required<std::string>("source").value_or("");
    overheads = read_times(map, source, found);
    map.finish();
  }
  diagnostics.append(found);
  return overheads;
}

StatedOverheads read_overheads(const Value& overheads, const fs::path& presets, Diagnostics& diagnostics) {
  MapReader map(overheads, "'overheads'", diagnostics);
  const Value* preset = map.find("preset");
  const StatedOverheads times = read_times(map, "stated by the study", diagnostics);
  map.finish();
  if (preset == nullptr) return times;
  if (times.per_step || times.per_micro_batch) {
    map.error("overheads are those of a 'preset' or times that stand here", "write overheads: {per_step: 2 s}");
  }
  return read_preset(*preset, presets, diagnostics);
}

}  // namespace

std::shared_ptr<const DeviceProfile> with_overheads(std::shared_ptr<const DeviceProfile> profile,
                                                    const Value& overheads, const fs::path& presets,
                                                    Diagnostics& diagnostics) {
  const StatedOverheads times = read_overheads(overheads, presets, diagnostics);
  if (profile == nullptr) return profile;
  auto changed = std::make_shared<DeviceProfile>(*profile);
  if (times.per_step) changed->overheads.per_step = *times.per_step;
  if (times.per_micro_batch) changed->overheads.per_micro_batch = *times.per_micro_batch;
  return changed;
}

}  // namespace hdpsim
