#include "kernels/exec/executor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
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
#include "kernels/ring/message_driver.h"
#include "kernels/spec/error.h"
#include "kernels/transport/group_transport.h"

namespace hdpsim::kernels::exec {
namespace {

std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

// The devices of this one's HDP rank, and those that hold the same shard in the whole pool.
std::vector<int> rank_of(const Transport& transport, int tp) {
  std::vector<int> devices(static_cast<std::size_t>(tp));
  std::iota(devices.begin(), devices.end(), transport.rank() / tp * tp);
  return devices;
}

std::vector<int> pool_of(const Transport& transport, int tp) {
  std::vector<int> pool;
  for (int device = transport.rank() % tp; device < transport.size(); device += tp) pool.push_back(device);
  return pool;
}

AttentionHeads heads_of(const Transformer& model) {
  return {.heads = model.heads,
          .kv_heads = model.kv_heads,
          .dim = model.head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(model.head_dim))};
}

void require_lowered_for(const LoweringOptions& lowering, const Transformer& model, int tp) {
  if (!same_shape(lowering.model, model)) {
    throw UnsupportedInput(fmt::format("the program is one of '{}', not of '{}'", lowering.model.name, model.name));
  }
  if (lowering.mesh.tp != tp) {
    throw UnsupportedInput(fmt::format("the program is for tp {}, but ranks have {} devices", lowering.mesh.tp, tp));
  }
  if (lowering.separate_merge) {
    throw UnsupportedInput("the program has merges of its own, which these kernels do without");
  }
}

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
  Parts(Backend& device, Transport& everybody, const Transformer& shape, const TrainingOptions& options)
      : backend(device),
        transport(everybody),
        devices(everybody, rank_of(everybody, options.tp)),
        pool_group(everybody, pool_of(everybody, options.tp)),
        pool(options.tp == 1 ? everybody : pool_group),
        shard{devices.rank(), devices.size()},
        model(shape),
        layout(model, shard),
        adam(device, pool, layout, options),
        parameters(device.allocate(bytes_of(adam.padded()))),
        gradients(device.allocate(bytes_of(adam.padded()))),
        dense(device, devices, model, layout, floats(parameters), floats(gradients)),
        ring(device, pool, heads_of(shard_of(model, shard))),
        activations(device, model, shard),
        interpreter({device, dense, ring, activations, recorder, copies}) {
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

  const Program& taken(const ProgramSource& source) {
    const Program* program = nullptr;
    (void)recorder.timed(Activity::data_wait, [&] { program = &source(); });
    return *program;
  }

  double run_micro_batches(const Program& program, const TokenSource& tokens, std::int64_t targets) {
    (void)recorder.timed(Activity::overhead,
                         [&] { backend.fill_bytes(floats(gradients), 0, bytes_of(adam.padded())); });
    const Interpreter::Batch batch{tokens, targets > 0 ? 1 / static_cast<float>(targets) : 0};
    const HdpRank rank(static_cast<std::size_t>(pool.rank()));
    double loss = 0;
    for (const MicroBatchId id : program.plan().schedule[rank.index()]) {
      loss += interpreter.run(program, id, rank, batch);
    }
    return loss;
  }

  void end_step() {
    (void)recorder.timed(Activity::grad_sync, [&] {
      add_up_norms();
      adam.reduce(floats(gradients));
    });
    (void)recorder.timed(Activity::optimizer, [&] {
      adam.update(floats(parameters));
      backend.synchronize();
    });
    (void)recorder.timed(Activity::grad_sync, [&] { adam.gather(floats(parameters)); });
  }

  /// Every device has all norms, but the gradients of its own rows.
  void add_up_norms() {
    if (shard.devices == 1) return;
    std::vector<Tensor> norms = {layout.final_norm()};
    for (const LayerTensors& layer : layout.layers()) {
      norms.push_back(layer.attention_norm);
      norms.push_back(layer.mlp_norm);
    }
    const std::size_t width = static_cast<std::size_t>(model.hidden);
    std::vector<float> sums(norms.size() * width);
    const auto at = [&](const Tensor& norm) { return floats(gradients) + norm.begin; };
    for (std::size_t i = 0; i < norms.size(); ++i) {
      backend.download(&sums[i * width], at(norms[i]), width * sizeof(float));
    }
    devices.all_reduce(sums.data(), sums.size());
    for (std::size_t i = 0; i < norms.size(); ++i) {
      backend.upload(at(norms[i]), &sums[i * width], width * sizeof(float));
    }
  }

  /// On rank 0: a tensor of the whole model, of which every device has `share`, in the order of the whole model.
  std::vector<float> collect(const float* share) {
    std::vector<float> own(static_cast<std::size_t>(adam.share()));
    backend.download(own.data(), share, bytes_of(adam.share()));
    if (transport.rank() != 0) {
      const Send send{0, own.data(), bytes_of(adam.share())};
      transport.wait(transport.start({&send, 1}, {}));
      return {};
    }
    std::vector<float> whole(static_cast<std::size_t>(layout.whole_count()));
    for (int device = 0; device < transport.size(); ++device) {
      const ParameterLayout theirs(model, {device % shard.devices, shard.devices});
      const std::int64_t count = (theirs.count() + pool.size() - 1) / pool.size();
      if (device > 0) {
        own.resize(static_cast<std::size_t>(count));
        const Receive receive{device, own.data(), bytes_of(count)};
        transport.wait(transport.start({}, {&receive, 1}));
      }
      const std::int64_t begin = count * (device / shard.devices);
      for (const ParameterLayout::Stretch& stretch : theirs.stretches(begin, count)) {
        std::copy_n(own.begin() + (stretch.begin - begin), stretch.count, whole.begin() + stretch.in_whole);
      }
    }
    return whole;
  }

  /// The same on every rank.
  std::vector<float> collect_everywhere(const float* share) {
    std::vector<float> whole = collect(share);
    whole.resize(static_cast<std::size_t>(layout.whole_count()));
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int rank = 1; rank < transport.size() && transport.rank() == 0; ++rank) {
      sends.push_back({rank, whole.data(), bytes_of(layout.whole_count())});
    }
    if (transport.rank() != 0) receives.push_back({0, whole.data(), bytes_of(layout.whole_count())});
    transport.wait(transport.start(sends, receives));
    return whole;
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
  Transport& transport;    ///< Of all devices.
  GroupTransport devices;  ///< Of this HDP rank.
  GroupTransport pool_group;
  Transport& pool;  ///< Of the devices with the same shard: its rank r is HDP rank r.
  TensorShard shard;
  Transformer model;
  ParameterLayout layout;  ///< Of the shard.
  ShardedAdam adam;
  DeviceMemory parameters, gradients;  ///< fp32 [adam.padded()]
  Dense dense;
  RingSteps ring;
  Activations activations;
  Recorder recorder;
  CopyThread copies;  ///< Of memory of the activations, which it must leave first.
  Interpreter interpreter;
};

LoweringOptions lowering_for(const Backend& backend, const Transformer& model, const Mesh& mesh, Recompute recompute) {
  const auto element = static_cast<std::int64_t>(element_bytes(backend.element()));
  return {.model = model,
          .mesh = mesh,
          .dkv_bytes_per_element = sizeof(float),
          .bytes_per_element = element,
          .separate_merge = false,
          .recompute = recompute};
}

Executor::Executor(Backend& backend, Transport& transport, const Transformer& model, const TrainingOptions& options) {
  if (backend.element() != Element::fp32) {
    throw UnsupportedInput("only fp32 can be executed yet, and this device computes in bf16");
  }
  if (transport.size() % options.tp != 0) {
    throw UnsupportedInput(
        fmt::format("{} ranks are no whole number of HDP ranks of {} devices", transport.size(), options.tp));
  }
  parts_ = std::make_unique<Parts>(backend, transport, model, options);
}

Executor::~Executor() = default;

StepOutcome Executor::run_step(const Program& program, const TokenSource& tokens, bool stop) {
  return run_step([&]() -> const Program& { return program; }, tokens, stop);
}

StepOutcome Executor::run_step(const ProgramSource& source, const TokenSource& tokens, bool stop) {
  Parts& parts = *parts_;
  const MessageDriver progress(parts.backend, parts.transport);
  parts.recorder.begin_step(agreed_start(parts.transport));
  const Program& program = parts.taken(source);
  require_executable(program.plan(), parts.model, tokens, parts.pool.size());
  require_lowered_for(program.options(), parts.model, parts.shard.devices);
  StepOutcome outcome{.targets = target_count(program.plan()), .timeline = {}, .processor = {}};
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
  const RankLog own_log = parts.recorder.end_step();
  if (parts.shard.index > 0) return outcome;
  const std::vector<RankLog> logs = gather_logs(parts.pool, own_log);
  if (!logs.empty()) outcome.timeline = assemble(program.plan(), logs);
  for (const RankLog& log : logs) outcome.processor.push_back(log.processor);
  return outcome;
}

void Executor::save(const std::filesystem::path& path, std::int64_t next_step) {
  Parts& parts = *parts_;
  std::optional<CheckpointWriter> writer;
  if (parts.transport.rank() == 0) {
    writer.emplace(path, CheckpointTitle{parts.model, parts.layout.whole_count(), parts.adam.updates(), next_step});
  }
  for (const float* const share : parts.adam.state()) {
    const std::vector<float> whole = parts.collect(share);
    if (writer) writer->write(whole);
  }
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
  return parts_->layout.whole_count();
}

std::vector<float> Executor::gradients() {
  return parts_->collect_everywhere(parts_->adam.gradient());
}

std::vector<float> Executor::parameters() {
  return parts_->collect_everywhere(parts_->adam.own_share(Parts::floats(parts_->parameters)));
}

}  // namespace hdpsim::kernels::exec
