#pragma once

#include <vector>

#include "kernels/exec/parameter_tensors.h"
#include "kernels/transport/group_transport.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// How the devices of a job are arranged in the mesh: device t of stage s of HDP rank r is rank (r pp + s) tp + t of
/// the transport. A worker is all devices of a stage of a rank.
struct MeshSizes {
  int tp = 1;
  int pp = 1;
  [[nodiscard]] int shard(int device) const { return device % tp; }
  [[nodiscard]] int worker(int device) const { return device / tp; }
  [[nodiscard]] int stage(int device) const { return worker(device) % pp; }
  [[nodiscard]] int rank(int device) const { return worker(device) / pp; }
  [[nodiscard]] int device(int rank, int stage, int shard) const { return (rank * pp + stage) * tp + shard; }
};

/// One device's place in the mesh, and its groups.
class MeshPlace {
 public:
  /// The size of `everybody`, which must outlive this, must be a multiple of tp x pp. Messages are in the memory of
  /// `backend`, or in the host's if it is null.
  MeshPlace(Transport& everybody, const MeshSizes& sizes, Backend* backend = nullptr)
      : sizes_(sizes),
        device_(everybody.rank()),
        devices_(everybody, across(1, sizes.tp, sizes.device(rank(), stage(), 0)), backend),
        stages_(everybody, across(sizes.tp, sizes.pp, sizes.device(rank(), 0, shard())), backend),
        pool_group_(
            everybody,
            across(sizes.tp * sizes.pp, everybody.size() / (sizes.tp * sizes.pp), sizes.device(0, stage(), shard())),
            backend),
        pool_(sizes.tp * sizes.pp == 1 ? everybody : pool_group_),
        workers_(everybody, across(sizes.tp, everybody.size() / sizes.tp, shard()), backend) {}

  [[nodiscard]] int shard() const { return sizes_.shard(device_); }
  [[nodiscard]] int stage() const { return sizes_.stage(device_); }
  [[nodiscard]] int rank() const { return sizes_.rank(device_); }
  [[nodiscard]] const MeshSizes& sizes() const { return sizes_; }

  Transport& devices() { return devices_; }  ///< The tensor-parallel group: devices of this worker, by shard.
  Transport& stages() { return stages_; }    ///< The pipeline: devices with the same shard in this HDP rank, by stage.
  Transport& pool() {
    return pool_;
  }                                          ///< The data-parallel group: devices with the same shard of the same
                                             ///< stage, by HDP rank.
  Transport& workers() { return workers_; }  ///< Devices with the same shard, by worker.

 private:
  [[nodiscard]] static std::vector<int> across(int stride, int count, int first) {
    std::vector<int> members;
    members.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) members.push_back(first + i * stride);
    return members;
  }

  MeshSizes sizes_;
  int device_;
  GroupTransport devices_;
  GroupTransport stages_;
  GroupTransport pool_group_;
  Transport& pool_;
  GroupTransport workers_;
};

}  // namespace hdpsim::kernels::exec
