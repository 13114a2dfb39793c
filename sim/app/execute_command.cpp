#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/exec/executor.h"
#include "kernels/exec/parameters.h"
#include "kernels/exec/requirements.h"
#include "kernels/transport/in_process.h"
#include "kernels/transport/mpi_transport.h"
#include "sim/app/command.h"
#include "sim/app/execution_report.h"
#include "sim/app/execution_work.h"
#include "sim/app/launcher.h"
#include "sim/app/signals.h"
#include "sim/base/quantity_text.h"
#include "sim/engine/simulator.h"
#include "sim/profile/profile_file.h"
#include "sim/report/output_file.h"
#include "sim/report/table.h"

namespace hdpsim::app {
namespace {

namespace exec = kernels::exec;

std::unique_ptr<const exec::TokenSource> token_source(const ExecuteOptions& options, const Transformer& model) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  if (options.text.empty()) return exec::make_synthetic_tokens(model.vocabulary, seed);
  return exec::make_text_tokens({options.text.begin(), options.text.end()}, seed);
}

// ---- Running it

/// What rank 0 does beside its part: predicts and tells.
class Teller {
 public:
  Teller(const Work& work, const std::filesystem::path& out)
      : world_(work.point->make_world()), report_(out), model_(work.model().name) {
    world_->machine().record_instructions = true;
  }

  void begin(const Work& work, bool threads) {
    const DeviceProfile& profile = *work.point->spec.profile;
    print(fmt::format("{}: {} of {} parameters, {} on {} ranks, predicted by {} ({})\n", work.study.name, model_,
                      short_number(static_cast<double>(exec::ParameterLayout(work.model()).count())),
                      work.policy_name(), work.ranks(), profile.name, profile_label_name(profile.provenance.label)));
    const unsigned cores = std::thread::hardware_concurrency();
    if (threads && work.devices() > cores) {
      print(fmt::format("{} ranks share {} cores: what is predicted for a core each lasts longer\n", work.devices(),
                        cores));
    }
    print("\n" + ExecutionReport::heading());
  }

  void tell(const Program& program, exec::StepOutcome&& outcome) {
    const Plan& plan = program.plan();
    ExecutedStep step{.step = plan.step,
                      .loss = outcome.loss,
                      .tokens = 0,
                      .predicted = simulate(program, world_->machine(), Grain::exact),
                      .measured = std::move(*outcome.timeline),
                      .processor = std::move(outcome.processor)};
    for (const std::int64_t tokens : plan.sequence_tokens) step.tokens += tokens;
    print(report_.add(plan, step));
  }

  void end() const { print(report_.finish()); }

 private:
  std::unique_ptr<World> world_;
  ExecutionReport report_;
  std::string model_;
};

/// What all ranks do.
struct Training {
  const Work& work;
  const ExecuteOptions& options;
  const exec::TokenSource& tokens;
};

// Whether a checkpoint is due after so many steps.
bool keeps(const ExecuteOptions& options, std::int64_t steps, bool is_end) {
  if (options.checkpoint.empty()) return false;
  return is_end || (options.checkpoint_every > 0 && steps % options.checkpoint_every == 0);
}

// All steps on one rank; `teller` on rank 0 alone. False if somebody asked to stop.
bool run_rank(const Training& training, kernels::Transport& transport, Teller* teller) {
  const auto& [work, options, tokens] = training;
  const auto backend = kernels::make_cpu_backend();
  const exec::TrainingOptions settings{.seed = static_cast<std::uint64_t>(options.seed),
                                       .adam = {.rate = static_cast<float>(options.rate)},
                                       .tp = static_cast<int>(work.mesh().tp)};
  exec::Executor executor(*backend, transport, work.model(), settings);
  const LoweringOptions lowering = exec::lowering_for(*backend, work.model(), work.mesh(), work.point->spec.recompute);
  const std::int64_t first = options.resume ? executor.load(options.checkpoint) : options.first_step;
  const std::int64_t last = first + options.steps - 1;
  for (std::int64_t step = first; step <= last; ++step) {
    const Plan plan = work.plan_of(step);
    const Program program(plan, lowering);
    exec::StepOutcome outcome = executor.run_step(program, tokens, stop_signal() != 0);
    const bool stopped = outcome.stopped;
    if (teller != nullptr) teller->tell(program, std::move(outcome));
    if (keeps(options, step - first + 1, stopped || step == last)) executor.save(options.checkpoint, step + 1);
    if (stopped) return false;
  }
  return true;
}

std::chrono::milliseconds milliseconds_of(Duration time) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(time.seconds() * 1e3));
}

bool run_threads(const Training& training, Teller& teller) {
  std::atomic<bool> finished = true;
  kernels::run_ranks(
      static_cast<int>(training.work.devices()),
      [&](kernels::Transport& transport) {
        Teller* const own = transport.rank() == 0 ? &teller : nullptr;
        if (!run_rank(training, transport, own)) finished = false;
      },
      milliseconds_of(training.options.patience));
  teller.end();
  return finished;
}

