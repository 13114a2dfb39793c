#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "calib/fit/fit.h"
#include "calib/fit/report.h"
#include "calib/measure/collect.h"
#include "calib/measure/measurement_session.h"
#include "calib/measure/workload.h"
#include "sim/app/command.h"
#include "sim/app/fitted_output.h"
#include "sim/app/from_samples.h"
#include "sim/app/from_steps.h"
#include "sim/app/from_trace.h"
#include "sim/app/progress.h"
#include "sim/app/real/profile_check.h"
#include "sim/app/resumable.h"
#include "sim/app/signals.h"
#include "sim/base/atomic_file.h"
#include "sim/base/output_folder.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/document.h"
#include "sim/profile/profile_file.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

struct CalibrateOptions {
  std::string backend = "auto";
  std::int64_t device = 0;
  bool quick = false;
  Duration time_limit;  ///< Zero: none.
  std::string model;
  std::vector<std::string> nccl_tests;
  std::string out = ".";
  std::string name;
  bool resume = false;
  std::string report;
  std::string check;
  FromStepsOptions steps;
  FromTraceOptions traces;
  FromSamplesOptions samples;
};

constexpr std::size_t refusals_told = 5;

int print_report(const std::string& file) {
  Diagnostics diagnostics;
  const Value document = load_document(file, diagnostics);
  const std::optional<DeviceProfile> profile =
      diagnostics.empty() ? read_profile(document, fs::path(file).stem().string(), diagnostics) : std::nullopt;
  diagnostics.throw_if_any();
  print(calib::fit_report(*profile));
  return 0;
}

std::optional<Transformer> named_model(const std::string& name, const Session& session) {
  if (name.empty()) return std::nullopt;
  Diagnostics diagnostics;
  Value choice = Value::map();
  choice.set("preset", Value::scalar(name, {"--model", 0, 0}));
  std::optional<Transformer> model = Catalog(session.data_folder).model(choice, diagnostics);
  diagnostics.throw_if_any();
  return model;
}

std::unique_ptr<calib::Device> open_device(const CalibrateOptions& options) {
  const bool cuda = options.backend == "cuda" || (options.backend == "auto" && calib::cuda_devices() > 0);
  if (!cuda && options.device != 0) {
    throw InputError(fmt::format("there is no device {}: one core represents all of a CPU", options.device),
                     "leave out --device, or choose --backend cuda");
  }
  return cuda ? calib::make_cuda_device(static_cast<int>(options.device)) : calib::make_cpu_device();
}

calib::Wishes wishes_of(const CalibrateOptions& options, const Session& session) {
  calib::Wishes wishes = options.quick ? calib::quick_wishes() : calib::full_wishes();
  if (options.time_limit > Duration{}) wishes = calib::wishes_within(options.time_limit.seconds(), wishes);
  wishes.messages = options.nccl_tests.empty();
  wishes.model = named_model(options.model, session);
  return wishes;
}

std::string plan_words(const CalibrateOptions& options, const calib::Wishes& wishes) {
  return fmt::format("{} in {:.0f} s, {}, messages {}", options.quick ? "quick" : "full", wishes.budget_s,
                     wishes.model ? "products of " + wishes.model->name : "products of no model",
                     wishes.messages ? "measured" : "of nccl-tests");
}

// A sample that is further above the fit was disturbed in all rounds, or the fit is wrong: more rounds decide.
constexpr double doubtful_share = 0.025;

std::vector<calib::Subject> doubtful(const calib::SampleJournal& journal) {
  calib::Samples samples = calib::collect(journal.circumstances(), journal.measurements());
  (void)calib::leave_out_thin_curves(samples);
  return calib::subjects_of(calib::slower_than_fitted(samples, calib::fit_profile(samples), doubtful_share));
}

calib::SessionResult measure(calib::Device& device, calib::SampleJournal& journal, const calib::Wishes& wished) {
  const calib::DeviceSpeed speed = device.speed(journal.circumstances());
  const calib::Wishes wishes = calib::wishes_on(speed, wished);
  const std::vector<calib::Planned> plan = calib::plan_measurements(device, speed, wishes);
  const calib::StoppingRule rule = calib::stopping_rule(wishes);
  ProgressDisplay display;
  return calib::run_session(device, plan, journal,
                            {.speed = speed,
                             .rule = &rule,
                             .rounds = wishes.rounds,
                             .least_rounds = wishes.least_rounds,
                             .most_rounds = wishes.most_rounds,
                             .seed = wishes.seed,
                             .time_limit_s = wishes.time_limit_s,
                             .doubtful = doubtful,
                             .stop = is_stopped,
                             .report = [&](const calib::Progress& progress) {
                               display.show(MeasuringProgress{progress.done, progress.total, progress.left_s,
                                                              calib::label_of(*progress.subject)});
                             }});
}

