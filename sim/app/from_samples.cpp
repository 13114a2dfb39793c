#include "sim/app/from_samples.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "calib/measure/sample_fit.h"
#include "sim/app/fitted_output.h"
#include "sim/app/start_profile.h"
#include "sim/app/terminal.h"
#include "sim/base/text.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {
namespace {

calib::SampleFile read_samples(const std::vector<std::string>& names) {
  Diagnostics diagnostics;
  std::vector<calib::SampleFile> files;
  for (const std::string& name : names) {
    if (auto file = calib::read_sample_file(name, diagnostics)) files.push_back(std::move(*file));
  }
  diagnostics.throw_if_any();
  calib::SampleFile all = calib::merged_samples(files, diagnostics);
  diagnostics.throw_if_any();
  return all;
}

// The shipped profile of a device, for its data sheet alone; null if there is none or a choice.
ProfilePtr shipped_of(const std::string& device, Catalog& catalog) {
  Diagnostics ignored;
  return profile_of_device(device, {"--like", 0, 0}, catalog, ignored);
}

void tell_kept(const calib::SampleFit& fit, const DeviceProfile* like, const std::string& device) {
  if (!fit.left_out.empty()) note(fmt::format("left out, for want of samples: {}", joined(fit.left_out, ", ")));
  if (like == nullptr) return note("what was not measured is left out of the profile: --like names one that has it");
  if (like->provenance.device == device) return;
  note(fmt::format("the samples are of a {}, and {} is of a {}", device, like->name, like->provenance.device));
}

}  // namespace

void add_from_samples(Command command, FromSamplesOptions& options) {
  command
      .add_option("--from-samples", options.files,
                  "Measure nothing: fit a profile to samples that another program measured with kernels of its own "
                  "(python3 -m hdpsim.torch.calibrate), or that a calibration kept")
      .type_name("FILE...");
}

int calibrate_from_samples(const FromSamplesOptions& options, const Session& session) {
  Catalog catalog(session.data_folder);
  const std::optional<StartProfile> start = start_like(options.like, catalog);
  const DeviceProfile* like = start ? start->profile.get() : nullptr;
  const calib::SampleFile samples = read_samples(options.files);
  const std::string& device = samples.header.circumstances.device;
  const ProfilePtr shipped = shipped_of(device, catalog);
  const bool is_written = !options.out.empty() || !options.name.empty();
  const std::string path = is_written ? measured_profile_path(options.out, options.name, device).string() : "";
  const FittedOutput output(path, session);
  Diagnostics diagnostics;
  const calib::SampleFit fit = calib::fit_samples(
      samples,
      {.source = fmt::format("hdpsim {}: {}", version, session.command_line), .like = like, .shipped = shipped.get()},
      diagnostics);
  diagnostics.throw_if_any();
  print(fmt::format("{}\n{}\n", fit.summary, fit.measured));
  if (!fit.kept.empty()) print(fmt::format("kept of {}: {}\n", like->name, joined(fit.kept, ", ")));
  tell_kept(fit, like, device);
  output.write(fit.profile);
  return 0;
}

}  // namespace hdpsim::app
