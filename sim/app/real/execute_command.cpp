#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "kernels/cpu/cores.h"
#include "kernels/cpu/duty_cycle.h"
#include "kernels/exec/checkpoint.h"
#include "kernels/exec/executor.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/exec/requirements.h"
#include "kernels/transport/mpi_transport.h"
#include "sim/app/command.h"
#include "sim/app/launch_watch.h"
#include "sim/app/launcher.h"
#include "sim/app/real/execution_devices.h"
#include "sim/app/real/execution_loaders.h"
#include "sim/app/real/execution_pace.h"
#include "sim/app/real/execution_report.h"
#include "sim/app/real/execution_work.h"
#include "sim/app/signals.h"
#include "sim/base/atomic_file.h"
#include "sim/base/growing_file.h"
#include "sim/base/output_folder.h"
#include "sim/base/quantity_text.h"
#include "sim/base/taken_alone.h"
#include "sim/compare/comparison.h"
#include "sim/engine/simulator.h"
#include "sim/profile/profile_file.h"
#include "sim/run/plan_ahead.h"

namespace hdpsim::app {
namespace {

namespace exec = kernels::exec;

/// The training data: drawn, text from anywhere, or text that loaders read.
class TrainingData {
 public:
  TrainingData(const ExecuteOptions& options, const Work& work, std::int64_t first) {
    const auto seed = static_cast<std::uint64_t>(options.seed);
    if (options.loaders) {
      loaders_.emplace(options, work, first);
    } else if (options.text.empty()) {
      tokens_ = exec::make_synthetic_tokens(work.model().vocabulary, seed);
    } else {
      tokens_ = exec::make_text_tokens({options.text.begin(), options.text.end()}, seed);
    }
  }
  [[nodiscard]] const exec::TokenSource& tokens() const { return loaders_ ? loaders_->tokens() : *tokens_; }
  /// Null: there are none.
  [[nodiscard]] ExecutionLoaders* loaders() { return loaders_ ? &*loaders_ : nullptr; }

 private:
  std::unique_ptr<const exec::TokenSource> tokens_;
  std::optional<ExecutionLoaders> loaders_;
};

// ---- Running it

// Subfolders of --out, one per plan; an empty name if the folder itself is for the only plan.
std::vector<std::string> inner_folders(const Work& work) {
  return work.plans() > 1 ? work.folder_names() : std::vector<std::string>(1);
}

// Checked before anything is done.
void require_free_outputs(const ExecuteOptions& options, const Session& session, const Work& work, std::int64_t first) {
  if (!options.checkpoint.empty()) session.inputs.require_none_at(options.checkpoint);
  if (options.out.empty()) return;
  for (const std::string& inner : inner_folders(work)) {
    const std::filesystem::path folder = std::filesystem::path(options.out) / inner;
    session.inputs.require_none_at(folder / "steps.csv");
    for (std::int64_t step = first; step < first + options.steps; ++step) {
      session.inputs.require_none_at(folder / fmt::format("plan-{}.json", step));
    }
  }
}

/// The additional work of rank 0: it predicts and reports.
class Teller {
 public:
  /// `share` is the share of a core or GPU that each worker has while all of them compute.
  Teller(const Work& work, const ExecuteOptions& options, const Session& session, double share,
         ExecutionLoaders* loaders)
      : work_(work),
        loaders_(loaders),
        runs_(options.runs),
        device_(options.backend == DeviceKind::cpu ? "core" : "GPU"),
        world_(work.point->make_world()) {
    Machine& machine = world_->machine();
    machine.record_instructions = true;
    if (share < 1) machine.processors = share * static_cast<double>(machine.speed.size());
    if (options.pace) pace_.emplace(*work.point->spec.profile, options.backend);
    if (!options.checkpoint.empty()) checkpoint_.emplace(options.checkpoint, session.command_line);
    if (!options.out.empty()) {
      folder_.emplace(options.out, OutputUse{"execution", session.command_line, {}}, &session.inputs);
      if (!options.resume) folder_->remove_earlier();
      if (loaders != nullptr) {
        samples_.emplace(folder_->file("samples.csv"), 0);
        samples_->append(ExecutionLoaders::heading());
      }
    }
    for (const std::string& name : inner_folders(work)) {
      if (folder_ && !name.empty()) (void)folder_->folder(name);
      plans_.push_back({ExecutionReport(folder_ ? &*folder_ : nullptr, name), {}});
    }
  }

