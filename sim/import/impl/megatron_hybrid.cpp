#include "sim/import/impl/megatron_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace hdpsim {
namespace {

using Numbers = std::optional<std::vector<std::int64_t>>;

constexpr int deepest_list = 32;

class ListReader {
 public:
  ListReader(std::string_view text, std::size_t most) : text_(text), most_(most) {}

  Numbers read() {
    Numbers all = sum();
    return next() == '\0' ? all : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  Numbers sum() {
    Numbers left = product();
    while (left && takes('+')) {
      Numbers right = product();
      if (!right || left->size() + right->size() > most_) return std::nullopt;
      left->insert(left->end(), right->begin(), right->end());
    }
    return left;
  }

  Numbers product() {
    Numbers list = atom();
    while (list && takes('*')) {
      const auto times = number();
      if (!times || *times < 0) return std::nullopt;
      const auto count = static_cast<std::size_t>(*times);
      if (!list->empty() && count > most_ / list->size()) return std::nullopt;
      std::vector<std::int64_t> repeated;
      for (std::size_t i = 0; i < (list->empty() ? 0 : count); ++i)
        repeated.insert(repeated.end(), list->begin(), list->end());
      list = std::move(repeated);
    }
    return list;
  }

  Numbers atom() {
    if (++depth_ > deepest_list) return std::nullopt;
    Numbers list = takes('(') ? inside() : items();
    --depth_;
    return list;
  }

  Numbers inside() {
    Numbers list = sum();
    return takes(')') ? list : std::nullopt;
  }

  Numbers items() {
    if (!takes('[')) return std::nullopt;
    std::vector<std::int64_t> all;
    while (!takes(']')) {
      const auto each = number();
      if (!each || all.size() == most_) return std::nullopt;
      all.push_back(*each);
      if (!takes(',') && next() != ']') return std::nullopt;
    }
    return all;
  }

  std::optional<std::int64_t> number() {
    (void)next();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  std::size_t most_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

using namespace megatron_ranges;

constexpr std::string_view attention_ratio = "hybrid_attention_ratio";
constexpr std::string_view mlp_ratio = "hybrid_mlp_ratio";

// Empty if it is wrong, which set_hybrid_layers() reports.
std::optional<double> ratio(const MegatronArguments& arguments, std::string_view key) {
  Diagnostics ignored;
  return read_in<double>(Value::scalar(arguments.word(key, "0"), {}), key, {0, 1}, ignored);
}

constexpr std::string_view newer_pattern = "hybrid_layer_pattern";
constexpr std::string_view older_pattern = "hybrid_override_pattern";

// Changes every layer that is an M and lies behind `gap` of them, on average, to `letter`.
void deal(std::string& letters, double gap, char letter) {
  double left = gap;
  for (char& each : letters) {
    if (each != 'M') continue;
    if (left < 0.5) {
      each = letter;
      left += gap;
    } else {
      left -= 1;
    }
  }
}

std::string from_ratios(std::int64_t layers, double attention, double mlp) {
  const auto count = static_cast<double>(layers);
  const double attends = std::nearbyint(count * attention);
  const double mlps = std::nearbyint(count * mlp);
  std::string letters(static_cast<std::size_t>(layers), 'M');
  deal(letters, (count - attends) / (attends + 1), '*');
  if (mlps > 0) deal(letters, (count - attends - mlps) / mlps, '-');
  return letters;
}

std::string_view pattern_key(const MegatronArguments& arguments) {
  return arguments.has(newer_pattern) ? newer_pattern : older_pattern;
}

bool has_pattern(const MegatronArguments& arguments) {
  return arguments.has(pattern_key(arguments));
}

// The letters of the model's layers, with bars where stages end; behind a slash those of other layers begin.
std::string pattern_of_layers(const MegatronArguments& arguments) {
  const std::string text = arguments.word(pattern_key(arguments), "");
  return text.substr(0, text.find('/'));
}

/// What predicts further tokens: the letters of a module, and the number of modules.
struct Modules {
  std::string letters;
  std::int64_t count = 0;
};

// "M*M*/MM/MM": behind the layers, those of two modules, which must be alike.
Modules modules_of(const MegatronArguments& arguments) {
  const std::string_view key = pattern_key(arguments);
  const std::string text = arguments.word(key, "");
  Modules found;
  for (std::size_t begin = text.find('/'); begin != std::string::npos;) {
    const std::size_t end = text.find('/', begin + 1);
    const std::string module = text.substr(begin + 1, end - begin - 1);
    if (!module.empty() && found.count > 0 && module != found.letters) {
      arguments.diagnostics().error(
          arguments.position(key),
          fmt::format("the layers that predict further tokens are '{}' and '{}'", found.letters, module),
          "write the same letters behind every /");
    }
    if (!module.empty()) found = {module, found.count + 1};
    begin = end;
  }
  if (!arguments.has("mtp_num_layers")) return found;
  if (found.count > 0) {
    if (arguments.number("mtp_num_layers", megatron_ranges::modules, found.count) != found.count) {
      arguments.assume(
          fmt::format("further tokens are predicted by the {} modules of {}", found.count, arguments.written(key)),
          arguments.position("mtp_num_layers"));
    }
    return found;
  }
  if (arguments.has("mtp_hybrid_override_pattern")) {
    return {arguments.word("mtp_hybrid_override_pattern", ""),
            arguments.number("mtp_num_layers", megatron_ranges::modules, 0)};
  }
  arguments.note_unmodelled("mtp_num_layers", "no letters say which layers predict further tokens: none do",
                            effects::slower_and_larger);
  return {};
}

// Megatron-LM compares ratios with a pattern that is stated, too.
void check_ratio(const MegatronArguments& arguments, std::string_view key, char letter, const std::string& letters) {
  const double share = arguments.fraction(key, 0);
  const auto stated = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(letters.size()) * share));
  const auto listed = std::count(letters.begin(), letters.end(), letter);
  if (share == 0 || !has_pattern(arguments) || stated == listed) return;
  arguments.diagnostics().error(
      arguments.position(key),
      fmt::format("'{}' is {} of {} layers, the pattern has {}", key, stated, letters.size(), listed),
      "leave the ratio out: the pattern says it");
}

void check_arguments(const MegatronArguments& arguments, const std::string& letters) {
  arguments.refuse_second_of(std::array{newer_pattern, older_pattern});
  check_ratio(arguments, attention_ratio, '*', letters);
  check_ratio(arguments, mlp_ratio, '-', letters);
  const double all = arguments.fraction(attention_ratio, 0) + arguments.fraction(mlp_ratio, 0);
  if (all > 1) {
    arguments.diagnostics().error(arguments.position(mlp_ratio),
                                  fmt::format("attention and MLPs are {:g} of all layers together", all),
                                  "both ratios together are at most 1");
  }
}

// Channels of all heads are twice the hidden size, unless the number of heads is stated. 0 if that is wrong, which is
// reported.
std::int64_t usual_mamba_heads(const MegatronArguments& arguments, std::int64_t hidden, std::int64_t head) {
  const std::int64_t channels = 2 * hidden;
  if (head == 0 || arguments.has("mamba_num_heads")) return 0;
  if (channels % head != 0) {
    arguments.diagnostics().error(
        arguments.position("mamba_head_dim"),
        fmt::format("heads of {} do not divide the {} channels, twice the hidden size", head, channels),
        "state --mamba-num-heads if the channels are others");
    return 0;
  }
  return channels / head;
}

}  // namespace

std::optional<std::vector<std::int64_t>> layer_list(std::string_view text, std::size_t most) {
  return ListReader(text, most).read();
}

bool is_hybrid(const MegatronArguments& arguments) {
  const auto is_stated = [&](std::string_view key) { return ratio(arguments, key) != 0.0; };
  return has_pattern(arguments) || is_stated(attention_ratio) || is_stated(mlp_ratio) ||
         arguments.is_on("is_hybrid_model");
}

std::string hybrid_letters(const MegatronArguments& arguments, std::int64_t count) {
  if (!has_pattern(arguments)) {
    return from_ratios(std::max<std::int64_t>(count, 0), ratio(arguments, attention_ratio).value_or(0),
                       ratio(arguments, mlp_ratio).value_or(0));
  }
  std::string text = pattern_of_layers(arguments);
  std::erase(text, '|');
  return text;
}

bool states_layers(const MegatronArguments& arguments) {
  return has_pattern(arguments);
}

std::int64_t hybrid_segments(const MegatronArguments& arguments) {
  const std::string text = pattern_of_layers(arguments);
  return 1 + std::count(text.begin(), text.end(), '|');
}

std::string_view hybrid_argument(const MegatronArguments& arguments) {
  return has_pattern(arguments) ? pattern_key(arguments) : attention_ratio;
}

void set_hybrid_layers(const MegatronArguments& arguments, const std::string& letters, std::int64_t hidden_size,
                       std::int64_t ffn, Value& config) {
  check_arguments(arguments, letters);
  const std::string_view argument = hybrid_argument(arguments);
  if (hybrid_segments(arguments) > 1) {
    arguments.note_unmodelled(argument, "layers are dealt to the stages evenly", effects::other_both);
  };
  const auto set = [&](std::string_view key, std::string value, std::string_view said_by, bool quoted = false) {
    Value scalar = Value::scalar(std::move(value), arguments.position(said_by));
    scalar.quoted = quoted;
    config.set(key, std::move(scalar));
  };
  const auto set_number = [&](std::string_view key, std::string_view said_by, Range range, std::int64_t usual) {
    set(key, std::to_string(arguments.number(said_by, range, usual)), said_by);
  };
  set("hybrid_override_pattern", letters, argument, true);
  if (const Modules modules = modules_of(arguments); modules.count > 0) {
    set("mtp_hybrid_override_pattern", modules.letters, argument, true);
    set("num_nextn_predict_layers", std::to_string(modules.count), argument);
  }
  const std::int64_t head = arguments.number("mamba_head_dim", heads, 64);
  const std::int64_t mamba_heads =
      arguments.number("mamba_num_heads", heads, usual_mamba_heads(arguments, hidden_size, head));
  const std::int64_t groups = arguments.number("mamba_num_groups", heads, 8);
  if (mamba_heads % groups != 0) {
    arguments.diagnostics().error(arguments.position("mamba_num_groups"),
                                  fmt::format("{} groups of keys do not divide {} heads of Mamba", groups, mamba_heads),
                                  "state --mamba-num-groups, or --mamba-num-heads that they divide");
  }
  set("mamba_num_heads", std::to_string(mamba_heads), "mamba_num_heads");
  set("mamba_head_dim", std::to_string(head), "mamba_head_dim");
  set("n_groups", std::to_string(groups), "mamba_num_groups");
  set_number("ssm_state_size", "mamba_state_dim", heads, 128);
  if (letters.find('E') == std::string::npos) return;
  set("n_routed_experts", std::to_string(arguments.required("num_experts", experts)), "num_experts");
  set_number("num_experts_per_tok", "moe_router_topk", chosen, 2);
  set_number("moe_intermediate_size", "moe_ffn_hidden_size", width, ffn);
  set_number("moe_shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", {0, width.most}, 0);
  if (arguments.has("moe_latent_size")) set_number("moe_latent_size", "moe_latent_size", model_ranges::hidden, 0);
}

}  // namespace hdpsim