void tell(const calib::SessionResult& result) {
  for (std::size_t i = 0; i < std::min(refusals_told, result.refusals.size()); ++i) {
    note(fmt::format("not recorded: {}", result.refusals[i]));
  }
  if (result.refusals.size() > refusals_told) {
    note(fmt::format("not recorded: {} more", result.refusals.size() - refusals_told));
  }
  if (result.throttled > 0) note(fmt::format("{} runs thrown away: the device throttled", result.throttled));
  if (result.postponed > 0) {
    note(fmt::format("{} measurements had to wait: the cores were nearer or further than at the start",
                     result.postponed));
  }
  if (result.beyond_limit_s > 0) {
    note(fmt::format("the machine is busy or slow: what a profile needs at least took {:.0f} s more than there were",
                     std::ceil(result.beyond_limit_s)));
  }
  if (result.left_out > 0) note(fmt::format("there was no time for {} measurements", result.left_out));
  if (result.unsettled > 0) {
    note(fmt::format("the rounds of {} subjects do not agree: the machine is busy", result.unsettled));
  }
}

int interrupted(const fs::path& samples) {
  note(fmt::format("stopped; the same command with --resume goes on with what is kept in {}", samples.string()));
  return stopped_exit();
}

DeviceProfile fitted(calib::Device& device, const calib::SampleJournal& journal,
                     const std::vector<calib::NcclTestsRun>& messages, const Session& session) {
  calib::Samples samples = calib::collect(journal.circumstances(), journal.measurements());
  samples.launch_s = calib::launch_seconds(device);
  for (const calib::NcclTestsRun& run : messages) {
    samples.messages.insert(samples.messages.end(), run.timings.begin(), run.timings.end());
    if (!run.nccl.empty()) samples.circumstances.nccl = run.nccl;
  }
  const std::vector<std::string> thin = calib::leave_out_thin_curves(samples);
  if (!thin.empty()) note(fmt::format("left out, for want of samples: {}", joined(thin, ", ")));
  if (samples.attention.empty() && samples.gemm.empty() && samples.memory_bound.empty()) {
    throw InputError("too little was measured to make a profile of it", "give it more time with --time-limit");
  }
  return calib::fit_profile(samples, {.source = fmt::format("hdpsim {}: {}", version, session.command_line)});
}

// Beside --nccl-tests and --like, which are all that a profile needs.
void require_nothing_timed(const CalibrateOptions& options) {
  const bool is_asked = options.backend != "auto" || options.device != 0 || options.quick || options.resume ||
                        options.time_limit > Duration{} || !options.model.empty() || !options.name.empty();
  if (!is_asked) return;
  throw InputError("--nccl-tests with --like measures nothing: it takes --out alone",
                   "leave --like out to time kernels on this machine");
}

int time_kernels(const CalibrateOptions& options, const Session& session) {
  const std::vector<calib::NcclTestsRun> messages = read_nccl_tests_files(options.nccl_tests);
  const calib::Wishes wishes = wishes_of(options, session);
  const std::unique_ptr<calib::Device> device = open_device(options);

  calib::SampleTitle header{.program = fmt::format("{} {}", version, commit),
                            .plan = plan_words(options, wishes),
                            .circumstances = device->circumstances()};
  header.circumstances.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  header.circumstances.commit = commit;
  const fs::path path = measured_profile_path(options.out, options.name, header.circumstances.device);
  fs::path samples = path;
  samples.replace_extension(".samples.jsonl");
  for (const fs::path& written : {path, samples}) session.inputs.require_none_at(written);
  prepare_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));

  catch_stop_signals();
  calib::SampleJournal journal = options.resume
                                     ? calib::SampleJournal::resume(samples, header, damage_notes("measured again"))
                                     : calib::SampleJournal::start(samples, header);
  const calib::SessionResult result = measure(*device, journal, wishes);
  tell(result);
  if (result.stopped) return interrupted(samples);
  const DeviceProfile profile = fitted(*device, journal, messages, session);
  remove_left_overs(path);
  write_file(path, profile_text(profile));
  print(fmt::format("{}\n{}\n", calib::fit_summary(profile), path.string()));
  return 0;
}