  void begin() const {
    const DeviceProfile& profile = *work_.point->spec.profile;
    std::string names;
    for (std::size_t i = 0; i < work_.plans(); ++i) names += (i == 0 ? "" : ", ") + work_.plan_name(i);
    print(fmt::format("{}: {} of {} parameters, {} on {} ranks, predicted by {} ({})\n", work_.study.name,
                      work_.model().name,
                      short_number(static_cast<double>(exec::ParameterLayout(work_.model()).count())), names,
                      work_.ranks(), profile.name, profile_label_name(profile.provenance.label)));
    if (const auto& processors = world_->machine().processors) {
      print(fmt::format("ranks share {}s: predicted for {:.3g} of {} that compute at a time\n", device_, *processors,
                        world_->machine().speed.size()));
    }
    print("\n" + prefix("plan", "run") + ExecutionReport::heading());
  }

  /// Notes if the profile was measured on another device than this one.
  void meet(const kernels::DeviceInfo& device) const {
    const std::string& measured = work_.point->spec.profile->provenance.device_name;
    if (measured.empty() || measured == device.name) return;
    note(
        fmt::format("the profile was measured on {}, this is {}: hdpsim calibrate measures it", measured, device.name));
  }

  /// Reads the pace before the first run and between two, while all other ranks wait. The first time it notes what of
  /// the profile no longer holds.
  void read_pace() {
    if (!pace_) return;
    if (std::exchange(has_pace_, true)) return pace_->read();
    const std::string drift = calib::drift_words(pace_->begin());
    if (drift.empty()) return;
    note(fmt::format("the profile no longer holds on this machine: {}; hdpsim calibrate --check says more", drift));
  }

  void tell(const Turn& turn, const PlannedStep& planned, exec::StepOutcome&& outcome) {
    PlanReport& report = plans_.at(turn.plan);
    const Plan& plan = planned.plan();
    if (loaders_ != nullptr) tell_samples(plan.step);
    std::int64_t tokens = 0;
    for (const std::int64_t own : plan.sequence_tokens) tokens += own;
    const std::string begin = prefix(work_.plan_name(turn.plan), std::to_string(turn.run));
    if (runs_ > 1 && turn.run == 0) {
      return print(begin + ExecutionReport::warm_up_line(plan.step, outcome.loss, tokens, outcome.timeline->step_time));
    }
    if (turn.run <= 1) predict(planned.program(), report);
    print(begin + report.report.add(planned.program(), {.step = plan.step,
                                                        .run = std::max<std::int64_t>(1, turn.run),
                                                        .loss = outcome.loss,
                                                        .tokens = tokens,
                                                        .predicted = report.predicted,
                                                        .core_share = report.core_share,
                                                        .measured = std::move(*outcome.timeline),
                                                        .processor = std::move(outcome.processor),
                                                        .planning = planned.planning(),
                                                        .at_pace = at_pace(planned.program())}));
  }

  void end() {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const std::string text = plans_[i].report.finish();
      if (plans_.size() > 1 && !text.empty()) print("\n" + work_.plan_name(i) + "\n");
      print(text);
    }
    if (loaders_ != nullptr) print(loaders_->summary());
    if (samples_) samples_->finish();
    if (folder_) tell_removed(*folder_);
  }

 private:
  void tell_samples(std::int64_t step) {
    const std::string rows = loaders_->rows(step);
    if (samples_) samples_->append(rows);
  }

  struct PlanReport {
    ExecutionReport report;
    Timeline predicted;  ///< Prediction of the step that runs.
    double core_share = 1;
  };

  void predict(const Program& program, PlanReport& report) {
    Machine& machine = world_->machine();
    const std::vector<double> slowdowns = work_.slowdowns(program.plan().step);
    world_->set_time_factors(slowdowns);
    report.predicted = simulate(program, machine, Grain::exact);
    if (!machine.processors && slowdowns.empty()) return;
    world_->set_time_factors({});
    Machine own_cores = machine;
    own_cores.processors.reset();
    const Timeline alone = simulate(program, own_cores, Grain::exact);
    report.core_share = computed_seconds(alone.ranks) / computed_seconds(report.predicted.ranks);
  }

  [[nodiscard]] std::optional<Duration> at_pace(const Program& program) const {
    if (!pace_) return std::nullopt;
    const std::unique_ptr<World> world = work_.point->make_world(pace_->of_last_run());
    world->machine().processors = world_->machine().processors;
    world->set_time_factors(work_.slowdowns(program.plan().step));
    return simulate(program, world->machine(), Grain::exact).step_time;
  }

