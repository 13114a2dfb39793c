#include "sim/import/impl/megatron_widths.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "sim/base/division.h"
#include "sim/import/impl/megatron_hybrid.h"
#include "sim/import/impl/megatron_ranges.h"

namespace hdpsim {
namespace {

using namespace megatron_ranges;

constexpr std::int64_t gpt2_entries = 50'257;  // GPT2BPETokenizer, the tokenizer of pretrain_gpt.py without another

class WidthReader {
 public:
  WidthReader(const MegatronArguments& arguments, std::int64_t tp, std::optional<std::int64_t> entries)
      : arguments_(arguments), tp_(tp), entries_(entries) {}

  MegatronWidths read() {
    const bool says_encoder = !arguments_.has("num_layers") && arguments_.has("encoder_num_layers");
    const std::string_view layers_key = says_encoder ? "encoder_num_layers" : "num_layers";
    const bool are_letters = states_layers(arguments_) && !arguments_.has(layers_key);
    widths_.layers = are_letters ? 0 : arguments_.required(layers_key, layers);
    read_hybrid();
    widths_.hidden = arguments_.required("hidden_size", hidden);
    widths_.heads = arguments_.required("num_attention_heads", heads);
    is_swiglu_ = arguments_.is_on("swiglu") || arguments_.word("activation_func", "gelu") == "swiglu";
    widths_.is_gated = is_swiglu_ || arguments_.is_on("quick_geglu") || arguments_.is_on("gated_linear_unit");
    widths_.ffn = arguments_.number("ffn_hidden_size", width, usual_ffn());
    widths_.kv_heads =
        arguments_.is_on("group_query_attention") ? arguments_.number("num_query_groups", heads, 1) : widths_.heads;
    if (!arguments_.has("kv_channels") && widths_.heads > 0 && widths_.hidden % widths_.heads != 0) {
      arguments_.diagnostics().error(
          arguments_.position("num_attention_heads"),
          fmt::format("{} heads do not divide the hidden size {}", widths_.heads, widths_.hidden),
          "state --kv-channels if the heads do not share the hidden size");
    }
    widths_.head_dim = arguments_.number("kv_channels", heads, widths_.heads > 0 ? widths_.hidden / widths_.heads : 0);
    widths_.vocabulary = padded_vocabulary();
    return std::move(widths_);
  }

 private:
  // Megatron-LM takes the letters where --num-layers says something else.
  void read_hybrid() {
    if (!is_hybrid(arguments_)) return;
    widths_.letters = hybrid_letters(arguments_, widths_.layers);
    const std::int64_t count = std::ssize(*widths_.letters);
    if (arguments_.has("num_layers") && count != widths_.layers) {
      arguments_.assume(
          fmt::format("the model has the {} layers of {}", count, arguments_.written(hybrid_argument(arguments_))),
          arguments_.position("num_layers"));
    }
    if (count == 0 && states_layers(arguments_)) {
      arguments_.diagnostics().error(arguments_.position(hybrid_argument(arguments_)), "no letter states a layer",
                                     fmt::format("write one a layer: {}", hybrid_letters_known));
    }
    widths_.layers = count;
  }

  // The width that keeps a gated MLP as large as a plain one of 4 h, a multiple of 64.
  [[nodiscard]] std::int64_t usual_ffn() const {
    return is_swiglu_ ? (4 * widths_.hidden * 2 / 3) / 64 * 64 : 4 * widths_.hidden;
  }

  [[nodiscard]] std::int64_t padded_vocabulary() const {
    const auto padded = arguments_.number("padded_vocab_size", vocabulary);
    if (padded && !entries_) return *padded;
    const std::int64_t entries = tokenizer_entries();
    const std::int64_t multiple = arguments_.number("make_vocab_size_divisible_by", {1, 1e6}, 128) * tp_;
    const std::int64_t rounded = rounded_up(entries, multiple);
    if (entries > 0 && rounded != entries) {
      arguments_.assume(fmt::format("the vocabulary of {} entries is padded to {}, a multiple of {} = {} x tp {}",
                                    entries, rounded, multiple, multiple / tp_, tp_));
    }
    return rounded;
  }

  [[nodiscard]] std::int64_t tokenizer_entries() const {
    if (entries_) return *entries_;
    const std::string tokenizer = arguments_.word("tokenizer_type", "GPT2BPETokenizer");
    if (tokenizer == "GPT2BPETokenizer") {
      if (!arguments_.has("tokenizer_type")) {
        arguments_.assume("the tokenizer is GPT2BPETokenizer, as in pretrain_gpt.py where none is stated");
      }
      return gpt2_entries;
    }
    const auto stated = arguments_.number("vocab_size", vocabulary);
    if (stated && tokenizer == "NullTokenizer") return *stated + 1;  // and the end of a document
    if (stated) {
      arguments_.assume(
          fmt::format("the {} has the {} entries that {} states", tokenizer, *stated, arguments_.written("vocab_size")),
          arguments_.position("vocab_size"));
      return *stated;
    }
    arguments_.diagnostics().error(arguments_.position("tokenizer_type"),
                                   fmt::format("nothing states the vocabulary of the {}", tokenizer),
                                   "--vocab-size N states it: the entries of the tokenizer, before they are padded");
    return 0;
  }

  const MegatronArguments& arguments_;
  std::int64_t tp_;
  std::optional<std::int64_t> entries_;  ///< Of the tokenizer.
  bool is_swiglu_ = false;
  MegatronWidths widths_;
};

}  // namespace

MegatronWidths megatron_widths(const MegatronArguments& arguments, std::int64_t tp,
                               std::optional<std::int64_t> entries) {
  return WidthReader(arguments, tp, entries).read();
}

}  // namespace hdpsim
