#pragma once

#include <cstdint>
#include <optional>
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
};

/// `loading` of a study. Figures that are not stated cost no time.
struct LoadingSpec {
  LoaderStyle style = LoaderStyle::remote;
  Bytes bytes_per_token;               ///< As stored, and as held in host memory.
  std::optional<Bandwidth> storage;    ///< Total rate of all readers.
  std::optional<Bandwidth> network;    ///< Rate of a node for data: for reads of its loaders, and to its clients.
  std::optional<double> tokens_per_s;  ///< Rate at which one process prepares.
  std::int64_t processes = 1;          ///< Processes of each loader (spmd), or of all sources together (remote).
  std::int64_t prefetch = 2;           ///< Batches loaded ahead; 0: a batch is loaded when its step is due.
  Duration planner;                    ///< Time to plan one step.
  bool plan_ahead = true;              ///< The planner works ahead too; otherwise every step waits for it.
};

/// The keys of `loading`.
[[nodiscard]] const std::vector<KeyText>& loading_keys();

/// Reads `{style: remote, bytes_per_token: 4 B, storage: 100 GB/s, network: 25 GB/s, tokens_per_s: 1M, processes: 64,
/// prefetch: 2, planner: 200 ms, plan_ahead: true}`; `style` and `bytes_per_token` are required. All problems are
/// reported.
[[nodiscard]] LoadingSpec read_loading(const Value& value, Diagnostics& diagnostics);

/// The ranks and nodes that load, and the amount of data.
struct LoadingJob {
  std::int64_t ranks = 1;  ///< HDP ranks.
  std::int64_t devices_per_rank = 1;
  std::int64_t nodes = 1;
  std::int64_t tokens = 0;         ///< Tokens of the step's batch.
  std::int64_t largest_share = 0;  ///< Tokens of the rank with the most.
  [[nodiscard]] std::int64_t ranks_per_node() const { return (ranks - 1) / nodes + 1; }
};

/// The time of each stage of loading for one batch; a stage works on one batch at a time. SPMD loaders are one stage:
/// read, prepare, plan. Remote ones are three: sources, scheduler, clients.
[[nodiscard]] std::vector<Duration> loading_stages(const LoadingSpec& spec, const LoadingJob& job);

/// The host memory of one device's share of the loaded batches: those loaded ahead and the one in use.
[[nodiscard]] Bytes loading_memory(const LoadingSpec& spec, const LoadingJob& job);

/// One step as loading sees it.
struct LoadedStep {
  std::vector<Duration> stages;
  Duration time;  ///< Time of the step, once its data is there.
};

/// How long each step waits for its batch, and for its plan unless the planner works ahead. The loader begins batch k
/// when step k - prefetch has begun, or without prefetch when step k - 1 has ended; a batch passes the stages in order.
/// The steps are a window of a longer run: they are run once to fill the stages, then again.
/// O(steps x stages).
[[nodiscard]] std::vector<Duration> data_waits(const LoadingSpec& spec, const std::vector<LoadedStep>& steps);

}  // namespace hdpsim