  // Columns that only several plans or several runs need.
  [[nodiscard]] std::string prefix(const std::string& plan, const std::string& run) const {
    std::string text;
    if (work_.plans() > 1) text += fmt::format("  {:<24}", plan);
    if (runs_ > 1) text += fmt::format("{:>5}", run);
    return text;
  }

  const Work& work_;
  ExecutionLoaders* loaders_;  ///< Null: there are none.
  std::int64_t runs_;
  const char* device_;  ///< Name of the device that runs the kernels.
  std::unique_ptr<World> world_;
  std::optional<ExecutionPace> pace_;
  bool has_pace_ = false;
  std::optional<FileClaim> checkpoint_;
  std::optional<OutputFolder> folder_;
  std::optional<GrowingFile> samples_;
  std::vector<PlanReport> plans_;
};

/// The work of every rank.
struct Training {
  const Work& work;
  const ExecuteOptions& options;
  const Session& session;
  TrainingData& data;
  Turns turns;
  PlanAhead& plans;
  TakenAlone& pace;
};

// Whether a checkpoint is due after `steps` steps.
bool keeps(const ExecuteOptions& options, std::int64_t steps, bool is_end) {
  if (options.checkpoint.empty()) return false;
  return is_end || (options.checkpoint_every > 0 && steps % options.checkpoint_every == 0);
}

// Rank 0 times kernels while no rank trains, for the `time`-th time. That takes as long as the machine is slow: at a
// barrier the others would give it up after --patience.
void read_pace(const Training& training, const exec::JobDevice& device, Teller* teller, std::int64_t time) {
  if (!training.options.pace) return;
  device.host.barrier();
  if (teller == nullptr) return training.pace.await(time);
  training.pace.run([&] { teller->read_pace(); });
}

// Slows the device of the calling thread down as the study's faults say, from step to step.
class DeviceFaults {
 public:
  // `index`: of the device, as ranks of a transport are counted.
  DeviceFaults(const Work& work, int index) : work_(work) {
    if (work.point->spec.conditions.faults.empty()) return;
    device_ = work.point->make_world()->job().devices().at(static_cast<std::size_t>(index));
    cycle_.emplace();
  }
  void begin(std::int64_t step) {
    if (cycle_) cycle_->set(work_.slowdowns(step).at(device_.index()));
  }

 private:
  const Work& work_;
  DeviceId device_{0};
  std::optional<kernels::DutyCycle> cycle_;
};

// Runs all turns on one rank; only rank 0 has a `teller`. Every plan trains a model of its own. False if a stop was
// requested.
bool run_rank(const Training& training, const exec::JobDevice& device, Teller* teller) {
  const auto& [work, options, session, data, turns, plans, pace] = training;
  const exec::TrainingOptions settings{.seed = static_cast<std::uint64_t>(options.seed),
                                       .adam = {.rate = static_cast<float>(options.rate)},
                                       .tp = static_cast<int>(work.mesh().tp),
                                       .pp = static_cast<int>(work.mesh().pp),
                                       .pipeline = work.pipeline()};
  std::vector<std::unique_ptr<exec::Executor>> models;
  for (std::size_t i = 0; i < turns.plans; ++i) {
    models.push_back(std::make_unique<exec::Executor>(device, work.model(), settings));
    if (options.resume) (void)models.back()->load(options.checkpoint);
  }
  if (teller != nullptr) teller->meet(device.backend.info());
  DeviceFaults faults(work, device.host.rank());
  read_pace(training, device, teller, 0);
  for (std::int64_t index = 0; index < turns.count(); ++index) {
    const Turn turn = turns[index];
    exec::Executor& model = *models[turn.plan];
    std::shared_ptr<const PlannedStep> planned;
    const exec::ProgramSource program = [&planned, &plans = training.plans, index]() -> const Program& {
      planned = plans.step(index);
      return planned->program();
    };
    faults.begin(turn.step);
    exec::StepOutcome outcome = model.run_step(program, data.tokens(), stop_signal() != 0);
    const bool stopped = outcome.stopped;
    if (!stopped) read_pace(training, device, teller, index + 1);
    if (teller != nullptr) teller->tell(turn, *planned, std::move(outcome));
    const bool is_end = stopped || index + 1 == turns.count();
    if (keeps(options, index + 1, is_end)) model.save(options.checkpoint, turn.step + 1);
    if (stopped) return false;
  }
  return true;
}

std::chrono::milliseconds milliseconds_of(Duration time) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(time.seconds() * 1e3));
}