// This process is one rank.
bool run_process(const Training& training) {
  const Work& work = training.work;
  const ExecuteOptions& options = training.options;
  const auto transport = kernels::make_mpi_transport(milliseconds_of(options.patience));
  if (transport->size() != work.devices()) {
    throw InputError(
        fmt::format("MPI joins {} processes, but the plan is for {} ranks", transport->size(), work.devices()));
  }
  std::optional<Teller> teller;
  if (transport->rank() == 0) teller.emplace(work, options.out).begin(work, false);
  const bool finished = run_rank(training, *transport, teller ? &*teller : nullptr);
  if (teller) teller->end();
  return finished;
}

int run_command(const ExecuteOptions& options, const Session& session) {
  const std::optional<int> processes = launched_processes();
  Catalog catalog(session.data_folder);
  const Work work = read_work(options, processes, catalog);
  const auto tokens = token_source(options, work.model());
  exec::require_executable(work.plan_of(options.first_step), work.model(), *tokens, work.ranks());
  if (!options.out.empty()) prepare_folder(options.out);
  const Training training{work, options, *tokens};
  catch_stop_signals();
  bool finished = true;
  if (processes) {
    finished = run_process(training);
  } else {
    Teller teller(work, options.out);
    teller.begin(work, true);
    finished = run_threads(training, teller);
  }
  if (finished) return 0;
  const int signal = stop_signal();  // another process may have got it
  return exit_by_signal + (signal != 0 ? signal : SIGTERM);
}

// ---- The command line

void add_what_options(CLI::App& command, ExecuteOptions& options) {
  command.add_option("FILE", options.file, "A study, or a plan of one")->required();
  command.add_option("--study", options.study, "The study that a plan belongs to: its model, data and profile")
      ->type_name("STUDY");
  command.add_option("--plan", options.plan, "Which plan, if the study has several")->type_name("NAME");
  add_count(command, "--point", options.point, "Which point of the sweep, counted from 0 (default: 0)", 0);
  command.add_option("--set", options.overrides, "Override a value of the study; may be given several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_training_options(CLI::App& command, ExecuteOptions& options) {
  add_count(command, "--steps", options.steps, "How many optimizer steps (default: 1)");
  add_count(command, "--first-step", options.first_step, "Which step of the study comes first, counted from 0", 0);
  command
      .add_option("--text", options.text,
                  "Train on the bytes of these files, not on random tokens; may be given several times")
      ->type_name("FILE")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false);
  add_count(command, "--seed", options.seed, "Of the initial parameters and of the data (default: 1)", 0);
  command.add_option("--learning-rate", options.rate, "Of Adam (default: 0.0003)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RATE");
}

void add_checkpoint_options(CLI::App& command, ExecuteOptions& options) {
  CLI::Option* file =
      command
          .add_option("--checkpoint", options.checkpoint, "Write a checkpoint there at the end, also when told to stop")
          ->type_name("FILE");
  add_count(command, "--checkpoint-every", options.checkpoint_every, "And after every so many steps")->needs(file);
  command.add_flag("--resume", options.resume, "Go on from the checkpoint, with the step that comes next")
      ->needs(file)
      ->excludes(command.get_option("--first-step"));
}

void add_rank_options(CLI::App& command, ExecuteOptions& options) {
  add_count(command, "--ranks", options.ranks,
            "HDP ranks, of mesh.tp threads of this process each, on one node of the study's cluster (default: those of "
            "the study)");
  const auto read = [&options](const std::string& text) {
    const Parsed<Duration> parsed = parse_duration(text);
    if (!parsed.value) throw CLI::ValidationError("--patience", parsed.error);
    if (*parsed.value < Duration::seconds(1e-3)) throw CLI::ValidationError("--patience", "it must be at least 1 ms");
    options.patience = *parsed.value;
  };
  command
      .add_option_function<std::string>("--patience", read,
                                        "Give up when a rank waits so long and nothing moves (default: 60 s)")
      ->type_name("TIME");
}

}  // namespace

void add_execute_command(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("execute", "Train for real by the plans of a study, and hold the prediction against it");
  ExecuteOptions& options = add_command(*command, session, run_command);
  add_what_options(*command, options);
  add_training_options(*command, options);
  add_checkpoint_options(*command, options);
  add_rank_options(*command, options);
  command
      ->add_option("--out", options.out,
                   "Write steps.csv and, of every step, plan-N.json, predicted-N.jsonl and measured-N.jsonl there")
      ->type_name("FOLDER");
  command->footer(
      "Under mpirun or srun every process is a device, mesh.tp of which are a rank; alone, devices are threads.\n"
      "Example:\n  hdpsim execute configs/studies/real.yaml --plan hdp-balance --steps 3 --out real");
}

}  // namespace hdpsim::app
