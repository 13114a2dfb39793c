#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/document/document.h"
#include "sim/model/transformer.h"
#include "sim/profile/device_profile.h"
#include "sim/trace/trace_file.h"
#include "sim/trust/published_errors.h"

namespace hdpsim {

/// Finds and reads the things that a study names. Shipped ones are in the subfolders configs/clusters, configs/models,
/// configs/frameworks, configs/hosts, configs/validation, calib/profiles and traces of one folder.
/// Things that many points of a sweep share are read once: the same question, if it gave no problem, gets the same
/// answer again, even if the files have changed since.
///
/// Every problem is reported, at the value that names the thing or in the file that holds it; the result is then empty.
class Catalog {
 public:
  /// What becomes of a profile when it is read, before a study chooses its kernels and overheads.
  using ProfileChange = std::function<void(DeviceProfile&)>;

  /// `change` is applied to every profile.
  explicit Catalog(std::filesystem::path data, ProfileChange change = {})
      : data_(std::move(data)), change_(std::move(change)) {}

  [[nodiscard]] std::filesystem::path clusters() const { return data_ / "configs" / "clusters"; }
  [[nodiscard]] std::filesystem::path models() const { return data_ / "configs" / "models"; }
  [[nodiscard]] std::filesystem::path frameworks() const { return data_ / "configs" / "frameworks"; }
  [[nodiscard]] std::filesystem::path hosts() const { return data_ / "configs" / "hosts"; }
  [[nodiscard]] std::filesystem::path validation_sets() const { return data_ / "configs" / "validation"; }
  [[nodiscard]] std::filesystem::path profiles() const { return data_ / "calib" / "profiles"; }
  [[nodiscard]] std::filesystem::path traces() const { return data_ / "traces"; }

  /// `{preset: a100-rail-3tier, gpus: 1024}`, `{file: path}`, a path, or a cluster written out in full.
  [[nodiscard]] std::optional<ClusterSpec> cluster(const Value& value, Diagnostics& diagnostics) const;
  /// `{preset: llama-7b}` or `{hf_config: path}`; keys beside `preset` replace those of its configuration:
  /// `{preset: llama-7b, num_hidden_layers: 12}`. Configurations that cannot be simulated yet are reported.
  [[nodiscard]] std::optional<Transformer> model(const Value& value, Diagnostics& diagnostics) const;
  /// `value` is a name or a path.
  [[nodiscard]] std::shared_ptr<const DeviceProfile> profile(const Value& value, Diagnostics& diagnostics);
  /// See with_kernels() ...
  [[nodiscard]] std::shared_ptr<const DeviceProfile> profile_with_kernels(
      const Value& kernels, const std::shared_ptr<const DeviceProfile>& profile, Diagnostics& diagnostics);
  /// ... and with_overheads().
  [[nodiscard]] std::shared_ptr<const DeviceProfile> profile_with_overheads(
      const Value& stated, const std::shared_ptr<const DeviceProfile>& profile, Diagnostics& diagnostics);
  /// The same profile with the times of families so many times as long; the profile itself if none is.
  [[nodiscard]] std::shared_ptr<const DeviceProfile> profile_slowed(const std::shared_ptr<const DeviceProfile>& profile,
                                                                    const FamilyFactors& factors);
  /// From here on files of lengths are read in their order, unless a study says that they are shuffled.
  void keep_order_of_files() { keeps_order_ = true; }
  /// The lengths, as read by read_lengths(). Their order is left to order_of().
  [[nodiscard]] std::optional<Lengths> lengths(const Value& value, Diagnostics& diagnostics);
  /// The order in which a trace is read that these lengths name: as `value` states, or else a random one. Null for the
  /// order of the file, a trace that names its steps, and lengths that are drawn.
  [[nodiscard]] RowOrder order_of(const Lengths& lengths, const Value& value, std::uint64_t seed);

  /// The errors of published figures (configs/trust.yaml); none, if the folder has no such file.
  [[nodiscard]] std::shared_ptr<const PublishedErrors> published_errors(Diagnostics& diagnostics) const;
  /// What the preset of a study's `framework`, which has been read or is null, runs on (framework_stack()).
  [[nodiscard]] std::string stack_of(const Value* framework) const;

  /// The cluster of a study written out in full.
  [[nodiscard]] Value expanded_cluster(const Value& value) const;
  /// The fingerprint of the contents of the lengths, which must be readable, and of the profile.
  [[nodiscard]] std::uint64_t fingerprint(const Value& lengths, const std::shared_ptr<const DeviceProfile>& profile);

 private:
  /// Answers by the whole text of the question.
  template <typename Answer>
  using Answers = std::map<std::string, Answer>;
  /// The same, also by the profile of the question.
  template <typename Answer>
  using AnswersOfProfiles = std::map<std::shared_ptr<const DeviceProfile>, Answers<Answer>>;

  [[nodiscard]] std::optional<Transformer> read_named_model(const Value& value, Diagnostics& diagnostics) const;

  std::filesystem::path data_;
  ProfileChange change_;
  bool keeps_order_ = false;
  Answers<std::shared_ptr<const DeviceProfile>> profiles_;
  Answers<Lengths> lengths_;
  std::map<std::pair<std::shared_ptr<const LengthTrace>, std::uint64_t>, RowOrder> orders_;
  AnswersOfProfiles<std::shared_ptr<const DeviceProfile>> profiles_with_kernels_;
  AnswersOfProfiles<std::shared_ptr<const DeviceProfile>> profiles_with_overheads_;
  std::map<std::shared_ptr<const DeviceProfile>, std::vector<std::shared_ptr<const DeviceProfile>>> slowed_profiles_;
  AnswersOfProfiles<std::uint64_t> fingerprints_;
  // Callers see no difference.
  mutable Answers<ClusterSpec> clusters_;
  mutable Answers<Value> expanded_clusters_;
  mutable Answers<Transformer> models_;
  mutable Answers<std::string> stacks_;
  mutable std::shared_ptr<const PublishedErrors> published_errors_;
};

/// Names of the shipped profiles of a device, sorted, without those whose rates others' figures imply
/// (Provenance::implied_by).
[[nodiscard]] std::vector<std::string> profiles_of(const std::string& device, Catalog& catalog);

/// The profile of a study that names none: the only one of profiles_of(). If there is none, or a choice, this is
/// reported at `where`; the result is then null.
[[nodiscard]] std::shared_ptr<const DeviceProfile> profile_of_device(const std::string& device, const Position& where,
                                                                     Catalog& catalog, Diagnostics& diagnostics);

}  // namespace hdpsim