bool run_threads(const Training& training, Teller& teller) {
  std::atomic<bool> finished = true;
  run_device_threads(training.options.backend, static_cast<int>(training.work.devices()),
                     milliseconds_of(training.options.patience), [&](const exec::JobDevice& device) {
                       Teller* const own = device.host.rank() == 0 ? &teller : nullptr;
                       if (!run_rank(training, device, own)) finished = false;
                     });
  teller.end();
  return finished;
}

// Runs the training with this process as one rank.
bool run_process(const Training& training, const Launch& launch) {
  const Work& work = training.work;
  const Duration patience = training.options.patience;
  std::unique_ptr<kernels::Transport> transport;
  {
    const LaunchWatch watch(launch, Together::start, patience);
    transport = kernels::make_mpi_transport(milliseconds_of(patience));
  }
  if (transport->size() != work.devices()) {
    throw InputError(
        fmt::format("MPI joins {} processes, but the plan is for {} ranks", transport->size(), work.devices()),
        launch.advice);
  }
  const kernels::Seat seat = kernels::own_seat();
  std::vector<kernels::Seat> seats(static_cast<std::size_t>(transport->size()));
  transport->all_gather(&seat, seats.data(), sizeof seat);
  std::optional<Teller> teller;
  const DeviceKind kind = training.options.backend;
  if (transport->rank() == 0)
    teller.emplace(work, training.options, training.session, device_share(kind, seats, false), nullptr).begin();
  bool finished = true;
  run_device_process(kind, *transport, seats, milliseconds_of(patience), [&](const exec::JobDevice& device) {
    finished = run_rank(training, device, teller ? &*teller : nullptr);
  });
  if (teller) teller->end();
  const LaunchWatch watch(launch, Together::end, patience);
  transport.reset();
  return finished;
}

bool run(const Training& training, const std::optional<Launch>& launch) {
  if (launch) return run_process(training, *launch);
  const std::vector<kernels::Seat> seats(static_cast<std::size_t>(training.work.devices()), kernels::own_seat());
  Teller teller(training.work, training.options, training.session, device_share(training.options.backend, seats, true),
                training.data.loaders());
  teller.begin();
  return run_threads(training, teller);
}

// What needs ranks that are threads.
void require_options_of_processes(const ExecuteOptions& options) {
  constexpr const char* help = "leave it out, or start one process alone";
  if (options.pace) {
    throw InputError("--pace times kernels while ranks that are threads wait, but here they are processes", help);
  }
  if (options.loaders) {
    throw InputError("--loaders feed ranks that are threads, but here they are processes", help);
  }
}

int execute_command(const ExecuteOptions& options, const Session& session) {
  const std::optional<Launch> launch = find_launch();
  if (launch) require_options_of_processes(options);
  Catalog catalog(session.data_folder);
  const Work work = read_work(options, launch ? std::optional(launch->processes) : std::nullopt, catalog);
  const std::int64_t first =
      options.resume ? exec::CheckpointReader(options.checkpoint).title().next_step : options.first_step;
  TrainingData data(options, work, first);
  for (std::size_t i = 0; i < work.plans(); ++i) {
    exec::require_executable(work.plan_of(i, first), work.model(), data.tokens(), work.ranks(),
                             ChunkMap(work.pipeline(), work.mesh().pp).deal(), work.point->spec.recipe.key_exchange);
  }
  require_devices(options.backend, work);
  require_free_outputs(options, session, work, first);
  const Turns turns{.plans = work.plans(), .first_step = first, .steps = options.steps, .runs = options.runs};
  const LoweringOptions lowering = exec::lowering_for(element_of(options.backend), work.model(), work.mesh(),
                                                      work.point->spec.recipe, work.pipeline());
  catch_stop_signals();
  const auto plan_of = [&](const Turn& turn) {
    Plan plan = work.plan_of(turn.plan, turn.step);
    if (ExecutionLoaders* const loaders = data.loaders()) loaders->expect(plan);
    return plan;
  };
  PlanAhead plans(turns, plan_of, lowering);
  TakenAlone pace;
  if (run({work, options, session, data, turns, plans, pace}, launch)) return 0;
  const int signal = stop_signal();  // it may have reached another process
  return exit_by_signal + (signal != 0 ? signal : SIGTERM);
}

