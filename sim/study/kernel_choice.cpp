#include "sim/study/kernel_choice.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "sim/document/reader.h"

namespace hdpsim {

namespace {

// Which of the words; the first one where the study says nothing.
std::size_t choice(const Value* value, std::string_view what, const std::vector<std::string>& words,
                   Diagnostics& diagnostics) {
  return value == nullptr ? 0 : read_choice(*value, what, words, diagnostics).value_or(0);
}

void need(bool has, std::string_view part, const Value& asked_by, const DeviceProfile& profile,
          std::string_view otherwise, Diagnostics& diagnostics) {
  if (has) return;
  diagnostics.error(asked_by.position, fmt::format("the profile {} has no '{}'", profile.name, part),
                    fmt::format("choose a profile that has it, or write {}", otherwise));
}

}  // namespace

std::shared_ptr<const DeviceProfile> with_kernels(std::shared_ptr<const DeviceProfile> profile, const Value& kernels,
                                                  Diagnostics& diagnostics) {
  MapReader map(kernels, "the kernels", diagnostics);
  const Value* attention = map.find("attention");
  const Value* linear = map.find("linear");
  const Value* launch = map.find("launch");
  map.finish();
  std::vector<std::string> attentions{"flash", "unfused"};
  for (std::size_t i = 0; i < other_attentions; ++i) {
    attentions.emplace_back(other_attention_name(static_cast<OtherAttention>(i)));
  }
  const std::size_t attends = choice(attention, "attention", attentions, diagnostics);
  const bool fp8 = choice(linear, "linear", {"bf16", "fp8"}, diagnostics) == 1;
  const bool graphs = choice(launch, "launch", {"eager", "graphs"}, diagnostics) == 1;
  if (profile == nullptr) return profile;
  auto chosen = std::make_shared<DeviceProfile>(*profile);
  chosen->unfused_attention = attends == 1;
  if (attends >= 2) {
    const std::vector<AttentionCurve>& curves = profile->other_attention.at(attends - 2);
    const std::string_view key = other_attention_key(static_cast<OtherAttention>(attends - 2));
    need(!curves.empty(), key, *attention, *profile, "flash", diagnostics);
    chosen->attention = curves;
  }
  chosen->fp8_linear = fp8;
  if (fp8) need(profile->gemm_fp8.has_value(), "gemm_fp8", *linear, *profile, "bf16", diagnostics);
  if (graphs) chosen->overheads.host_issue.reset();
  return chosen;
}

}  // namespace hdpsim
