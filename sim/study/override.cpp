#include "sim/study/override.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hdpsim {
namespace {

// set_path() makes entries without a position; this makes them first, with one. Lists are left to it.
void prepare_way(Value& root, std::string_view path, const Position& position) {
  Value* at = &root;
  while (!path.empty() && (at->is_map() || at->is_null())) {
    if (at->is_null()) *at = Value::map(position);
    const auto dot = path.find('.');
    const std::string_view step = path.substr(0, dot);
    Value* next = at->find(step);
    if (next == nullptr) {
      Value nothing;
      nothing.position = position;
      next = &at->set(step, nothing);
    }
    at = next;
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
}

// A value with the positions that it has in line `number` of all assignments, behind `skipped` characters.
Value parse_at(const std::string& text, std::size_t number, std::size_t skipped, Diagnostics& diagnostics) {
  return parse_document(override_source, std::string(number, '\n') + std::string(skipped, ' ') + text, diagnostics);
}

constexpr std::string_view sweep_prefix = "sweep.";

void put_assigned(Value& root, const std::string& path, const Value& value, Diagnostics& diagnostics) {
  if (!path.starts_with(sweep_prefix)) {
    put_at(root, path, value, diagnostics);
    return;
  }
  Value* sweep = root.find("sweep");
  if (sweep == nullptr) sweep = &root.set("sweep", Value::map(value.position));
  if (sweep->is_null()) *sweep = Value::map(value.position);
  sweep->set(path.substr(sweep_prefix.size()), value);
}

}  // namespace

bool put_at(Value& root, const std::string& path, const Value& value, Diagnostics& diagnostics) {
  prepare_way(root, path, value.position);
  return set_path(root, path, value, value.position, diagnostics);
}

std::string override_text(const std::vector<std::string>& assignments) {
  return fmt::format("{}\n", fmt::join(assignments, "\n"));
}

void apply_overrides(Value& root, const std::vector<std::string>& assignments, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const std::string& assignment = assignments[i];
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.error({override_source, static_cast<int>(i) + 1, 1}, fmt::format("'{}' sets nothing", assignment),
                        "write data.context=1Mi");
      continue;
    }
    const Value value = parse_at(assignment.substr(equals + 1), i, equals + 1, diagnostics);
    put_assigned(root, assignment.substr(0, equals), value, diagnostics);
  }
  diagnostics.add_source(override_source, override_text(assignments));
}

}  // namespace hdpsim
