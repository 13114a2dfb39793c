#include "sim/study/overheads.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".yaml";

/// The figures that a study, or a file that it names, states instead of the profile's.
struct StatedOverheads {
  std::string preset;
  std::string source;
  std::optional<Duration> per_step;
  std::optional<Duration> per_micro_batch;
};

using OverheadKeys = KeyTable<StatedOverheads>;

void add_times(OverheadKeys& keys) {
  keys.quantity("per_step", limits::time, at(&StatedOverheads::per_step),
                "what the framework spends in each step in addition to all that is modelled",
                {.otherwise = "the profile's"});
  keys.quantity("per_micro_batch", limits::time, at(&StatedOverheads::per_micro_batch), "the same in each micro-batch",
                {.otherwise = "the profile's"});
}

const OverheadKeys& keys_of_study() {
  static const auto made = [] {
    OverheadKeys keys("'overheads'");
    keys.text(
        "preset", at(&StatedOverheads::preset),
        "a file of `configs/overheads`, which states both times with their source; times that stand here replace its",
        {.otherwise = "none"});
    add_times(keys);
    return keys;
  }();
  return made;
}

const OverheadKeys& keys_of_file() {
  static const auto made = [] {
    OverheadKeys keys("overheads");
    keys.text("source", at(&StatedOverheads::source), "where the times come from", {.required = true});
    add_times(keys);
    return keys;
  }();
  return made;
}

StatedOverheads read_preset(const Value& preset, const fs::path& presets, Diagnostics& diagnostics) {
  const std::vector<std::string> names = names_in(presets, ending);
  if (std::find(names.begin(), names.end(), preset.text) == names.end()) {
    diagnostics.error(preset.position, fmt::format("there are no overheads '{}'", preset.text),
                      suggestion(preset.text, names));
    return {};
  }
  Diagnostics found;
  const Value document = load_document((presets / (preset.text + std::string(ending))).string(), found);
  StatedOverheads overheads;
  if (found.empty()) (void)keys_of_file().read(document, overheads, found);
  diagnostics.append(found);
  return overheads;
}

void state(const StatedOverheads& stated, Overheads& overheads) {
  if (stated.per_step) overheads.per_step = {*stated.per_step, stated.source};
  if (stated.per_micro_batch) overheads.per_micro_batch = {*stated.per_micro_batch, stated.source};
}

}  // namespace

const std::vector<KeyText>& overhead_keys() {
  return keys_of_study().texts();
}

std::shared_ptr<const DeviceProfile> with_overheads(std::shared_ptr<const DeviceProfile> profile,
                                                    const Value& overheads, const fs::path& presets,
                                                    Diagnostics& diagnostics) {
  StatedOverheads stated;
  (void)keys_of_study().read(overheads, stated, diagnostics);
  stated.source = "stated by the study";
  std::optional<StatedOverheads> preset;
  if (!stated.preset.empty()) preset = read_preset(*overheads.find("preset"), presets, diagnostics);
  if (profile == nullptr) return profile;
  auto changed = std::make_shared<DeviceProfile>(*profile);
  if (preset) state(*preset, changed->overheads);
  state(stated, changed->overheads);
  return changed;
}

}  // namespace hdpsim
