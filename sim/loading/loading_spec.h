#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/document/key.h"

namespace hdpsim {

enum class LoaderStyle {
  /// Every HDP rank has a loader that reads and prepares the whole batch of a step, because the rank's part of it is
  /// known only after the whole batch has been planned.
  spmd,
  /// Sources read and prepare every document once, one scheduler plans, and one client per rank fetches the rank's own
  /// part (ByteScale, arXiv 2502.21231, remote data loader).
  remote,
  /// Every source has loaders of its own, which prepare its samples; a planner chooses among them by their lengths;
  /// data constructors make the batches of the ranks (OVERLORD, arXiv 2504.09844).
  actors,
};

/// From one step on, until the next point, weights go straight to that point's.
struct WeightPoint {
  std::int64_t step = 0;
  double weight = 0;
};

/// A data set that loaders keep open. All have the lengths that the study's `data` states.
struct SourceSpec {
  std::string name;
  std::int64_t count = 1;                 ///< Sources like this one.
  double weight = 1;                      ///< Of each of them: its share of the samples is this over the sum of all.
  std::vector<WeightPoint> drift;         ///< In place of `weight`, in the order of the steps; may be empty.
  std::optional<Bytes> bytes_per_token;   ///< Empty: as of the loading; so the next but one.
  Duration sample;                        ///< To prepare one sample, besides what its tokens take.
  std::optional<double> tokens_per_s;     ///< Rate at which one process prepares.
  Bytes access;                           ///< Memory of the open files: what each process of a loader holds (spmd).
  std::int64_t actors = 1;                ///< Loaders at the beginning (actors).
  std::optional<std::int64_t> processes;  ///< Of each of these loaders.

  [[nodiscard]] double weight_at(std::int64_t step) const;
};

/// Loaders of a source follow what the mix of the steps asks of it.
struct AutoscaleSpec {
  std::int64_t window = 16;  ///< Steps over which the share of a source and the time of a step are averaged.
  std::int64_t ahead = 0;    ///< Steps of the mix to come that are known, and are the last of the window.
  double headroom = 1.2;     ///< Loaders for so many times the mean.
  Duration start;            ///< Until a new loader works.
  Duration reshard;          ///< For which a source prepares nothing, as its files are dealt out anew.
  std::int64_t most = 1024;  ///< Loaders of a source.
};

/// Loaders that die.
struct LoaderDeaths {
  struct Stated {
    std::int64_t step = 0;  ///< A loader dies as this step begins, ...
    std::string source;     ///< ... of the first of the sources with this name.
  };
  /// Mean time between failures of one loader; exponentially distributed. It may exceed a Duration.
  std::optional<double> mtbf_s;
  std::vector<Stated> stated;
  std::int64_t snapshot = 1;  ///< Steps from one snapshot of a loader to the next.
  Duration restart;           ///< Until a new loader begins to repeat what came after the snapshot.
  Duration promote;           ///< Until a shadow takes over: what the plan in flight takes once more.
  std::int64_t shadows = 0;   ///< Of each loader; each holds what the loader holds.
  std::uint64_t seed = 1;
};

/// `loading` of a study. Figures that are not stated cost no time and no memory.
struct LoadingSpec {
  LoaderStyle style = LoaderStyle::remote;
  Bytes bytes_per_token;               ///< As stored, and as held in host memory.
  std::optional<Bandwidth> storage;    ///< Total rate of all readers.
  std::optional<Bandwidth> network;    ///< Rate of a node for data: for reads of its loaders, and to its clients.
  std::optional<double> tokens_per_s;  ///< Rate at which one process prepares.
  /// Processes of each loader (spmd, actors), or of all sources together (remote).
  std::int64_t processes = 1;
  std::int64_t prefetch = 2;        ///< Batches loaded ahead; 0: a batch is loaded when its step is due.
  Duration planner;                 ///< Time to plan one step, ...
  Duration planner_sample;          ///< ... for each sample more, ...
  Duration planner_compare;         ///< ... and for each comparison as they are sorted: samples x log2(samples).
  bool plan_ahead = true;           ///< The planner works ahead too; otherwise every step waits for it.
  std::vector<SourceSpec> sources;  ///< Empty: one without memory and with the costs above.
  Bytes process_memory;             ///< Of a process, besides what it loads.
  bool each_device = false;         ///< Each device asks for its data; otherwise one for each HDP rank.
  bool whole_batch = true;          ///< A loader reads the whole batch; otherwise only what its client trains (spmd).
  std::optional<std::int64_t> constructors;  ///< Empty: one a node. 0: clients ask all loaders (actors).
  Duration connection;                       ///< Of a step, for each of the connections at one end (actors).
  std::optional<Bytes> node_room;  ///< For loading, on a node; the rest is on other hosts. Empty: any (actors).
  std::optional<AutoscaleSpec> autoscale;
  std::optional<LoaderDeaths> deaths;

  /// The share of the samples of each one of the sources of an entry: in the order of `sources`, where the shares times
  /// their counts sum to 1.
  [[nodiscard]] std::vector<double> shares_at(std::int64_t step) const;
};

/// The keys of `loading`.
[[nodiscard]] const std::vector<KeyText>& loading_keys();

/// Reads `{style: remote, bytes_per_token: 4 B, storage: 100 GB/s, network: 25 GB/s, tokens_per_s: 1M, processes: 64,
/// prefetch: 2, planner: 200 ms, plan_ahead: true}`; `style` and `bytes_per_token` are required. All problems are
/// reported.
[[nodiscard]] LoadingSpec read_loading(const Value& value, Diagnostics& diagnostics);

}  // namespace hdpsim
