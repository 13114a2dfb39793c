#include "calib/measure/sample_fit.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "calib/fit/fit.h"
#include "calib/fit/report.h"
#include "calib/measure/collect.h"
#include "calib/measure/impl/sample_parts.h"
#include "calib/measure/impl/sample_tiles.h"
#include "sim/base/text.h"
#include "sim/profile/profile_file.h"

namespace hdpsim::calib {
namespace {

constexpr std::string_view measured_through = "measured through ";

// "measured through PyTorch: attention by flash-attn 2.8.1, gemm by cuBLAS (hdpsim.torch.calibrate)"
std::string kernels_text(const SampleHeader& header) {
  if (header.kernels.empty()) return fmt::format("measured by {}", header.program);
  std::string names;
  for (const auto& [family, name] : header.kernels) {
    append(names, "{}{} by {}", names.empty() ? "" : ", ", family, name);
  }
  return fmt::format("{}{}: {} ({})", measured_through, header.through, names, header.program);
}

std::string name_of(const DeviceProfile& profile) {
  return fmt::format("{} ({})", profile.name, profile_label_name(profile.provenance.label));
}

/// Fills in what a header does not say of its device.
class DeviceFacts {
 public:
  DeviceFacts(const SampleHeader& header, const SampleFitOptions& options, Diagnostics& diagnostics)
      : header_(header), options_(options), diagnostics_(diagnostics), facts_(header.circumstances) {}

  Circumstances run() {
    take("memory_bytes", facts_.memory_bytes, [](const Datasheet& sheet) { return sheet.memory.count(); });
    take("peak_flops", facts_.peak_flops, [](const Datasheet& sheet) { return sheet.peak.per_second(); });
    take("memory_bandwidth", facts_.memory_bandwidth,
         [](const Datasheet& sheet) { return static_cast<double>(sheet.memory_bandwidth.bytes_per_second()); });
    take("multiprocessors", facts_.multiprocessors, [](const Datasheet& sheet) { return sheet.multiprocessors; });
    for (const auto& [profile, names] : taken_) {
      append(facts_.peak_source, "{}{} of {}: {}", facts_.peak_source.empty() ? "" : "; ", joined(names, ", "),
             profile->name, profile->datasheet.source);
    }
    if (facts_.peak_source.empty()) facts_.peak_source = header_.position.file;
    take_tiles();
    return std::move(facts_);
  }

 private:
  template <class T, class Of>
  void take(const char* name, T& fact, const Of& of) {
    if (fact > 0) return;
    for (const DeviceProfile* profile : {options_.like, options_.shipped}) {
      if (profile == nullptr || !(of(profile->datasheet) > 0)) continue;
      fact = of(profile->datasheet);
      taken_[profile].emplace_back(name);
      return;
    }
    diagnostics_.error(header_.position, fmt::format("the header has no '{}', and no profile says it", name),
                       fmt::format("add it, or say with --like which profile is of a {}", facts_.device));
  }

  // Tiles by which kernels round sizes up: a program that calls a library does not know them. The first to try.
  void take_tiles() {
    if (options_.like == nullptr || header_.kernels.empty()) return;
    if (const auto& products = options_.like->gemm) {
      facts_.gemm_tile_m = products->tile_m;
      facts_.gemm_tile_n = products->tile_n;
    }
    if (!options_.like->attention.empty()) {
      facts_.attention_tile_queries = options_.like->attention.front().tile_queries;
      facts_.attention_tile_keys = options_.like->attention.front().tile_keys;
    }
  }

  const SampleHeader& header_;
  const SampleFitOptions& options_;
  Diagnostics& diagnostics_;
  Circumstances facts_;
  std::map<const DeviceProfile*, std::vector<std::string>> taken_;
};

void state_what_no_sample_shows(DeviceProfile& profile, const SampleHeader& header) {
  const std::string source = fmt::format("{}{}", measured_through, header.through);
  if (header.host_issue_s > 0) profile.overheads.host_issue = Overhead{Duration::seconds(header.host_issue_s), source};
  if (header.ring_gradient_bytes > 0) profile.backward_ring = {header.ring_gradient_bytes, source};
}

// A peak may be that of a busy machine, or of a lower clock. Far beyond it the sizes cannot be those of the time.
void require_possible(const Samples& samples, const SampleHeader& header, Diagnostics& diagnostics) {
  constexpr double far_beyond = 10;
  const auto check = [&](const auto& sample) {
    if (flops_of(sample.op).count() <= far_beyond * samples.circumstances.peak_flops * sample.timing.median_s) return;
    diagnostics.error({header.position.file, 0, 0},
                      fmt::format("{} in {} s is more than {} times what the peak of the device allows",
                                  label_of(sample.op), sample.timing.median_s, far_beyond));
  };
  for (const AttentionTiming& sample : samples.attention) check(sample);
  for (const GemmTiming& sample : samples.gemm) check(sample);
}

// Values that no measurement has may make a profile that its reader refuses: better said now.
void require_readable(const DeviceProfile& profile, const SampleHeader& header, Diagnostics& diagnostics) {
  Diagnostics found;
  const Value document = parse_document(profile.name, profile_text(profile), found);
  (void)read_profile(document, profile.name, found);
  if (found.empty()) return;
  diagnostics.error({header.position.file, 0, 0},
                    fmt::format("the samples make no possible profile: {}", found.sorted().front().message));
}

}  // namespace

SampleFit fit_samples(const SampleFile& file, const SampleFitOptions& options, Diagnostics& diagnostics) {
  SampleFit fit;
  const std::size_t before = diagnostics.count();
  const Circumstances device = DeviceFacts(file.header, options, diagnostics).run();
  Samples samples = collect(device, file.measurements);
  samples.launch_s = file.header.launch_s;
  fit.left_out = leave_out_thin_curves(samples);
  if (samples.attention.empty() && samples.gemm.empty() && samples.memory_bound.empty() && samples.messages.empty() &&
      samples.copies.empty()) {
    diagnostics.error({file.header.position.file, 0, 0}, "too few samples to make a profile of them",
                      fmt::format("a curve takes {} sizes: {}", least_samples, joined(fit.left_out, ", ")));
  }
  if (diagnostics.count() == before) require_possible(samples, file.header, diagnostics);
  if (diagnostics.count() != before) return fit;
  if (!file.header.kernels.empty()) choose_tiles(samples, options.seed);  // a journal of this program has its own
  fit.measured = kernels_text(file.header);
  std::string source = fit.measured;
  if (!options.source.empty()) append(source, "; {}", options.source);
  fit.profile = fit_profile(samples, {.source = source, .seed = options.seed});
  state_what_no_sample_shows(fit.profile, file.header);
  fit.summary = fit_summary(fit.profile);
  if (options.like != nullptr) fit.kept = take_missing_parts(fit.profile, *options.like, file.header);
  if (!fit.kept.empty()) {
    append(fit.profile.provenance.source, "; kept of {}: {}", name_of(*options.like), joined(fit.kept, ", "));
  }
  require_readable(fit.profile, file.header, diagnostics);
  return fit;
}

bool is_of_other_kernels(const Provenance& provenance) {
  return provenance.source.starts_with(measured_through);
}

}  // namespace hdpsim::calib
