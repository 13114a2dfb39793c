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
#include "kernels/exec/impl/copy_thread.h"
#include "kernels/exec/impl/dense.h"
#include "kernels/exec/impl/float_bytes.h"
#include "kernels/exec/impl/gather.h"
#include "kernels/exec/impl/group_core.h"
#include "kernels/exec/impl/in_flight.h"
#include "kernels/exec/impl/interpreter.h"
#include "kernels/exec/impl/mesh_place.h"
#include "kernels/exec/impl/pass_messages.h"
#include "kernels/exec/impl/recorder.h"
#include "kernels/exec/impl/sharded_adam.h"
#include "kernels/exec/impl/step_losses.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/exec/requirements.h"
#include "kernels/ring/ring_instructions.h"
#include "kernels/spec/error.h"
#include "kernels/transport/group_transport.h"
#include "sim/base/fingerprint.h"
#include "sim/model/layers.h"
#include "sim/model/parameters.h"

namespace hdpsim::kernels::exec {
namespace {

// Whether work is queued, or tensors are not what CPUs compute with.
bool is_gpu(const Backend& backend) {
  return backend.runs_ahead() || backend.element() != Element::fp32;
}

void require_lowered_for(const Program& program, const Transformer& model, const MeshSizes& sizes,
                         const PipelineStage& stage, const Backend& backend) {
  const LoweringOptions& lowering = program.options();
  const auto refuse = [](const std::string& reason) { throw UnsupportedInput(reason); };
  const Mesh& mesh = lowering.mesh;
  if (shape_text(lowering.model) != shape_text(model)) {
    refuse(fmt::format("the program is one of '{}', not of '{}'", lowering.model.name, model.name));
  }
  if (mesh.tp != sizes.tp) {
    refuse(fmt::format("the program is for tp {}, but ranks have {} devices", mesh.tp, sizes.tp));
  }
  if (mesh.pp != sizes.pp || program.pipeline().chunk_map().held(stage.index) != stage.own) {
    refuse(fmt::format("the program is for {} stages of {} chunks, but ranks have {} of {}", mesh.pp,
                       program.pipeline().chunks() / mesh.pp, sizes.pp, stage.deal.chunks() / stage.stages));
  }
  require_executable(model, mesh, lowering.pipeline);
  require_executable(lowering.recipe);
  if (is_gpu(backend)) require_executable_on_gpu(lowering.recipe.key_exchange);
  if (is_gpu(backend)) require_executable_on_gpu(program.plan());
  if (is_gpu(backend)) require_executable_on_gpu(model);
  if (lowering.recipe.separate_merge) refuse("the program has merges of its own, which these kernels do without");
  if (lowering.recipe.dropout) refuse("the program drops activations, which these kernels do not");
  if (lowering.recipe.has_gradient_buffer()) refuse("the program passes over a gradient buffer, which is not here");
  if (lowering.recipe.overlap_tp_gradients) refuse("the program gathers inputs again, which are kept gathered here");
}

// When the step begins, on this rank's clock: all ranks of one host use rank 0's time, because they share the clock.
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

// Why training cannot continue from a checkpoint; empty if it can.
std::string checkpoint_problem(const std::filesystem::path& path, const Transformer& model) {
  try {
    CheckpointReader reader(path);
    reader.verify();
    if (reader.title().shape == fingerprint(shape_text(model))) return {};
    return fmt::format("{} is of another model than '{}'", path.string(), model.name);
  } catch (const UnsupportedInput& error) {
    return error.what();
  }
}

// What every device reports about its part of a step.
struct Word {
  double loss = 0;
  std::int64_t stop = 0;
};

// Summed in the order of ranks, so that all get the same bits.
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
  Parts(const JobDevice& device, const Transformer& shape, const TrainingOptions& options)
      : backend(device.backend),
        transport(device.transport),
        host(device.host),
        place(transport, {.tp = options.tp, .pp = options.pp}, &backend),
        host_place(host, place.sizes()),
        shard{place.shard(), options.tp},
        chunks(options.pipeline, options.pp),
        stage(stage_at(place.stage(), chunks)),
        model(shape),
        layout(model, shard, stage),
        adam(backend, place.pool(), layout, options),
        parameters(backend.allocate(static_cast<std::size_t>(adam.padded()) * element_bytes(backend.element()))),
        gradients(backend.allocate(float_bytes(adam.padded()))),
        copies(device.copies != nullptr ? *device.copies : copy_thread),
        kinds(model, shard),
        mixing(backend, place.pool(), kinds),
        dense(backend, place.devices(), model, layout, parameters.get(), floats(gradients), mixing),
        core(backend, place.pool(), kinds),
        in_flight(backend, copies, model, shard),
        messages(backend, host_place.stages()),
        losses(backend),
        recorder(backend),
        interpreter({backend, dense, core, mixing, in_flight, messages, recorder, copies, losses}) {
    fill_parameters(options.seed);
    if (chunks.copies() > 1) {
      share(chunks.twin(stage.index), {0, layout.count()});
    } else if (model.tied_embeddings && stage.has_embedding() != stage.has_head()) {
      const std::int64_t other = chunks.stage_of(stage.has_embedding() ? chunks.chunks() - 1 : 0, 0);
      share(other, stage.has_embedding() ? layout.embedding() : layout.head());
    }
  }

