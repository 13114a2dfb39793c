#include "sim/app/real/profile_check.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "calib/measure/pace.h"
#include "calib/measure/sample_fit.h"
#include "sim/app/drift_figures.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/profile/profile_file.h"
#include "sim/results/table_sink.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double usual_limit_s = 20;

DeviceProfile profile_to_check(const std::string& name, const Session& session) {
  const Catalog catalog(session.data_folder);
  Diagnostics problems;
  auto profile = load_profile(name, catalog.profiles().string(), {"--check", 0, 0}, problems);
  problems.throw_if_any();
  const Provenance& provenance = profile->provenance;
  if (provenance.label != ProfileLabel::measured) {
    throw InputError({"--check", 0, 0},
                     fmt::format("the profile {} is {}, not measured by a calibration: none of it can be timed again",
                                 profile->name, profile_label_name(provenance.label)),
                     "hdpsim calibrate measures one of this machine");
  }
  if (calib::is_of_other_kernels(provenance)) {
    throw InputError({"--check", 0, 0},
                     fmt::format("the kernels of the profile {} are not this program's, which cannot time them again",
                                 profile->name),
                     "measure them again with the program that did, see provenance.source");
  }
  if (provenance.device != calib::cpu_device_type && calib::cuda_devices() == 0) {
    throw InputError({"--check", 0, 0},
                     fmt::format("the profile {} is of a {}, and here is no GPU that this program can use",
                                 profile->name, provenance.device),
                     "check it on a machine with that GPU; hdpsim calibrate measures this one");
  }
  return std::move(*profile);
}

/// What was found, and under which circumstances.
struct Check {
  const DeviceProfile& profile;
  std::string device_name;
  std::vector<std::string> not_timed;
  double seconds = 0;
  std::vector<calib::FamilyDrift> families;
  calib::Verdict verdict = calib::Verdict::holds;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// As many rounds are expected as there is time for at the speed so far.
void show(ProgressDisplay& display, std::size_t rounds, double elapsed_s, double limit_s) {
  const double left_s = std::max(0.0, limit_s - elapsed_s);
  const auto more = static_cast<std::size_t>(static_cast<double>(rounds) * left_s / elapsed_s);
  display.show(MeasuringProgress{rounds, std::max(rounds + more, static_cast<std::size_t>(calib::least_drift_rounds)),
                                 left_s, "samples of the profile"});
}

// Empty if it was stopped.
std::optional<Check> checked(const DeviceProfile& profile, double limit_s) {
  const auto begin = Clock::now();
  const bool is_cpu = profile.provenance.device == calib::cpu_device_type;
  calib::PaceMeter meter(is_cpu ? calib::make_cpu_device() : calib::make_cuda_device(0), profile,
                         calib::PaceScope::everything);
  ProgressDisplay display;
  std::vector<std::vector<calib::PaceRatio>> rounds;
  while (std::ssize(rounds) < calib::least_drift_rounds || seconds_since(begin) < limit_s) {
    if (stop_signal() != 0) return std::nullopt;
    rounds.push_back(meter.ratios());
    show(display, rounds.size(), seconds_since(begin), limit_s);
  }
  Check check{.profile = profile,
              .device_name = meter.device_name(),
              .not_timed = meter.not_timed(),
              .seconds = seconds_since(begin),
              .families = calib::drift_of(rounds, profile.samples.noise)};
  check.verdict = calib::verdict_on(check.families);
  return check;
}

std::string verdict_text(const Check& check) {
  switch (check.verdict) {
    case calib::Verdict::holds:
      return fmt::format("the profile {} still holds on this machine\n", check.profile.name);
    case calib::Verdict::drifted:
      return fmt::format(
          "the profile {} no longer holds: {}\nhdpsim calibrate measures this machine as it is now; other programs "
          "that "
          "run beside it also slow it down\n",
          check.profile.name, calib::drift_words(check.families));
    case calib::Verdict::unclear:
      return fmt::format(
          "whether the profile {} still holds is unknown: the rounds differ too much. Check again when the machine "
          "is idle, or for longer: --time-limit 2min\n",
          check.profile.name);
  }
  return {};
}

std::string table(const Check& check) {
  const Provenance& provenance = check.profile.provenance;
  std::string text = fmt::format("{}, measured on {}{}, timed again for {:.0f} s\n\n", check.profile.name,
                                 provenance.device_name.empty() ? provenance.device : provenance.device_name,
                                 provenance.date.empty() ? "" : " on " + provenance.date, check.seconds);
  text += calib::drift_table(check.families);
  if (!check.not_timed.empty()) {
    text += fmt::format("not timed, as this machine cannot: {}\n", joined(check.not_timed, ", "));
  }
  if (!provenance.device_name.empty() && provenance.device_name != check.device_name) {
    text += fmt::format("this machine is another: {}\n", check.device_name);
  }
  return text + "\n" + verdict_text(check);
}

std::string csv(const Check& check) {
  return csv_text([&](TableSink& sink) {
    family_drift_figures().write_names(sink);
    sink.end_row();
    for (const calib::FamilyDrift& family : check.families) {
      family_drift_figures().write_cells(family, sink);
      sink.end_row();
    }
  });
}

std::string json(const Check& check) {
  Json document = {{"schema", "hdpsim.drift/1"},
                   {"profile", check.profile.name},
                   {"measured_on", check.profile.provenance.device_name},
                   {"measured", check.profile.provenance.date},
                   {"checked_on", check.device_name},
                   {"checked", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
                   {"seconds", check.seconds},
                   {"verdict", calib::verdict_name(check.verdict)},
                   {"families", Json::array()},
                   {"not_timed", check.not_timed}};
  for (const calib::FamilyDrift& family : check.families) {
    document["families"].push_back(family_drift_figures().json(family));
  }
  return json_page(document);
}

}  // namespace

int check_profile(const ProfileCheckOptions& options, const Session& session) {
  const DeviceProfile profile = profile_to_check(options.profile, session);
  catch_stop_signals();
  const double limit_s = options.time_limit > Duration{} ? options.time_limit.seconds() : usual_limit_s;
  const std::optional<Check> check = checked(profile, limit_s);
  if (!check) return stopped_exit();
  const auto text = options.format == Format::table ? table : options.format == Format::csv ? csv : json;
  print(text(*check), options.format);
  return 0;
}

}  // namespace hdpsim::app