// ---- The command line

void add_what_options(Command command, ExecuteOptions& options) {
  command.add_option("FILE", options.file, "A study, or a plan of one").required();
  command.add_option("--study", options.study, "The study that a plan belongs to: its model, data and profile")
      .type_name("STUDY");
  command
      .add_option("--plan", options.plans,
                  "Which plan, if the study has several; may be given several times: each trains a model of its own, "
                  "step by step in turn, with a folder of its own in --out")
      .type_name("NAME")
      .one_at_a_time();
  command.add_flag("--all-plans", options.all_plans, "All plans of the study, as if each were named")
      .excludes(command.option("--plan"));
  add_count(command, "--point", options.point, "Which point of the sweep, counted from 0 (default: 0)", 0);
  add_set(command, options.overrides, "the study");
}

void add_training_options(Command command, ExecuteOptions& options) {
  add_count(command, "--steps", options.steps, "How many optimizer steps (default: 1)");
  add_count(command, "--repeat", options.runs,
            "Train every step this many times on the same data and time each; of several, the first is a warm-up that "
            "does not count (default: 1)");
  add_count(command, "--first-step", options.first_step, "Which step of the study comes first, counted from 0", 0);
  const Option text =
      command
          .add_option("--text", options.text,
                      "Train on the bytes of these files, not on random tokens; may be given several times")
          .type_name("FILE")
          .existing_file()
          .one_at_a_time();
  command
      .add_flag("--loaders", options.loaders,
                "Read each of these files by a process of its own, line after line, mixed, shadowed and killed as the "
                "study's loading says; with --out, samples.csv lists what was read")
      .needs(text);
  add_count(command, "--seed", options.seed, "Random seed of the initial parameters and of the data (default: 1)", 0);
  command.add_option("--learning-rate", options.rate, "Adam's learning rate (default: 0.0003)")
      .not_negative()
      .type_name("RATE");
}

void add_checkpoint_options(Command command, ExecuteOptions& options) {
  const Option file =
      command
          .add_option("--checkpoint", options.checkpoint,
                      "Write a checkpoint there at the end; also when told to stop, if the step then ends within 1.5 s")
          .type_name("FILE");
  add_count(command, "--checkpoint-every", options.checkpoint_every, "And after every COUNT steps").needs(file);
  command.add_flag("--resume", options.resume, "Go on from the checkpoint, with the step that comes next")
      .needs(file)
      .excludes(command.option("--first-step"));
}

void add_rank_options(Command command, ExecuteOptions& options) {
  command
      .add_option(
          "--backend",
          [&options](const std::string& name) {
            options.backend = name == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
          },
          "cpu: a core each, in fp32; cuda: a GPU each where mpirun or srun starts them, else all of them the first "
          "GPU, "
          "in bf16 (default: cpu)")
      .one_of({"cpu", "cuda"})
      .type_name("cpu|cuda");
  add_count(command, "--ranks", options.ranks,
            "HDP ranks, of mesh.tp x mesh.pp threads of this process each, on one node of the study's cluster "
            "(default: those of "
            "the study)");
  command.add_flag(
      "--pace", options.pace,
      "Before the first run and between the runs, time kernels that the profile has samples of; tell whether "
      "it still holds, and what is predicted with kernels as fast as they are then; where ranks are "
      "threads");
  add_patience(command, options.patience,
               "Abort when no rank has progressed for this long, or a process has not started (at least a minute for "
               "that; default: 60 s)");
}

}  // namespace

void add_execute_command(Command app, Session& session) {
  const Command command = app.add_subcommand("execute", execute_help);
  ExecuteOptions& options = add_command(command, session, execute_command);
  add_what_options(command, options);
  add_training_options(command, options);
  add_checkpoint_options(command, options);
  add_rank_options(command, options);
  command
      .add_option("--out", options.out,
                  "Write steps.csv and, of every step, plan-N.json, predicted-N.jsonl and measured-N.jsonl there "
                  "(measured-N-2.jsonl and so on of further runs), which hdpsim compare reads, and both timelines for "
                  "ui.perfetto.dev as trace-N.json.gz")
      .type_name("FOLDER");
  command.footer(
      "Under mpirun or srun every process is a device, mesh.tp x mesh.pp of which are a rank; otherwise devices are "
      "threads.\n"
      "Example:\n  hdpsim execute configs/studies/real.yaml --plan hdp-balance --steps 3 --out real");
}

}  // namespace hdpsim::app
