#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/impl/queues.h"

namespace hdpsim::kernels::cuda {

/// Pinned host memory cut into slabs of one size. Knows which slabs are free and when the last copy from each ends; the
/// memory itself belongs to the caller.
class SlabPool {
 public:
  /// `count` slabs of `bytes` each, one after another from `memory` on.
  SlabPool(void* memory, std::size_t count, std::size_t bytes);

  [[nodiscard]] std::size_t slab_bytes() const { return bytes_; }
  [[nodiscard]] std::size_t count() const { return emptied_.size(); }
  [[nodiscard]] std::size_t free() const { return free_.size(); }

  /// Takes a free slab; there must be one.
  [[nodiscard]] std::size_t take();
  void give_back(std::size_t slab);
  [[nodiscard]] void* memory(std::size_t slab) const;
  /// The last copy from the slab.
  [[nodiscard]] Event& emptied(std::size_t slab) { return emptied_[slab]; }

 private:
  std::byte* memory_;
  std::size_t bytes_;
  std::vector<std::size_t> free_;
  std::vector<Event> emptied_;
};

/// Which copies move the activations of a stack of layers to the host and back, and after what: the logic of
/// ActivationOffload (kernels/cuda/offload.h), which says how it is used.
///
/// Layer l lives in device slot l mod slots while it is computed. The last `slots` layers of a pass never leave the
/// device: backward begins with them. Order between the queues, by events alone:
///   compute writes a slot        after the copy from or to it has ended
///   out reads a slot             after compute has filled it
///   out writes a slab            after the copy from it has ended
///   in writes a slot             after compute has done with it. That is also after the copy that filled the slab:
///                                compute has waited for it before it filled the slot again
class OffloadStack {
 public:
  /// `slots`: device memory, slot_bytes each.
  OffloadStack(Queues& queues, SlabPool& slabs, const std::vector<void*>& slots, std::size_t slot_bytes);
  OffloadStack(const OffloadStack&) = delete;
  OffloadStack& operator=(const OffloadStack&) = delete;
  /// Gives all slabs back.
  ~OffloadStack();

  /// Reserves the slabs of the whole pass. UnsupportedInput if a layer does not fit a slot or there are no layers;
  /// DeviceError if the free slabs do not suffice. Remains of an earlier pass are dropped.
  void begin(int layers, std::size_t bytes_per_layer);

  [[nodiscard]] void* begin_forward();
  void end_forward();
  [[nodiscard]] void* begin_backward();
  void end_backward();

  /// Layers of the pass that go to the host.
  [[nodiscard]] int offloaded_layers() const;

 private:
  enum class Phase { idle, forward, backward };
  struct Slot {
    void* memory = nullptr;
    Event computed;  // kernels have finished with its contents
    Event copied;    // the last copy from or to it has ended
  };

  [[nodiscard]] Slot& slot_of(int layer);
  [[nodiscard]] const std::vector<std::size_t>& slabs_of(int layer) const;
  void copy_out(int layer);
  void copy_in(int layer);
  void drop();
  void require(bool in_order, const char* call) const;

  Queues& queues_;
  SlabPool& slabs_;
  std::vector<Slot> slots_;
  std::size_t slot_bytes_;
  int layers_ = 0;
  std::size_t bytes_ = 0;
  Phase phase_ = Phase::idle;
  bool open_ = false;  // between begin_ and end_ of a layer
  int layer_ = 0;      // forward: the next to begin, or the open one; backward: likewise, downwards
  std::vector<std::vector<std::size_t>> held_;  // slabs of each offloaded layer, in the order of its bytes
};

}  // namespace hdpsim::kernels::cuda
