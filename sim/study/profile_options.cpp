#include "sim/study/profile_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/document/key_table.h"
#include "sim/profile/physical_parameters.h"

namespace hdpsim {
namespace {

constexpr std::size_t unfused = 1;
constexpr std::size_t first_other = 2;

const std::vector<std::string>& launches() {
  static const std::vector<std::string> words = {"eager", "graphs"};
  return words;
}

std::vector<std::string> captured_modules() {
  return {graph_module_names.begin(), graph_module_names.end()};
}

struct KernelChoice {
  std::size_t attention = 0;  ///< `flash`, `unfused`, then the values of OtherAttention.
  ProductFormat linear = ProductFormat::elements;
  LayerKernels layers = LayerKernels::fused;
  bool fused_norms = false;
  bool graphs = false;  ///< Of whole steps.
  GraphScope captured = {};
};

// `value` is a word, or a list of modules that are a graph each.
void read_launch(const Value& value, KernelChoice& choice, Diagnostics& diagnostics) {
  if (!value.is_sequence()) {
    const auto word = read_choice(value, "launch", launches(), diagnostics);
    choice.graphs = word == launches().size() - 1;
    return;
  }
  for (const Value& item : value.items) {
    const auto module = read_choice(item, "module to capture", captured_modules(), diagnostics);
    if (module) choice.captured.add(static_cast<GraphModule>(*module));
  }
}

std::vector<std::pair<std::string, LayerKernels>> layer_kernels() {
  std::vector<std::pair<std::string, LayerKernels>> words;
  for (std::size_t i = 0; i < layer_kernel_words.size(); ++i) {
    words.emplace_back(layer_kernel_words.at(i), static_cast<LayerKernels>(i));
  }
  return words;
}

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
    kernels.word(
        "linear", "linear", product_format_words(), at(&KernelChoice::linear),
        "what the layers' products multiply: in fp8 what they read is cast, with one scale a tensor, which "
        "follows from earlier steps (`fp8`) or from the tensor (`fp8_current`; both need the profile's "
        "`gemm_fp8`), with one for 128 columns in Transformer Engine (`fp8_blocks`, `gemm_fp8_blocks`) or DeepGEMM "
        "(`fp8_deepgemm`, `gemm_fp8_deepgemm`) or for 32 (`mxfp8`, "
        "`gemm_mxfp8`); in 4 bits with one for 16 and one a tensor (`nvfp4`, `gemm_nvfp4`)");
    kernels.word("layers", "kernels of layers", layer_kernels(), at(&KernelChoice::layers),
                 "who writes what lies between products and attention: `fused`, one kernel an operation and joined "
                 "weights, as in Transformer Engine; `eager`, PyTorch operator by operator: norms of eight kernels in "
                 "fp32, positions in complex numbers, a product for each weight, and what lies between kernels is kept "
                 "for backward; `compiled`, what torch.compile makes of a layer, whose backward computes norms and "
                 "activations again",
                 {.see = "layers-of-pytorch"});
    kernels.flag("fused_norms", at(&KernelChoice::fused_norms),
                 "RMSNorm is one kernel in eager layers, too: torchtitan's `fused_rmsnorm` of 2024, and PyTorch's own "
                 "RMSNorm from release 2.8 on (not HuggingFace's)",
                 {.see = "layers-of-pytorch"});
    kernels.add(
        {"launch",
         either_shape({word_shape(launches()), list_shape(word_shape(captured_modules()))}),
         launches().front(),
         "`eager`: the host issues kernels one by one, each in the time that `overheads` says; `graphs`: CUDA "
         "graphs launch all of them, which wait for no host; a list of modules: each is one graph (Megatron-LM's "
         "`--cuda-graph-scope`; `router` with what precedes and follows it)",
         {.see = "host-time"}},
        read_launch);
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
  static const auto words = [] {
    std::vector<std::pair<std::string, ProductFormat>> all = {{"bf16", ProductFormat::elements}};
    for (const NarrowFormat& narrow : narrow_formats) all.emplace_back(narrow.word, narrow.format);
    return all;
  }();
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
  chosen->layers = choice.layers;
  chosen->fused_norms = choice.fused_norms;
  if (is_narrow(choice.linear)) {
    const std::size_t table = narrow_format(choice.linear).table;
    need(profile->gemm_narrow[table].has_value(), narrow_tables.at(table).key, *kernels.find("linear"), *profile,
         "bf16", diagnostics);
  }
  if (choice.graphs) chosen->overheads.host_issue.reset();
  chosen->graphs = choice.captured;
  return chosen;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".yaml";

/// The figures that a study states instead of the profile's.
struct StatedOverheads {
  std::optional<Duration> per_step;
  std::optional<Duration> per_micro_batch;
  std::string host;
  std::optional<Duration> host_issue;
};

using OverheadKeys = KeyTable<StatedOverheads>;

const OverheadKeys& keys_of_study() {
  static const auto made = [] {
    OverheadKeys keys("'overheads'");
    keys.quantity("per_step", limits::time, at(&StatedOverheads::per_step),
                  "what the framework spends in each step in addition to all that is modelled",
                  {.otherwise = "the profile's"});
    keys.quantity("per_micro_batch", limits::time, at(&StatedOverheads::per_micro_batch),
                  "the same in each micro-batch", {.otherwise = "the profile's"});
    keys.text("host", at(&StatedOverheads::host),
              "the software whose host thread issues the kernels: a file of `configs/hosts`, which states its time to "
              "issue one, by device, with the source; shorter kernels wait for it. `profile`: the profile's own time, "
              "which a profile of traces keeps; a profile that was fitted to steps multiplies either",
              {.otherwise = "`profile`", .see = "host-time"});
    keys.quantity("host_issue", limits::time, at(&StatedOverheads::host_issue),
                  "the host's time to issue one kernel, in place of that file's",
                  {.otherwise = "what `host` says", .see = "host-time"});
    return keys;
  }();
  return made;
}

// The file of this name in the folder of hosts. Null, with a problem reported, if there is none.
Value load_host(const Value& name, const fs::path& folder, Diagnostics& diagnostics) {
  const std::vector<std::string> names = names_in(folder, ending);
  if (std::find(names.begin(), names.end(), name.text) == names.end()) {
    diagnostics.error(name.position, fmt::format("there is no host '{}'", name.text), suggestion(name.text, names));
    return {};
  }
  return load_document((folder / (name.text + std::string(ending))).string(), diagnostics);
}

constexpr std::string_view of_profile = "profile";  // as the software: the profile's own time

// The entry of a map of times by device, whose keys are the first words of their names: `H100-80GB` is an H100.
std::optional<Duration> time_of(const Value& by_device, const std::string& what, const std::string& device,
                                Diagnostics& diagnostics) {
  constexpr std::string_view others = "others";
  const std::string type = device.substr(0, device.find('-'));
  MapReader times(by_device, what, diagnostics);
  std::optional<Duration> found = times.required_in<Duration>(others, limits::time);
  for (const Value::Entry& entry : by_device.entries) {
    if (entry.key == others) continue;
    const auto stated = times.optional_in<Duration>(entry.key, limits::time);
    if (entry.key == type) found = stated;
  }
  return found;
}

// What the software `host` takes to issue kernels on the usual host of a device, `factor` times what its file says.
void state_host(const Value& host, const fs::path& hosts, const std::string& device, double factor,
                Overheads& overheads, Diagnostics& diagnostics) {
  const Value document = load_host(host, hosts, diagnostics);
  if (document.is_null()) return;
  MapReader file(document, "the host", diagnostics);
  const std::string source = file.required<std::string>("source").value_or("");
  const Value* issue = file.require("issue");
  const Value* loop = file.find("loop");
  const Value* narrow = file.find("narrow");
  const Value* dispatch = file.find("dispatch");
  file.finish();
  if (issue == nullptr) return;
  const auto read = [&](const Value* times, const std::string& what) -> std::optional<Overhead> {
    const auto time = times == nullptr ? std::nullopt : time_of(*times, what, device, diagnostics);
    if (!time) return std::nullopt;
    return Overhead{time->scaled(factor), source};
  };
  overheads.host_issue = read(issue, "'issue'");
  overheads.host_loop = read(loop, "'loop'");
  overheads.host_narrow = read(narrow, "'narrow'");
  overheads.host_dispatch = read(dispatch, "'dispatch'");
}

void state(const StatedOverheads& stated, Overheads& overheads) {
  const std::string source = "stated by the study";
  if (stated.per_step) overheads.per_step = {*stated.per_step, source};
  if (stated.per_micro_batch) overheads.per_micro_batch = {*stated.per_micro_batch, source};
  if (stated.host_issue) overheads.host_issue = Overhead{*stated.host_issue, source};
}

}  // namespace

const std::vector<KeyText>& overhead_keys() {
  return keys_of_study().texts();
}

std::shared_ptr<const DeviceProfile> with_overheads(std::shared_ptr<const DeviceProfile> profile,
                                                    const Value& overheads, const std::filesystem::path& hosts,
                                                    Diagnostics& diagnostics) {
  StatedOverheads stated;
  (void)keys_of_study().read(overheads, stated, diagnostics);
  if (profile == nullptr) return profile;
  auto changed = std::make_shared<DeviceProfile>(*profile);
  const bool is_traced = profile->provenance.label == ProfileLabel::traced;
  if (!stated.host.empty() && stated.host != of_profile && !is_traced) {
    state_host(*overheads.find("host"), hosts, profile->provenance.device,
               fitted_value(profile->provenance, "host_issue"), changed->overheads, diagnostics);
  }
  state(stated, changed->overheads);
  return changed;
}

}  // namespace hdpsim
