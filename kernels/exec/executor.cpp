#include "kernels/exec/executor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>

#include "kernels/exec/checkpoint.h"
#include "kernels/exec/impl/activations.h"
#include "kernels/exec/impl/dense.h"
#include "kernels/exec/impl/gather.h"
#include "kernels/exec/impl/interpreter.h"
#include "kernels/exec/impl/recorder.h"
#include "kernels/exec/impl/ring_steps.h"
#include "kernels/exec/impl/sharded_adam.h"
#include "kernels/exec/parameters.h"
#include "kernels/exec/requirements.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels::exec {
namespace {

std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

AttentionHeads heads_of(const Transformer& model) {
  return {.heads = model.heads,
          .kv_heads = model.kv_heads,
          .dim = model.head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(model.head_dim))};
}

void require_lowered_for(const LoweringOptions& lowering, const Transformer& model) {
  if (!same_shape(lowering.model, model)) {
    throw UnsupportedInput(fmt::format("the program is one of '{}', not of '{}'", lowering.model.name, model.name));
  }
  if (lowering.mesh.tp != 1) {
    throw UnsupportedInput(fmt::format("tensor parallelism cannot be executed yet: tp is {}", lowering.mesh.tp));
  }
  if (lowering.separate_merge) {
    throw UnsupportedInput("the program has merges of its own, which these kernels do without");
  }
}

// Drives the transport between tiles of attention, for as long as the object lives.
class Progress {
 public:
  Progress(Backend& backend, Transport& transport) : backend_(backend) {
    backend_.set_progress_hook([&transport] { transport.progress(); });
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { backend_.set_progress_hook({}); }

 private:
  Backend& backend_;
};

// When the step begins, on this rank's clock: all ranks of one host take rank 0's word, for they share the clock.
Recorder::Clock::time_point agreed_start(Transport& transport) {
  struct Stamp {
    std::int64_t time = 0;
    std::uint64_t host = 0;
  };
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  transport.barrier();
  const Recorder::Clock::time_point now = Recorder::Clock::now();
  const Stamp mine{now.time_since_epoch().count(), std::hash<std::string_view>{}(name.data())};
  std::vector<Stamp> stamps(static_cast<std::size_t>(transport.size()));
  transport.all_gather(&mine, stamps.data(), sizeof(Stamp));
  const bool one_host = std::all_of(stamps.begin(), stamps.end(), [&](const Stamp& s) { return s.host == mine.host; });
  return one_host ? Recorder::Clock::time_point(Recorder::Clock::duration(stamps[0].time)) : Recorder::Clock::now();
}

// Why training cannot go on from a checkpoint; empty if it can.
std::string checkpoint_problem(const std::filesystem::path& path, const Transformer& model) {
  try {
    CheckpointReader reader(path);
    reader.verify();
    if (same_shape(reader.title().model, model)) return {};
    return fmt::format("{} is of another model than '{}'", path.string(), model.name);
  } catch (const UnsupportedInput& error) {
    return error.what();
  }
}

// What every rank says of its part of a step.
struct Word {
  double loss = 0;
  std::int64_t stop = 0;
};

std::vector<Word> exchanged(Transport& transport, const Word& word) {
  std::vector<Word> words(static_cast<std::size_t>(transport.size()));
  transport.all_gather(&word, words.data(), sizeof(Word));
  return words;
}

}  // namespace

struct Executor::Parts {
  Parts(Backend& device, Transport& ranks, const Transformer& shape, const TrainingOptions& options)
      : backend(device),
        transport(ranks),
        model(shape),
        layout(model),
        adam(device, ranks, layout, options),
        parameters(device.allocate(bytes_of(adam.padded()))),
        gradients(device.allocate(bytes_of(adam.padded()))),
        dense(device, model, layout, floats(parameters), floats(gradients)),
        ring(device, ranks, heads_of(model)),
        activations(device, model),
        interpreter({device, dense, ring, activations, recorder}) {
    fill_parameters(options.seed);
  }

  static float* floats(const DeviceMemory& memory) { return static_cast<float*>(memory.get()); }

  void fill_parameters(std::uint64_t seed) {
    constexpr std::int64_t at_once = 1 << 20;
    std::vector<float> values(static_cast<std::size_t>(std::min(at_once, adam.padded())));
    for (std::int64_t begin = 0; begin < adam.padded(); begin += at_once) {
      const auto count = static_cast<std::size_t>(std::min(at_once, adam.padded() - begin));
      layout.initial_values(seed, begin, {values.data(), count});
      backend.upload(floats(parameters) + begin, values.data(), count * sizeof(float));
    }
  }

  double run_micro_batches(const Program& program, const TokenSource& tokens, std::int64_t targets) {
    (void)recorder.timed(Activity::overhead,
                         [&] { backend.fill_bytes(floats(gradients), 0, bytes_of(adam.padded())); });
    const Interpreter::Batch batch{tokens, targets > 0 ? 1 / static_cast<float>(targets) : 0};
    const HdpRank rank(static_cast<std::size_t>(transport.rank()));
    double loss = 0;
    for (const MicroBatchId id : program.plan().schedule[rank.index()]) {
      loss += interpreter.run(program, id, rank, batch);
    }
    return loss;
  }

