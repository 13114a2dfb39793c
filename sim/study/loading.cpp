#include "sim/study/loading.h"

#include <algorithm>

#include "sim/base/duration_sum.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_processes = 1e7;
constexpr double most_prefetch = 1000;
constexpr Between<Bytes> bytes_per_token{1_B, Bytes(1'000'000'000)};

Duration transfer(Bytes bytes, const std::optional<Bandwidth>& rate) {
  return rate ? bytes / *rate : Duration{};
}

Duration preparation(const LoadingSpec& spec, std::int64_t tokens) {
  if (!spec.tokens_per_s) return {};
  return Duration::seconds(static_cast<double>(tokens) / (*spec.tokens_per_s * static_cast<double>(spec.processes)));
}

Duration planning_ahead(const LoadingSpec& spec) {
  return spec.plan_ahead ? spec.planner : Duration{};
}

std::vector<Duration> spmd_stages(const LoadingSpec& spec, const LoadingJob& job) {
  const Bytes batch = spec.bytes_per_token * job.tokens;
  const Duration read =
      std::max(transfer(batch * job.ranks, spec.storage), transfer(batch * job.ranks_per_node(), spec.network));
  return {read + preparation(spec, job.tokens) + planning_ahead(spec)};
}

std::vector<Duration> remote_stages(const LoadingSpec& spec, const LoadingJob& job) {
  const Bytes batch = spec.bytes_per_token * job.tokens;
  const Bytes of_a_node = Bytes((batch.count() - 1) / job.nodes + 1);
  const Duration read = std::max(transfer(batch, spec.storage), transfer(of_a_node, spec.network));
  const Bytes slices = spec.bytes_per_token * job.largest_share * job.ranks_per_node();
  return {read + preparation(spec, job.tokens), planning_ahead(spec), transfer(slices, spec.network)};
}

/// A run in which every step waits for its batch. DurationSum holds the time of runs of any length.
class LoadedRun {
 public:
  LoadedRun(const LoadingSpec& spec, const std::vector<LoadedStep>& steps)
      : spec_(spec), steps_(steps), free_(steps.front().stages.size()) {}

  /// How long the next step waits.
  Duration next() {
    const LoadedStep& step = steps_[begins_.size() % steps_.size()];
    DurationSum loaded = loading_begins();
    for (std::size_t stage = 0; stage < free_.size(); ++stage) {
      loaded = std::max(loaded, free_[stage]);
      loaded += step.stages[stage];
      free_[stage] = loaded;
    }
    const DurationSum due = ended_;
    DurationSum planned = due;
    if (!spec_.plan_ahead) planned += spec_.planner;
    const DurationSum begin = std::max(planned, loaded);
    begins_.push_back(begin);
    ended_ = begin;
    ended_ += step.time;
    return (begin - due).duration();
  }

 private:
  [[nodiscard]] DurationSum loading_begins() const {
    if (spec_.prefetch == 0) return ended_;
    const auto ahead = static_cast<std::size_t>(spec_.prefetch);
    return begins_.size() < ahead ? DurationSum{} : begins_[begins_.size() - ahead];
  }

  const LoadingSpec& spec_;
  const std::vector<LoadedStep>& steps_;
  std::vector<DurationSum> free_;    // by stage
  std::vector<DurationSum> begins_;  // of the steps so far
  DurationSum ended_;                // the last one
};

const KeyTable<LoadingSpec>& loading_table() {
  static const auto made = [] {
    KeyTable<LoadingSpec> loading("the loading");
    loading.word(
        "style", "style of loading", {{"spmd", LoaderStyle::spmd}, {"remote", LoaderStyle::remote}},
        at(&LoadingSpec::style),
        "`spmd`: each rank's loader reads and prepares the whole batch; `remote`: sources, a scheduler, clients",
        {.required = true});
    loading.quantity("bytes_per_token", bytes_per_token, at(&LoadingSpec::bytes_per_token),
                     "as stored, and as held in host memory", {.required = true});
    loading.quantity("storage", limits::bandwidth, at(&LoadingSpec::storage), "the rate of all readers together",
                     {.otherwise = "takes no time"});
    loading.quantity("network", limits::bandwidth, at(&LoadingSpec::network), "the rate of a node, for data",
                     {.otherwise = "takes no time"});
    loading.count("tokens_per_s", {1, 1e15}, at(&LoadingSpec::tokens_per_s), "what one process prepares in a second",
                  {.unit = "tokens", .otherwise = "takes no time"});
    loading.count("processes", {1, most_processes}, at(&LoadingSpec::processes),
                  "processes of each loader (`spmd`), or of all sources together (`remote`)", {.unit = "processes"});
    loading.count("prefetch", {0, most_prefetch}, at(&LoadingSpec::prefetch),
                  "batches loaded ahead; 0: a batch is loaded when its step is due", {.unit = "batches"});
    loading.quantity("planner", limits::time, at(&LoadingSpec::planner), "how long planning a step takes");
    loading.flag("plan_ahead", at(&LoadingSpec::plan_ahead),
                 "planning is hidden behind the steps as loading is; `false`: each step waits for its plan");
    return loading;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& loading_keys() {
  return loading_table().texts();
}

LoadingSpec read_loading(const Value& value, Diagnostics& diagnostics) {
  LoadingSpec spec;
  (void)loading_table().read(value, spec, diagnostics);
  return spec;
}

std::vector<Duration> loading_stages(const LoadingSpec& spec, const LoadingJob& job) {
  return spec.style == LoaderStyle::spmd ? spmd_stages(spec, job) : remote_stages(spec, job);
}

Bytes loading_memory(const LoadingSpec& spec, const LoadingJob& job) {
  const Bytes batch = spec.bytes_per_token * job.tokens * (spec.prefetch + 1);
  if (spec.style == LoaderStyle::spmd) return batch / job.devices_per_rank;
  const Bytes slice = spec.bytes_per_token * job.largest_share * (spec.prefetch + 1);
  return slice / job.devices_per_rank + batch / (job.ranks * job.devices_per_rank);
}

std::vector<Duration> data_waits(const LoadingSpec& spec, const std::vector<LoadedStep>& steps) {
  std::vector<Duration> waits;
  if (steps.empty()) return waits;
  LoadedRun run(spec, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) (void)run.next();
  waits.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) waits.push_back(run.next());
  return waits;
}

}  // namespace hdpsim