  /// Gradients that another stage of the rank has, too.
  void share(std::int64_t other, const Tensor& gradient) {
    const auto device = [&](int of_stage) { return place.sizes().device(place.rank(), of_stage, place.shard()); };
    const auto [first, second] = std::minmax({stage.index, static_cast<int>(other)});
    sharers.emplace(transport, std::vector<int>{device(first), device(second)}, &backend);
    shared_gradient = gradient;
  }

  static float* floats(const DeviceMemory& memory) { return static_cast<float*>(memory.get()); }

  void fill_parameters(std::uint64_t seed) {
    constexpr std::int64_t at_once = 1 << 20;
    std::vector<float> values(static_cast<std::size_t>(std::min(at_once, adam.padded())));
    const DeviceMemory staged = backend.allocate(values.size() * sizeof(float));
    for (std::int64_t begin = 0; begin < adam.padded(); begin += at_once) {
      const std::int64_t count = std::min(at_once, adam.padded() - begin);
      layout.initial_values(seed, begin, {values.data(), static_cast<std::size_t>(count)});
      backend.upload(staged.get(), values.data(), float_bytes(count));
      std::byte* const place_of_them = static_cast<std::byte*>(parameters.get()) +
                                       static_cast<std::size_t>(begin) * element_bytes(backend.element());
      backend.run(Cast{.count = count, .from = staged.get(), .to = place_of_them});
    }
    backend.synchronize();
  }

  const Program& taken(const ProgramSource& source) {
    const Program* program = nullptr;
    (void)recorder.timed(Activity::data_wait, [&] { program = &source(); });
    return *program;
  }

  /// Rows whose losses this device knows, of its schedule.
  [[nodiscard]] std::int64_t rows_with_loss(const Program& program, HdpRank rank) const {
    const Pipeline& pipeline = program.pipeline();
    const PassKind forward = pipeline.schedule().kinds().front();
    std::int64_t rows = 0;
    for (const MicroBatchId id : program.plan().schedule[rank.index()]) {
      const StagePass head = pipeline.pass(pipeline.id_of(id, pipeline.chunks() - 1, forward));
      if (head.stage == stage.index) rows += rows_of(program.plan().micro_batches[id.index()], rank);
    }
    return rows;
  }

  /// Returns the sum of the losses.
  double run_passes(const Program& program, const TokenSource& tokens, std::int64_t targets) {
    (void)recorder.timed(Activity::overhead,
                         [&] { backend.fill_bytes(floats(gradients), 0, float_bytes(adam.padded())); });
    const Interpreter::Batch batch{tokens, targets > 0 ? 1 / static_cast<float>(targets) : 0};
    const HdpRank rank(static_cast<std::size_t>(place.rank()));
    const Pipeline& pipeline = program.pipeline();
    messages.begin_step(program, rank, shard);
    losses.begin(rows_with_loss(program, rank));
    for (const PassId pass : pipeline.orders()[pipeline.worker(rank, stage.index).index()]) {
      interpreter.run(program, pass, rank, batch);
    }
    return losses.sum();
  }

  /// Sums gradients and words. A stage sums as soon as its own workers are done; then all stages wait for each other,
  /// so that no parameter changes before the loss is known.
  Word reduce(Word word) {
    (void)recorder.timed(Activity::group_wait,
                         [&] { word = summed(host_place.pool(), summed(host_place.devices(), word)); });
    if (sharers) {
      (void)recorder.timed(Activity::bubble, [&] { sharers->barrier(); });
    }
    (void)recorder.timed(Activity::grad_sync, [&] {
      add_up_norms();
      add_up_shared();
      adam.reduce(floats(gradients));
    });
    if (stage.stages == 1) return word;
    (void)recorder.timed(Activity::bubble, [&] {
      messages.end_step();
      word = summed(host_place.stages(), word);
    });
    return word;
  }