  void end_step() {
    (void)recorder.timed(Activity::grad_sync, [&] { adam.reduce(floats(gradients)); });
    (void)recorder.timed(Activity::optimizer, [&] {
      adam.update(floats(parameters));
      backend.synchronize();
    });
    (void)recorder.timed(Activity::grad_sync, [&] { adam.gather(floats(parameters)); });
  }

  /// Rank 0 looks and tells all.
  void require_loadable(const std::filesystem::path& path) {
    std::array<char, 512> problem{};
    if (transport.rank() == 0) {
      const std::string text = checkpoint_problem(path, model);
      std::copy_n(text.begin(), std::min(text.size(), problem.size() - 1), problem.begin());
    }
    std::vector<char> problems(problem.size() * static_cast<std::size_t>(transport.size()));
    transport.all_gather(problem.data(), problems.data(), problem.size());
    if (problems[0] != '\0') throw UnsupportedInput(problems.data());
  }

  Backend& backend;
  Transport& transport;
  Transformer model;
  ParameterLayout layout;
  ShardedAdam adam;
  DeviceMemory parameters, gradients;  ///< fp32 [adam.padded()]
  Dense dense;
  RingSteps ring;
  Activations activations;
  Recorder recorder;
  Interpreter interpreter;
};

LoweringOptions lowering_for(const Backend& backend, const Transformer& model, std::int64_t ranks) {
  const auto element = static_cast<std::int64_t>(element_bytes(backend.element()));
  return {.model = model,
          .mesh = Mesh{.hdp = ranks},
          .dkv_bytes_per_element = sizeof(float),
          .bytes_per_element = element,
          .separate_merge = false};
}

Executor::Executor(Backend& backend, Transport& transport, const Transformer& model, const TrainingOptions& options) {
  if (backend.element() != Element::fp32) {
    throw UnsupportedInput("only fp32 can be executed yet, and this device computes in bf16");
  }
  parts_ = std::make_unique<Parts>(backend, transport, model, options);
}

Executor::~Executor() = default;

StepOutcome Executor::run_step(const Program& program, const TokenSource& tokens, bool stop) {
  Parts& parts = *parts_;
  require_executable(program.plan(), parts.model, tokens, parts.transport.size());
  require_lowered_for(program.options(), parts.model);
  const Progress progress(parts.backend, parts.transport);
  StepOutcome outcome{.targets = target_count(program.plan()), .timeline = {}, .processor = {}};
  parts.recorder.begin_step(agreed_start(parts.transport));
  const double own_loss = parts.run_micro_batches(program, tokens, outcome.targets);
  std::vector<Word> words;
  (void)parts.recorder.timed(Activity::group_wait, [&] {
    words = exchanged(parts.transport, {own_loss, stop ? 1 : 0});
  });
  for (const Word& word : words) {
    outcome.loss += word.loss;
    outcome.stopped = outcome.stopped || word.stop != 0;
  }
  outcome.loss /= static_cast<double>(std::max<std::int64_t>(1, outcome.targets));
  if (!std::isfinite(outcome.loss)) {
    throw DeviceError(
        fmt::format("the loss of step {} is {}: the parameters are not updated", program.plan().step, outcome.loss));
  }
  parts.end_step();
  const std::vector<RankLog> logs = gather_logs(parts.transport, parts.recorder.end_step());
  if (!logs.empty()) outcome.timeline = assemble(program.plan(), logs);
  for (const RankLog& log : logs) outcome.processor.push_back(log.processor);
  return outcome;
}

void Executor::save(const std::filesystem::path& path, std::int64_t next_step) {
  Parts& parts = *parts_;
  std::optional<CheckpointWriter> writer;
  if (parts.transport.rank() == 0) {
    writer.emplace(path, CheckpointTitle{parts.model, parts.layout.count(), parts.adam.updates(), next_step});
  }
  parts.adam.save(writer ? &*writer : nullptr);
  if (writer) writer->finish();
  parts.transport.barrier();
}

std::int64_t Executor::load(const std::filesystem::path& path) {
  Parts& parts = *parts_;
  parts.require_loadable(path);
  CheckpointReader reader(path);
  parts.adam.load(reader, Parts::floats(parts.parameters));
  return reader.title().next_step;
}

std::int64_t Executor::parameter_count() const {
  return parts_->layout.count();
}

std::vector<float> Executor::gradients() {
  const Parts& parts = *parts_;
  const DeviceMemory all = parts_->backend.allocate(bytes_of(parts.adam.padded()));
  parts_->transport.all_gather(parts.adam.gradient(), all.get(), bytes_of(parts.adam.share()));
  std::vector<float> gradients(static_cast<std::size_t>(parameter_count()));
  parts_->backend.download(gradients.data(), all.get(), bytes_of(parameter_count()));
  return gradients;
}

std::vector<float> Executor::parameters() const {
  std::vector<float> parameters(static_cast<std::size_t>(parameter_count()));
  parts_->backend.download(parameters.data(), parts_->parameters.get(), bytes_of(parameter_count()));
  return parameters;
}

}  // namespace hdpsim::kernels::exec
