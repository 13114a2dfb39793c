#include "kernels/exec/executor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/exec/checkpoint.h"
#include "kernels/exec/impl/dense.h"
#include "kernels/exec/impl/gather.h"
#include "kernels/exec/impl/in_flight.h"
#include "kernels/exec/impl/interpreter.h"
#include "kernels/exec/impl/mesh_place.h"
#include "kernels/exec/impl/pass_messages.h"
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

AttentionHeads heads_of(const Transformer& model) {
  return {.heads = model.heads,
          .kv_heads = model.kv_heads,
          .dim = model.head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(model.head_dim))};
}

void require_lowered_for(const LoweringOptions& lowering, const Transformer& model, const MeshSizes& sizes,
                         const PipelineStage& stage) {
  const auto refuse = [](const std::string& reason) { throw UnsupportedInput(reason); };
  const Mesh& mesh = lowering.mesh;
  if (!same_shape(lowering.model, model)) {
    refuse(fmt::format("the program is one of '{}', not of '{}'", lowering.model.name, model.name));
  }
  if (mesh.tp != sizes.tp) {
    refuse(fmt::format("the program is for tp {}, but ranks have {} devices", mesh.tp, sizes.tp));
  }
  if (mesh.pp != sizes.pp || lowering.pipeline.virtual_stages != stage.chunks) {
    refuse(fmt::format("the program is for {} stages of {} chunks, but ranks have {} of {}", mesh.pp,
                       lowering.pipeline.virtual_stages, sizes.pp, stage.chunks));
  }
  require_executable(model, mesh, lowering.pipeline);
  if (lowering.separate_merge) refuse("the program has merges of its own, which these kernels do without");
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

// What every device says of its part of a step.
struct Word {
  double loss = 0;
  std::int64_t stop = 0;
};

// In the order of ranks, so that all get the same bits.
Word summed(Transport& transport, const Word& word) {
  std::vector<Word> words(static_cast<std::size_t>(transport.size()));
  transport.all_gather(&word, words.data(), sizeof(Word));
  Word sum;
  for (const Word& one : words) {
    sum.loss += one.loss;
    sum.stop += one.stop;
  }
  return sum;
}

}  // namespace