  void update() {
    (void)recorder.timed(Activity::optimizer, [&] { adam.update(parameters.get()); });
    (void)recorder.timed(Activity::grad_sync, [&] { adam.gather(parameters.get()); });
  }

  /// A tied table has a gradient as embedding on one stage, and one as head on another; two copies of the model have
  /// one each of every parameter.
  void add_up_shared() {
    if (!sharers) return;
    sharers->all_reduce(floats(gradients) + shared_gradient.begin, static_cast<std::size_t>(shared_gradient.count));
  }

  /// Every device has all norms, but only the gradients from its own rows.
  void add_up_norms() {
    if (shard.devices == 1) return;
    std::vector<Tensor> norms = {layout.final_norm()};
    for (const LayerTensors& layer : layout.layers()) {
      norms.push_back(layer.norm(DensePart::attention_norm));
      norms.push_back(layer.norm(DensePart::mlp_norm));
    }
    std::erase_if(norms, [](const Tensor& norm) { return norm.count == 0; });  // norms of other stages
    const std::size_t width = static_cast<std::size_t>(model.hidden);
    const DeviceMemory together = backend.allocate(norms.size() * width * sizeof(float));
    const auto here = [&](std::size_t i) { return floats(together) + i * width; };
    const auto there = [&](std::size_t i) { return floats(gradients) + norms[i].begin; };
    for (std::size_t i = 0; i < norms.size(); ++i) backend.copy(here(i), there(i), width * sizeof(float));
    place.devices().all_reduce(floats(together), norms.size() * width);
    for (std::size_t i = 0; i < norms.size(); ++i) backend.copy(there(i), here(i), width * sizeof(float));
    backend.synchronize();
  }

