#include "sim/study/kernel_choice.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/document/key_table.h"

namespace hdpsim {

namespace {

constexpr std::size_t unfused = 1;
constexpr std::size_t first_other = 2;

struct KernelChoice {
  std::size_t attention = 0;  ///< `flash`, `unfused`, then the values of OtherAttention.
  ProductFormat linear = ProductFormat::elements;
  bool graphs = false;
};

std::vector<std::pair<std::string, std::size_t>> attentions() {
  std::vector<std::pair<std::string, std::size_t>> names = {{"flash", 0}, {"unfused", unfused}};
  for (std::size_t i = 0; i < other_attentions; ++i) {
    names.emplace_back(other_attention_name(static_cast<OtherAttention>(i)), first_other + i);
  }
  return names;
}

const KeyTable<KernelChoice>& kernel_table() {
  static const auto made = [] {
    KeyTable<KernelChoice> kernels("the kernels");
    kernels.word(
        "attention", "attention", attentions(), at(&KernelChoice::attention),
        "`unfused` writes the square of scores to memory and keeps it for backward, as before FlashAttention; `triton` "
        "is FlashAttention of 2022 in Triton, `flash2` FlashAttention-2 where the profile's `attention` is a later "
        "one, `cudnn` "
        "that of cuDNN, where the profile has `attention_triton`, `attention_flash2` or `attention_cudnn`");
    kernels.word("linear", "linear", product_format_words(), at(&KernelChoice::linear),
                 "what the layers' products multiply: in fp8 what they read is cast, with one scale a tensor, which "
                 "follows from earlier steps (`fp8`) or from the tensor (`fp8_current`; both need the profile's "
                 "`gemm_fp8`), with one for 128 columns (`fp8_blocks`, `gemm_fp8_blocks`) or for 32 (`mxfp8`, "
                 "`gemm_mxfp8`)");
    kernels.word("launch", "launch", {{"eager", false}, {"graphs", true}}, at(&KernelChoice::graphs),
                 "with `graphs` kernels wait for no host, else as the profile's `overheads.host_issue` says");
    return kernels;
  }();
  return made;
}

void need(bool has, std::string_view part, const Value& asked_by, const DeviceProfile& profile,
          std::string_view otherwise, Diagnostics& diagnostics) {
  if (has) return;
  diagnostics.error(asked_by.position, fmt::format("the profile {} has no '{}'", profile.name, part),
                    fmt::format("choose a profile that has it, or write {}", otherwise));
}

}  // namespace

const std::vector<std::pair<std::string, ProductFormat>>& product_format_words() {
  static const std::vector<std::pair<std::string, ProductFormat>> words = {{"bf16", ProductFormat::elements},
                                                                           {"fp8", ProductFormat::fp8},
                                                                           {"fp8_current", ProductFormat::fp8_current},
                                                                           {"fp8_blocks", ProductFormat::fp8_blocks},
                                                                           {"mxfp8", ProductFormat::mxfp8}};
  return words;
}

const std::vector<KeyText>& kernel_keys() {
  return kernel_table().texts();
}

std::shared_ptr<const DeviceProfile> with_kernels(std::shared_ptr<const DeviceProfile> profile, const Value& kernels,
                                                  Diagnostics& diagnostics) {
  KernelChoice choice;
  (void)kernel_table().read(kernels, choice, diagnostics);
  if (profile == nullptr) return profile;
  auto chosen = std::make_shared<DeviceProfile>(*profile);
  chosen->unfused_attention = choice.attention == unfused;
  if (choice.attention >= first_other) {
    const std::vector<AttentionCurve>& curves = profile->other_attention.at(choice.attention - first_other);
    const std::string_view key = other_attention_key(static_cast<OtherAttention>(choice.attention - first_other));
    need(!curves.empty(), key, *kernels.find("attention"), *profile, "flash", diagnostics);
    chosen->attention = curves;
  }
  chosen->linear = choice.linear;
  if (in_fp8(choice.linear)) {
    const std::size_t table = fp8_table(choice.linear);
    need(profile->gemm_fp8[table].has_value(), fp8_table_key(table), *kernels.find("linear"), *profile, "bf16",
         diagnostics);
  }
  if (choice.graphs) chosen->overheads.host_issue.reset();
  return chosen;
}

}  // namespace hdpsim
