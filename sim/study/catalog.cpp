#include "sim/study/catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/fingerprint.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster_config.h"
#include "sim/document/reader.h"
#include "sim/model/model_config.h"
#include "sim/profile/profile_file.h"
#include "sim/study/framework.h"
#include "sim/study/lengths.h"
#include "sim/study/profile_options.h"
#include "sim/study/study_paths.h"

namespace hdpsim {
namespace {

void append_text(std::string_view text, std::string& key) {
  key += std::to_string(text.size());
  key += ':';
  key += text;
}

// A text of all of a value but its position; different values have different texts. Of the position only the file
// counts, because paths are relative to it.
void append_value(const Value& value, std::string& key) {
  key += static_cast<char>('a' + static_cast<int>(value.kind));
  key += value.quoted ? 'q' : value.one_line ? 'l' : ' ';
  if (value.is_scalar()) {
    append_text(value.text, key);
    append_text(value.position.file, key);
  }
  for (const Value& item : value.items) append_value(item, key);
  for (const auto& [name, position, of] : value.entries) {
    append_text(name, key);
    append_value(of, key);
  }
  key += '.';
}

std::string memo_key(const Value& value) {
  std::string key;
  append_value(value, key);
  return key;
}

// A question that gave a problem is answered anew, so that the problem is reported again.
template <typename Answer, typename Read>
std::optional<Answer> remembered(std::map<std::string, Answer>& answers, const Value& asked, Diagnostics& diagnostics,
                                 const Read& read) {
  std::string key = memo_key(asked);
  if (const auto known = answers.find(key); known != answers.end()) return known->second;
  Diagnostics found;
  std::optional<Answer> answer = read(found);
  diagnostics.append(found);
  if (answer && found.empty()) answers.emplace(std::move(key), *answer);
  return answer;
}

}  // namespace

std::optional<ClusterSpec> Catalog::cluster(const Value& value, Diagnostics& diagnostics) const {
  return remembered(clusters_, value, diagnostics,
                    [&](Diagnostics& found) { return read_cluster(value, clusters(), found); });
}

Value Catalog::expanded_cluster(const Value& value) const {
  Diagnostics told_before;
  return *remembered(expanded_clusters_, value, told_before,
                     [&](Diagnostics& found) { return std::optional(expand_cluster(value, clusters(), found)); });
}

std::optional<Transformer> Catalog::model(const Value& value, Diagnostics& diagnostics) const {
  return remembered(models_, value, diagnostics, [&](Diagnostics& found) { return read_named_model(value, found); });
}

std::shared_ptr<const PublishedErrors> Catalog::published_errors(Diagnostics& diagnostics) const {
  const std::filesystem::path file = data_ / "configs" / "trust.yaml";
  if (published_errors_ == nullptr) {
    published_errors_ = std::make_shared<PublishedErrors>(
        is_there(file) ? load_published_errors(file.string(), diagnostics) : PublishedErrors());
  }
  return published_errors_;
}

std::string Catalog::stack_of(const Value* framework) const {
  const Value* preset = framework == nullptr ? nullptr : framework->find("preset");
  const Value name = preset == nullptr ? Value{} : *preset;
  Diagnostics told_before;
  return *remembered(stacks_, name, told_before,
                     [&](Diagnostics& found) { return std::optional(framework_stack(name, frameworks(), found)); });
}

std::optional<Transformer> Catalog::read_named_model(const Value& value, Diagnostics& diagnostics) const {
  MapReader map(value, "the model", diagnostics);
  const Value* preset = map.find("preset");
  const Value* config = map.find("hf_config");
  std::vector<Value::Entry> changes;
  if (preset != nullptr || config != nullptr) {
    for (const auto& entry : value.entries) {
      if (entry.key != "preset" && entry.key != "hf_config" && map.find(entry.key) != nullptr) changes.push_back(entry);
    }
  }
  map.finish();
  if (value.is_map() && (preset == nullptr) == (config == nullptr)) {
    map.error("a model is a 'preset' or an 'hf_config'", "write model: {preset: llama-7b}");
    return std::nullopt;
  }
  const Value* named = preset != nullptr ? preset : config;
  if (named == nullptr || !read<std::string>(*named, diagnostics)) return std::nullopt;
  std::optional<Transformer> model;
  if (preset != nullptr) {
    model = load_model_preset(preset->text, models().string(), preset->position, diagnostics, changes);
  } else if (is_there(path_of(*config))) {
    model = load_model(path_of(*config).string(), diagnostics, changes);
  } else {
    diagnostics.error(config->position, fmt::format("there is no file {}", path_of(*config).string()));
  }
  return model;
}

std::shared_ptr<const DeviceProfile> Catalog::profile(const Value& value, Diagnostics& diagnostics) {
  if (!read<std::string>(value, diagnostics)) return nullptr;
  const bool is_path = looks_like_path(value.text);
  const std::string name = is_path ? path_of(value).string() : value.text;
  if (const auto known = profiles_.find(name); known != profiles_.end()) return known->second;
  if (is_path && !is_there(name)) {
    diagnostics.error(value.position, fmt::format("there is no file {}", name));
    return nullptr;
  }
  auto profile = load_profile(name, profiles().string(), value.position, diagnostics);
  if (!profile) return nullptr;
  if (change_) change_(*profile);
  return profiles_[name] = std::make_shared<DeviceProfile>(std::move(*profile));
}

std::shared_ptr<const DeviceProfile> Catalog::profile_with_kernels(const Value& kernels,
                                                                   const std::shared_ptr<const DeviceProfile>& profile,
                                                                   Diagnostics& diagnostics) {
  return *remembered(profiles_with_kernels_[profile], kernels, diagnostics,
                     [&](Diagnostics& found) { return std::optional(with_kernels(profile, kernels, found)); });
}

std::shared_ptr<const DeviceProfile> Catalog::profile_with_overheads(
    const Value& stated, const std::shared_ptr<const DeviceProfile>& profile, Diagnostics& diagnostics) {
  return *remembered(profiles_with_overheads_[profile], stated, diagnostics, [&](Diagnostics& found) {
    return std::optional(with_overheads(profile, stated, hosts(), found));
  });
}

std::shared_ptr<const DeviceProfile> Catalog::profile_slowed(const std::shared_ptr<const DeviceProfile>& profile,
                                                             const FamilyFactors& factors) {
  if (!factors.any()) return profile;
  auto& known = slowed_profiles_[profile];
  const auto is_it = [&](const auto& slowed) { return slowed->factors == factors; };
  const auto found = std::find_if(known.begin(), known.end(), is_it);
  if (found != known.end()) return *found;
  auto slowed = std::make_shared<DeviceProfile>(*profile);
  slowed->factors = factors;
  return known.emplace_back(std::move(slowed));
}

std::optional<Lengths> Catalog::lengths(const Value& value, Diagnostics& diagnostics) {
  return remembered(lengths_, value, diagnostics,
                    [&](Diagnostics& found) { return read_lengths(value, traces(), found); });
}

RowOrder Catalog::order_of(const Lengths& lengths, const Value& value, std::uint64_t seed) {
  if (lengths.trace == nullptr || !lengths.trace->steps.empty()) return nullptr;
  const TraceOrder otherwise = keeps_order_ ? TraceOrder::file : TraceOrder::shuffle;
  if (order_of_lengths(value).value_or(otherwise) == TraceOrder::file) return nullptr;
  RowOrder& order = orders_[{lengths.trace, seed}];
  if (order == nullptr) order = make_random_order(lengths.trace->tokens.size(), seed);
  return order;
}

std::uint64_t Catalog::fingerprint(const Value& lengths, const std::shared_ptr<const DeviceProfile>& profile) {
  Diagnostics none;
  return *remembered(fingerprints_[profile], lengths, none, [&](Diagnostics&) {
    return std::optional(hdpsim::fingerprint(profile_text(*profile), fingerprint_of_lengths(lengths, traces())));
  });
}

std::vector<std::string> profiles_of(const std::string& device, Catalog& catalog) {
  std::vector<std::string> names = profile_names(catalog.profiles().string());
  std::erase_if(names, [&](const std::string& name) {
    Diagnostics none;
    const auto profile = catalog.profile(Value::scalar(name), none);
    return profile == nullptr || profile->provenance.device != device || !profile->provenance.implied_by.empty();
  });
  return names;
}

std::shared_ptr<const DeviceProfile> profile_of_device(const std::string& device, const Position& where,
                                                       Catalog& catalog, Diagnostics& diagnostics) {
  const std::vector<std::string> suitable = profiles_of(device, catalog);
  if (suitable.size() == 1) return catalog.profile(Value::scalar(suitable.front()), diagnostics);
  if (suitable.empty()) {
    const std::vector<std::string> names = profile_names(catalog.profiles().string());
    diagnostics.error(where, fmt::format("the study names no profile, and none is of a {}", device),
                      fmt::format("write profile: and one of {}, or a file", joined(names, ", ")));
  } else {
    diagnostics.error(where, fmt::format("the study names no profile, and {} are of a {}", suitable.size(), device),
                      fmt::format("write profile: {}", joined(suitable, ", or ")));
  }
  return nullptr;
}

}  // namespace hdpsim