int calibrate_command(const CalibrateOptions& options, const Session& session) {
  if (options.steps.rows.empty() && options.check.empty()) require_no_format(options.steps);
  if (!options.report.empty()) return print_report(options.report);
  if (!options.check.empty()) {
    require_no_like(options.steps);
    return check_profile({options.check, options.time_limit, options.steps.format}, session);
  }
  const std::string out = options.out == "." ? "" : options.out;
  if (!options.steps.rows.empty()) return calibrate_from_steps(options.steps, out, session);
  if (!options.samples.files.empty()) {
    return calibrate_from_samples({options.samples.files, options.steps.like, out, options.name}, session);
  }
  if (!options.traces.traces.empty()) return calibrate_from_trace(options.traces, options.steps.like, out, session);
  if (!options.nccl_tests.empty() && !options.steps.like.empty()) {
    require_nothing_timed(options);
    return calibrate_from_nccl_tests(options.nccl_tests, options.steps.like, out, session);
  }
  require_no_like(options.steps);
  return time_kernels(options, session);
}

void add_device_options(Command command, CalibrateOptions& options) {
  command.add_option("--backend", options.backend, "cpu, cuda, or auto: a GPU if there is one (default: auto)")
      .one_of({"auto", "cpu", "cuda"})
      .type_name("BACKEND");
  add_count(command, "--device", options.device, "Which GPU, counted from 0 (default: 0)", 0);
}

void add_time_options(Command command, CalibrateOptions& options) {
  command.add_flag("--quick", options.quick, "Fewer shapes, at most 90 s in place of 8 min");
  const auto read = [&options](const std::string& text) {
    const Parsed<Duration> parsed = parse_duration(text);
    if (!parsed.value) throw WrongValue(parsed.error);
    if (*parsed.value <= Duration{}) throw WrongValue("it must be longer than nothing");
    options.time_limit = *parsed.value;
  };
  command
      .add_option("--time-limit", read,
                  "Measure no longer than this, such as 30s or 5min, but for what a profile needs at least")
      .type_name("TIME");
}

}  // namespace

void add_calibrate_command(Command app, Session& session) {
  const Command command = app.add_subcommand("calibrate", calibrate_help);
  CalibrateOptions& options = add_command(command, session, calibrate_command);
  add_device_options(command, options);
  add_time_options(command, options);
  command.add_option("--model", options.model, "Measure the matrix products of this shipped model first")
      .type_name("PRESET");
  add_nccl_tests(command, options.nccl_tests);
  const Option out =
      command
          .add_option("--out", options.out,
                      "The profile, FILE.yaml, or its folder (default: here; none where nothing is measured)")
          .type_name("PATH");
  command.add_option("--name", options.name, "Name of the new profile (default: DEVICE-measured)").type_name("NAME");
  command.add_flag("--resume", options.resume, "Go on with a calibration that was stopped");
  const Option check =
      command
          .add_option("--check", options.check,
                      "Time some samples of this profile again, for 20 s or --time-limit, and say whether it still "
                      "holds on this machine")
          .type_name("PROFILE");
  for (const Option other : command.options()) {
    const bool goes_with_it = other == command.option("--time-limit");
    if (other != check && !goes_with_it) check.excludes(other);
  }
  const Option report =
      command.add_option("--report", options.report, "Measure nothing: show how well this profile fits its samples")
          .type_name("PROFILE");
  for (const Option other : command.options()) {
    if (other != report) report.excludes(other);
  }
  const std::vector<Option> of_kernels = command.options();
  add_from_steps(command, options.steps);
  add_from_trace(command, options.traces);
  add_from_samples(command, options.samples);
  for (const std::string from : {"--from-steps", "--from-trace", "--from-samples"}) {
    for (const Option other : of_kernels) {
      const bool goes_with_it = other == out || (from == "--from-samples" && other == command.option("--name"));
      if (!goes_with_it) command.option(from).excludes(other);
    }
  }
  for (const char* from : {"--from-steps", "--from-trace"})
    command.option("--from-samples").excludes(command.option(from));
  command.option("--from-trace").excludes(command.option("--from-steps"));
  command.footer(
      "All measurements are kept next to the profile, in NAME.samples.jsonl.\n"
      "Examples:\n  hdpsim calibrate --backend cpu --quick --out profiles\n"
      "  hdpsim calibrate --check profiles/mine.yaml\n"
      "  hdpsim calibrate --from-steps sc21 --fit gemm,host_issue --out fitted.yaml\n"
      "  hdpsim calibrate --from-steps steps.csv --like my-set.yaml --holdout 0.5\n"
      "  hdpsim calibrate --from-steps my-set.yaml --next candidates.yaml --for my-study.yaml\n"
      "  hdpsim calibrate --nccl-tests all_reduce.txt --like h100-published --out mine.yaml\n"
      "  hdpsim calibrate --from-trace rank0.json.gz rank1.json.gz --like h100-published --out traced.yaml\n"
      "  hdpsim calibrate --from-samples torch.samples.jsonl --like h100-published --out mine.yaml");
}

}  // namespace hdpsim::app
