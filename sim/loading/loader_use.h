#pragma once

#include <cstdint>
#include <string>

#include "sim/base/units.h"

namespace hdpsim {

/// The ranks and nodes that load, and the amount of data of one step.
struct LoadingJob {
  std::int64_t ranks = 1;  ///< HDP ranks.
  std::int64_t devices_per_rank = 1;
  std::int64_t nodes = 1;
  std::int64_t tokens = 0;         ///< Tokens of the step's batch.
  std::int64_t largest_share = 0;  ///< Tokens of the rank with the most.
  std::int64_t samples = 0;        ///< Sequences of the step's batch.
  std::int64_t step = 0;           ///< Its number, on which the mix of the sources depends.
  [[nodiscard]] std::int64_t ranks_per_node() const { return (ranks - 1) / nodes + 1; }
  [[nodiscard]] std::int64_t devices() const { return ranks * devices_per_rank; }
};

/// The host memory of the loaders of a job.
struct LoaderMemory {
  Bytes all;
  Bytes node;       ///< On the node of the job that holds the most.
  Bytes elsewhere;  ///< On other hosts, for want of room on the nodes.
  friend bool operator==(const LoaderMemory&, const LoaderMemory&) = default;
};

/// What loads during a step.
struct LoaderUse {
  std::int64_t loaders = 0;  ///< Loaders, those that still start among them, without shadows.
  LoaderMemory memory;
  std::int64_t connections = 0;  ///< Between loaders, data constructors and clients.
  std::string waited_for;        ///< The source or the stage that the step waits for; empty if it does not wait.
  friend bool operator==(const LoaderUse&, const LoaderUse&) = default;
};

/// Something that happens to the loaders of a source.
struct LoaderEvent {
  enum class Kind {
    added,
    removed,
    lost,      ///< One died and a new one repeats what it did since its snapshot.
    promoted,  ///< One died and a shadow took over.
  };
  Kind kind = Kind::added;
  std::int64_t step = 0;     ///< The step that runs then, or for whose data the source works.
  double at_s = 0;           ///< Since the run began, in steps and waits.
  std::string source;        ///< With its number from 1 on, where several have the name: "web 17".
  std::int64_t loaders = 0;  ///< Loaders of the source after it.
  Duration pause;            ///< For which the source prepares nothing.
  friend bool operator==(const LoaderEvent&, const LoaderEvent&) = default;
};

}  // namespace hdpsim
