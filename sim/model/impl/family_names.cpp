#include "sim/model/impl/family_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <utility>

#include "sim/model/impl/near_architecture.h"

namespace hdpsim {
namespace {

// Types of language models in others, that are of a family with another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> other_names = {
    {{"qwen3omnimoe", "qwen3moe"}, {"qwen25omni", "qwen2"}}};

// Letters and digits, in small letters; `_text` at the end of a type says nothing.
std::string type_text(std::string_view type) {
  constexpr std::string_view text = "_text";
  const bool is_inner = type.ends_with(text);
  if (is_inner) type.remove_suffix(text.size());
  std::string plain;
  for (const char c : type) {
    if (c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const auto& [name, family] : other_names) {
    if (is_inner && plain == name) return std::string(family);
  }
  return plain;
}

std::string_view class_stem(std::string_view name) {
  for (const std::string_view ending : {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "Model"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

}  // namespace

const Architecture* family_of_type(std::string_view type, const Value& config) {
  const std::string wanted = type_text(type);
  for (const Architecture& architecture : architectures()) {
    const Value* language = language_model(architecture, config);
    const bool is_there = language != nullptr && (language != &config || config.find("text_config") == nullptr);
    if (is_there && type_text(class_stem(architecture.name)) == wanted) return &architecture;
  }
  return nullptr;
}

const Value* stated_name(const Value& config, Diagnostics& diagnostics) {
  const Value* names = config.find("architectures");
  if (names == nullptr || names->is_null()) return nullptr;
  if (names->is_sequence() && names->items.size() == 1) return &names->items.front();
  diagnostics.error(names->position, "'architectures' must be a list of one name",
                    "write \"architectures\": [\"LlamaForCausalLM\"], with the model's own");
  return nullptr;
}

const Architecture* known_family(const Value& config, const Value* name) {
  if (name == nullptr) {
    const Value* type = config.find("model_type");
    return type != nullptr && type->is_scalar() ? family_of_type(type->text, config) : nullptr;
  }
  const std::span<const Architecture> all = architectures();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name->text; });
  return found == all.end() ? nullptr : &*found;
}

std::optional<InnerModel> inner_model(const Value& config) {
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    const Value* inner = config.find(key);
    if (inner == nullptr || !inner->is_map()) continue;
    Diagnostics unused;
    const Architecture* family = known_family(*inner, stated_name(*inner, unused));
    if (family != nullptr && family->inside.empty()) return InnerModel{family, key, inner};
  }
  const Value* thinker = config.find("thinker_config");  // of a model that speaks, the part that reads and writes
  return thinker != nullptr && thinker->is_map() ? inner_model(*thinker) : std::nullopt;
}

}  // namespace hdpsim
