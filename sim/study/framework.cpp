#include "sim/study/framework.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/document/reader.h"
#include "sim/study/override.h"
#include "sim/trust/run_kind.h"

namespace hdpsim {
namespace {

constexpr std::array<std::string_view, 5> sections = {"mesh", "training", "kernels", "memory", "overheads"};

// A problem of a key that a preset states is one of the study's line that names the preset.
void stand_at(Value& value, const Position& position) {
  value.position = position;
  for (Value& item : value.items) stand_at(item, position);
  for (Value::Entry& entry : value.entries) {
    entry.position = position;
    stand_at(entry.value, position);
  }
}

}  // namespace

const std::vector<KeyText>& framework_keys() {
  static const std::vector<KeyText> keys = {
      {"preset",
       shape_of(KeyShape::Kind::text),
       "",
       "a file of `configs/frameworks`: what a release of a training framework shards, overlaps and runs, with its "
       "source; keys that the study states win",
       {.otherwise = "none"}}};
  return keys;
}

std::vector<std::string> framework_names(const std::filesystem::path& presets) {
  return names_in(presets, ".yaml");
}

Value framework_preset(const Value& name, const std::filesystem::path& presets, Diagnostics& diagnostics) {
  if (!read_choice(name, "framework", framework_names(presets), diagnostics)) return {};
  Value file = load_document((presets / (name.text + ".yaml")).string(), diagnostics);
  if (file.is_null()) return file;
  (void)move_keys(file, diagnostics);
  MapReader map(file, "the framework", diagnostics);
  (void)map.required<std::string>("source");
  for (const std::string_view section : sections) (void)map.find(section);
  if (const Value* stack = map.find("stack")) (void)read_choice(*stack, "stack", stack_names(), diagnostics);
  map.finish();
  std::erase_if(file.entries, [](const Value::Entry& entry) { return entry.key == "source" || entry.key == "stack"; });
  stand_at(file, name.position);
  return file;
}

std::string framework_stack(const Value& name, const std::filesystem::path& presets, Diagnostics& diagnostics) {
  if (name.is_null()) return stack_names().back();
  const Value file = load_document((presets / (name.text + ".yaml")).string(), diagnostics);
  const Value* stack = file.find("stack");
  return stack == nullptr ? stack_names().back() : stack->text;
}

void fill_in_framework(Value& study, const std::filesystem::path& presets, Diagnostics& diagnostics) {
  const Value* framework = study.is_map() ? study.find("framework") : nullptr;
  if (framework == nullptr || framework->is_null()) return;
  MapReader map(*framework, "the framework", diagnostics);
  const Value* name = map.require("preset");
  map.finish();
  if (name == nullptr || !read<std::string>(*name, diagnostics)) return;
  fill_in(study, framework_preset(*name, presets, diagnostics));
}

}  // namespace hdpsim