  /// On rank 0: a tensor of the whole model, in its order, from the `share` of every device.
  std::vector<float> collect(const float* share) {
    std::vector<float> own(static_cast<std::size_t>(adam.share()));
    backend.download(own.data(), share, float_bytes(adam.share()));
    if (host.rank() != 0) {
      const Send send{0, own.data(), float_bytes(adam.share())};
      host.wait(host.start({&send, 1}, {}));
      return {};
    }
    std::vector<float> whole(static_cast<std::size_t>(layout.whole_count()));
    const MeshSizes& sizes = place.sizes();
    for (int device = 0; device < host.size(); ++device) {
      const ParameterLayout theirs(model, {sizes.shard(device), sizes.tp}, stage_at(sizes.stage(device), chunks));
      const std::int64_t count = ShardedAdam::share_of(theirs, place.pool());
      if (device > 0) {
        own.resize(static_cast<std::size_t>(count));
        const Receive receive{device, own.data(), float_bytes(count)};
        host.wait(host.start({}, {&receive, 1}));
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
    for (int rank = 1; rank < host.size() && host.rank() == 0; ++rank) {
      sends.push_back({rank, whole.data(), float_bytes(layout.whole_count())});
    }
    if (host.rank() != 0) receives.push_back({0, whole.data(), float_bytes(layout.whole_count())});
    host.wait(host.start(sends, receives));
    return whole;
  }

  /// Rank 0 checks and tells all.
  void require_loadable(const std::filesystem::path& path) {
    std::array<char, 512> problem{};
    if (host.rank() == 0) {
      const std::string text = checkpoint_problem(path, model);
      std::copy_n(text.begin(), std::min(text.size(), problem.size() - 1), problem.begin());
    }
    std::vector<char> problems(problem.size() * static_cast<std::size_t>(host.size()));
    host.all_gather(problem.data(), problems.data(), problem.size());
    if (problems[0] != '\0') throw UnsupportedInput(problems.data());
  }

  Backend& backend;
  Transport& transport;  ///< Over all devices.
  Transport& host;       ///< Over the hosts of all devices.
  MeshPlace place;
  MeshPlace host_place;
  TensorShard shard;
  ChunkMap chunks;  ///< Of the pipeline.
  PipelineStage stage;
  Transformer model;
  ParameterLayout layout;  ///< Layout of this device's shard of its stage.
  ShardedAdam adam;
  std::optional<GroupTransport> sharers;  ///< This stage and one that has some of its parameters, too ...
  Tensor shared_gradient;                 ///< ... which have these gradients in common.
  DeviceMemory parameters;                ///< Element [adam.padded()]
  DeviceMemory gradients;                 ///< fp32 [adam.padded()]
  CopyThread copy_thread;
  HostCopies& copies;
  LayerKinds kinds;
  LayerMixing mixing;
  Dense dense;
  GroupCore core;
  InFlight in_flight;
  PassMessages messages;
  StepLosses losses;
  Recorder recorder;
  Interpreter interpreter;
};

LoweringOptions lowering_for(Element element, const Transformer& model, const Mesh& mesh, const Recipe& wanted,
                             const PipelineOptions& pipeline) {
  LoweringOptions options{.model = model,
                          .mesh = mesh,
                          .recipe = {.recompute = wanted.recompute,
                                     .separate_merge = false,
                                     .dkv_bytes_per_element = sizeof(float),
                                     .key_exchange = wanted.key_exchange,
                                     .a2a_ranks = wanted.a2a_ranks,
                                     .mixing_exchange = MixingExchange::states},
                          .pipeline = pipeline};
  options.model.element_bytes = static_cast<std::int64_t>(element_bytes(element));
  return options;
}

Executor::Executor(const JobDevice& device, const Transformer& model, const TrainingOptions& options) {
  const Transport& transport = device.transport;
  if (options.pp > 1 && is_gpu(device.backend)) {
    throw UnsupportedInput("pipelines are executed on CPUs alone: use pp 1 on GPUs");
  }
  const int devices = options.tp * options.pp;
  if (transport.size() % devices != 0) {
    throw UnsupportedInput(
        fmt::format("{} ranks are no whole number of HDP ranks of {} devices", transport.size(), devices));
  }
  require_executable(model, {.tp = options.tp, .pp = options.pp}, options.pipeline);
  parts_ = std::make_unique<Parts>(device, model, options);
}

Executor::~Executor() = default;

StepOutcome Executor::run_step(const Program& program, const TokenSource& tokens, bool stop) {
  return run_step([&]() -> const Program& { return program; }, tokens, stop);
}

StepOutcome Executor::run_step(const ProgramSource& source, const TokenSource& tokens, bool stop) {
  Parts& parts = *parts_;
  const MessageDriver progress(parts.backend, parts.transport);
  parts.recorder.begin_step(agreed_start(parts.host));
  const Program& program = parts.taken(source);
  require_executable(program.plan(), parts.model, tokens, parts.place.pool().size(), parts.stage.deal,
                     program.options().recipe.key_exchange);
  require_lowered_for(program, parts.model, parts.place.sizes(), parts.stage, parts.backend);
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
  parts.transport.progress();  // throws if an asynchronous operation has failed
  if (parts.shard.index > 0) return outcome;
  const std::vector<RankLog> logs = gather_logs(parts.host_place.workers(), own_log);
  if (!logs.empty()) outcome.timeline = assemble(program, logs);
  for (const RankLog& log : logs) outcome.processor.push_back(log.processor);
  return outcome;
}

void Executor::save(const std::filesystem::path& path, std::int64_t next_step) {
  Parts& parts = *parts_;
  std::optional<CheckpointWriter> writer;
  if (parts.host.rank() == 0) {
    writer.emplace(path, CheckpointTitle{fingerprint(shape_text(parts.model)), parts.layout.whole_count(),
                                         parts.adam.updates(), next_step});
  }
  for (const float* const share : parts.adam.state()) {
    const std::vector<float> whole = parts.collect(share);
    if (writer) writer->write(whole);
  }
  if (writer) writer->finish();
  parts.host.barrier();
}

std::int64_t Executor::load(const std::filesystem::path& path) {
  Parts& parts = *parts_;
  parts.require_loadable(path);
  CheckpointReader reader(path);
  parts.adam.load(reader, parts.parameters.get());
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
  const ShardedAdam& adam = parts_->adam;
  const DeviceMemory share = parts_->backend.allocate(float_bytes(adam.share()));
  parts_->backend.run(Cast{
      .count = adam.share(), .from = adam.own_share(parts_->parameters.get()), .to = share.get(), .to_fp32 = true});
  return parts_->collect_everywhere(Parts::floats(share));
}

}  // namespace hdpsim::kernels::exec
