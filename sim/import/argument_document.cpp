#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/repeated_keys.h"
#include "sim/import/argument.h"
#include "sim/import/impl/foreign_formats.h"
#include "sim/import/impl/megatron_dialects.h"
#include "sim/import/impl/megatron_rules.h"

namespace hdpsim {
namespace {

// A value with each `${NAME}` replaced by the value of that variable.
class Substitution {
 public:
  explicit Substitution(const std::map<std::string, std::string>& variables) : variables_(variables) {}

  ArgumentValue value(const Value& scalar) {
    ArgumentValue value{{}, scalar.position, {}};
    const std::string& text = scalar.text;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.compare(at, 2, "${") == 0 ? text.find('}', at) : std::string::npos;
      if (end == std::string::npos) {
        value.text += text[at++];
        continue;
      }
      const std::string name = text.substr(at + 2, end - at - 2);
      const auto found = variables_.find(name);
      if (found != variables_.end()) {
        value.text += found->second;
        used_.insert(name);
      } else if (value.unset.empty()) {
        value.unset = "$" + name;
        value.variable = name;
      }
      at = end + 1;
    }
    return value;
  }

  void note_unused(const std::string& file, ImportNotes& notes) const {
    for (const auto& [name, text] : variables_) {
      if (used_.contains(name)) continue;
      notes.push_back({ImportNote::Kind::assumed,
                       {},
                       fmt::format("--var {}=VALUE has no effect: {} has no ${{{}}}", name, file, name)});
    }
  }

 private:
  const std::map<std::string, std::string>& variables_;
  std::set<std::string> used_;
};

Argument argument_of(const Value::Entry& entry, Substitution& substitution) {
  Argument argument;
  argument.written = entry.key;
  argument.position = entry.position;
  const Value& value = entry.value;
  if (value.is_scalar() && !value.quoted && (value.text == "true" || value.text == "True")) {
    argument.is_switch = true;
  } else if (value.is_scalar() && !value.quoted && (value.text == "false" || value.text == "False")) {
    argument.is_switch = true;
    argument.is_on = false;
  } else if (value.is_scalar()) {
    argument.values.push_back(substitution.value(value));
  }
  for (const Value& item : value.items) {
    if (item.is_scalar()) argument.values.push_back(substitution.value(item));
  }
  return argument;
}

bool is_absent(const Value& value) {
  return value.is_null() || (value.is_scalar() && !value.quoted && value.text == "None") ||
         (value.is_sequence() && value.items.empty());
}

// Takes the arguments of a map and of the maps in it, which are its sections.
void take_arguments(const Value& map, Substitution& substitution, std::vector<Argument>& arguments) {
  for (const Value::Entry& entry : map.entries) {
    if (entry.value.is_map()) {
      take_arguments(entry.value, substitution, arguments);
    } else if (!is_absent(entry.value)) {
      arguments.push_back(argument_of(entry, substitution));
    }
  }
}

}  // namespace

ArgumentList arguments_of_document(const std::string& file, const std::string& text,
                                   const std::map<std::string, std::string>& variables, Diagnostics& diagnostics) {
  const Value root = parse_repeating_document(file, text, diagnostics);
  if (is_nemo_configuration(root)) return arguments_of_nemo(root);
  if (const auto foreign = foreign_document(root)) {
    diagnostics.unsupported(
        foreign->position,
        fmt::format("this looks like {} ('{}'), which is not imported", foreign->name, foreign->sign), foreign->way);
    return {};
  }
  const Value* map = &root;
  for (const char* key : {"args", "MODEL_ARGS"}) {
    if (const Value* inner = root.find(key); inner != nullptr && inner->is_map()) map = inner;
  }
  ArgumentList list;
  if (!map->is_map()) {
    if (diagnostics.empty()) {
      diagnostics.error(root.position, fmt::format("arguments must be a map, this is {}", kind_name(map->kind)));
    }
    return list;
  }
  Substitution substitution(variables);
  take_arguments(*map, substitution, list.arguments);
  substitution.note_unused(file, list.notes);
  const auto is_known = [](const Argument& argument) { return rule_of(argument.written) != nullptr; };
  if (!list.arguments.empty() && std::none_of(list.arguments.begin(), list.arguments.end(), is_known)) {
    diagnostics.error(
        root.position, "no key of this file is an argument of Megatron-LM",
        "its args have num_layers, hidden_size, seq_length and so on; files of other programs are not read");
  }
  return list;
}

}  // namespace hdpsim