struct Executor::Parts {
  Parts(Backend& device, Transport& everybody, const Transformer& shape, const TrainingOptions& options)
      : backend(device),
        transport(everybody),
        place(everybody, {.tp = options.tp, .pp = options.pp}),
        shard{place.shard(), options.tp},
        stage{place.stage(), options.pp, options.virtual_stages},
        model(shape),
        layout(model, shard, stage),
        adam(device, place.pool(), layout, options),
        parameters(device.allocate(bytes_of(adam.padded()))),
        gradients(device.allocate(bytes_of(adam.padded()))),
        dense(device, place.devices(), model, layout, floats(parameters), floats(gradients)),
        ring(device, place.pool(), heads_of(shard_of(model, shard))),
        in_flight(device, model, shard),
        messages(device, place.stages()),
        interpreter({device, dense, ring, in_flight, messages, recorder, copies}) {
    fill_parameters(options.seed);
    if (!model.tied_embeddings || options.pp == 1 || !(stage.has_embedding() || stage.has_head())) return;
    const auto holder = [&](int of_stage) { return place.sizes().device(place.rank(), of_stage, place.shard()); };
    table_holders.emplace(everybody, std::vector<int>{holder(0), holder(options.pp - 1)});
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

  double run_passes(const Program& program, const TokenSource& tokens, std::int64_t targets) {
    (void)recorder.timed(Activity::overhead,
                         [&] { backend.fill_bytes(floats(gradients), 0, bytes_of(adam.padded())); });
    const Interpreter::Batch batch{tokens, targets > 0 ? 1 / static_cast<float>(targets) : 0};
    const HdpRank rank(static_cast<std::size_t>(place.rank()));
    const Pipeline& pipeline = program.pipeline();
    messages.begin_step(program, rank, shard);
    double loss = 0;
    for (const PassId pass : pipeline.schedule()[pipeline.worker(rank, stage.index).index()]) {
      loss += interpreter.run(program, pass, rank, batch);
    }
    return loss;
  }

  /// Adds up gradients and words. A stage does so as soon as its own workers are done; then all stages wait for each
  /// other, so that no parameter changes before the loss is known.
  Word reduce(Word word) {
    (void)recorder.timed(Activity::group_wait, [&] { word = summed(place.pool(), summed(place.devices(), word)); });
    if (table_holders) {
      (void)recorder.timed(Activity::bubble, [&] { table_holders->barrier(); });
    }
    (void)recorder.timed(Activity::grad_sync, [&] {
      add_up_norms();
      add_up_table();
      adam.reduce(floats(gradients));
    });
    if (stage.stages == 1) return word;
    (void)recorder.timed(Activity::bubble, [&] {
      messages.end_step();
      word = summed(place.stages(), word);
    });
    return word;
  }

  void update() {
    (void)recorder.timed(Activity::optimizer, [&] {
      adam.update(floats(parameters));
      backend.synchronize();
    });
    (void)recorder.timed(Activity::grad_sync, [&] { adam.gather(floats(parameters)); });
  }

  /// A tied table has a gradient as embedding on the first stage, and one as head on the last.
  void add_up_table() {
    if (!table_holders) return;
    const Tensor& table = stage.has_embedding() ? layout.embedding() : layout.head();
    table_holders->all_reduce(floats(gradients) + table.begin, static_cast<std::size_t>(table.count));
  }

  /// Every device has all norms, but the gradients of its own rows.
  void add_up_norms() {
    if (shard.devices == 1) return;
    std::vector<Tensor> norms = {layout.final_norm()};
    for (const LayerTensors& layer : layout.layers()) {
      norms.push_back(layer.attention_norm);
      norms.push_back(layer.mlp_norm);
    }
    std::erase_if(norms, [](const Tensor& norm) { return norm.count == 0; });  // of other stages
    const std::size_t width = static_cast<std::size_t>(model.hidden);
    std::vector<float> sums(norms.size() * width);
    const auto at = [&](const Tensor& norm) { return floats(gradients) + norm.begin; };
    for (std::size_t i = 0; i < norms.size(); ++i) {
      backend.download(&sums[i * width], at(norms[i]), width * sizeof(float));
    }
    place.devices().all_reduce(sums.data(), sums.size());
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
    const MeshSizes& sizes = place.sizes();
    for (int device = 0; device < transport.size(); ++device) {
      const ParameterLayout theirs(model, {sizes.shard(device), sizes.tp},
                                   {sizes.stage(device), stage.stages, stage.chunks});
      const std::int64_t count = ShardedAdam::share_of(theirs, place.pool());
      if (device > 0) {
        own.resize(static_cast<std::size_t>(count));
        const Receive receive{device, own.data(), bytes_of(count)};
        transport.wait(transport.start({}, {&receive, 1}));
      }
      const std::int64_t begin = count * sizes.rank(device);
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
  Transport& transport;  ///< Of all devices.
  MeshPlace place;
  TensorShard shard;
  PipelineStage stage;
  Transformer model;
  ParameterLayout layout;  ///< Of the shard of the stage.
  ShardedAdam adam;
  std::optional<GroupTransport> table_holders;  ///< Two stages that share a table, if this is one of them.
  DeviceMemory parameters, gradients;           ///< fp32 [adam.padded()]
  Dense dense;
  RingSteps ring;
  InFlight in_flight;
  PassMessages messages;
  Recorder recorder;
  CopyThread copies;  ///< Of memory of the activations, which it must leave first.
  Interpreter interpreter;
};

LoweringOptions lowering_for(const Backend& backend, const Transformer& model, const Mesh& mesh, Recompute recompute,
                             const PipelineOptions& pipeline) {
  const auto element = static_cast<std::int64_t>(element_bytes(backend.element()));
  return {.model = model,
          .mesh = mesh,
          .dkv_bytes_per_element = sizeof(float),
          .bytes_per_element = element,
          .separate_merge = false,
          .recompute = recompute,
          .pipeline = pipeline};
}

Executor::Executor(Backend& backend, Transport& transport, const Transformer& model, const TrainingOptions& options) {
  if (backend.element() != Element::fp32) {
    throw UnsupportedInput("only fp32 can be executed yet, and this device computes in bf16");
  }
  const int devices = options.tp * options.pp;
  if (transport.size() % devices != 0) {
    throw UnsupportedInput(
        fmt::format("{} ranks are no whole number of HDP ranks of {} devices", transport.size(), devices));
  }
  require_executable(model, {.tp = options.tp, .pp = options.pp}, {.virtual_stages = options.virtual_stages});
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
  const std::int64_t chunks = std::int64_t{parts.stage.stages} * parts.stage.chunks;
  require_executable(program.plan(), parts.model, tokens, parts.place.pool().size(), chunks);
  require_lowered_for(program.options(), parts.model, parts.place.sizes(), parts.stage);
  StepOutcome outcome{.targets = target_count(program.plan()), .timeline = {}, .processor = {}};
  const double own_loss = parts.run_passes(program, tokens, outcome.targets);
  const Word word = parts.reduce({own_loss, stop ? 1 : 0});
  outcome.loss = word.loss / static_cast<double>(std::max<std::int64_t>(1, outcome.targets));
  outcome.stopped = word.stop != 0;
  if (!std::isfinite(outcome.loss)) {
    throw DeviceError(
        fmt::format("the loss of step {} is {}: the parameters are not updated", program.plan().step, outcome.loss));
  }
  parts.update();
  const RankLog own_log = parts.recorder.end_step();
  if (parts.shard.index > 0) return outcome;
  const std::vector<RankLog> logs = gather_logs(parts.place.workers(), own_log);
  if (!logs.empty()) outcome.timeline = assemble(program, logs);
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

std::size_t Executor::most_in_flight() const {
  return parts_->in_flight.most();
}

std::vector<float> Executor::gradients() {
  return parts_->collect_everywhere(parts_->adam.gradient());
}

std::vector<float> Executor::parameters() {
  return parts_->collect_everywhere(parts_->adam.own_share(Parts::floats(parts_->parameters)));
}

}  // namespace hdpsim::kernels::exec
