#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ring/ring_instructions.h"
#include "kernels/ring/scratch.h"
#include "kernels/ring/sharding.h"
#include "kernels/spec/backend.h"
#include "kernels/spec/linear_attention.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Tensors of a rank's rows, in the host's memory: q, k, v element [rows, stride] with the heads of each side by side;
/// o element [rows, heads, value_dim], written; chunk_states as LinearAttentionForward has them.
struct MixingForward {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  std::int64_t stride = 0;
  void* o = nullptr;
  float* chunk_states = nullptr;
};

/// Gradients are fp32 [rows, stride], and written.
struct MixingBackward {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  std::int64_t stride = 0;
  const void* d_o = nullptr;
  const float* chunk_states = nullptr;
  float* d_q = nullptr;
  float* d_k = nullptr;
  float* d_v = nullptr;
};

/// Documents that one rank holds alone, whose rows begin at `first_row` of the rank's.
[[nodiscard]] std::vector<Document> whole_documents(const ShardedDocuments& documents, std::int64_t first_row);

/// Chunks of linear attention on the rank at `position`, as LinearAttentionForward::chunk_states counts them.
[[nodiscard]] std::int64_t mixing_chunks(const ShardedDocuments& documents, int position);

/// Linear attention of documents that are cut over a group of ranks in a zigzag, with one decay a head: what one device
/// would compute on the whole documents. Every rank computes the states at the ends of its parts as if they began
/// documents; all ranks get all states (LASP-2, Sun et al. 2025); and every rank computes its parts from the states
/// before them. Backward does the same with the gradients of states, from the last part to the first. A rank alone has
/// no exchange, and computes once.
///
/// A rank sends at most two states a document and head, fp32, to every other one. The element is fp32, in memory of the
/// host. Memory of the backend, kept between calls: the states of all ranks, and heads x rows fp32.
class SharedMixing {
 public:
  /// Both must outlive this.
  SharedMixing(Backend& backend, Transport& transport);
  SharedMixing(const SharedMixing&) = delete;
  SharedMixing& operator=(const SharedMixing&) = delete;
  /// Waits for messages that an error has left under way: their buffers are about to go.
  ~SharedMixing();

  /// From now on these documents, cut over the ranks of `place`; `alone` are rows behind them, of documents that this
  /// rank holds alone. `log_decays`: by head. O(documents x ranks).
  void join(const RingPlace& place, std::span<const Document> alone, const LinearHeads& heads,
            std::vector<float> log_decays);
  /// Whether several ranks share the documents, so that the calls below come in pairs with an exchange between them.
  [[nodiscard]] bool is_shared() const { return place_.documents->ranks() > 1; }

  void forward(const MixingForward& op);
  void finish(const MixingForward& op);
  void backward(const MixingBackward& op);
  void finish(const MixingBackward& op);
  /// What the call before has computed reaches every rank. DeviceError if a peer fails: of which ring, and whom the
  /// transport waits for.
  void exchange();
  void wait();

 private:
  /// A part of a document that other ranks need the state of, or its gradient.
  struct Part {
    std::size_t document = 0;
    int chunk = 0;  ///< Of the 2N of its document.
    std::int64_t rows = 0;
    std::size_t state = 0;  ///< Where its states lie among those of all ranks, in states of a head.
  };
  [[nodiscard]] std::size_t state_size() const { return static_cast<std::size_t>(heads_.key_dim * heads_.value_dim); }
  [[nodiscard]] std::size_t heads() const { return static_cast<std::size_t>(heads_.heads); }
  /// fp32 numbers of the states of all heads of so many parts.
  [[nodiscard]] std::size_t numbers(std::size_t parts) const { return parts * heads() * state_size(); }
  void take_parts(int position);
  void fill_decays();
  [[nodiscard]] LinearAttentionForward launch(const MixingForward& op) const;
  [[nodiscard]] LinearAttentionBackward launch(const MixingBackward& op) const;
  /// What a launch leaves of its documents: the states at their ends, or the gradients of those before them.
  float* reserve_ends();
  /// By document of a launch, the states before the rank's parts or, in backward, the gradients of those at their ends,
  /// from those of all parts. O(parts of the documents).
  const float* joined_states();
  void add_state(float* sum, const Part& part) const;

  Backend& backend_;
  Transport& transport_;
  RingPlace place_;
  LinearHeads heads_;
  std::vector<float> log_decays_;
  std::vector<Document> documents_;       ///< Of a launch: the rank's parts that have rows, then what it holds alone.
  std::vector<Part> own_;                 ///< The former.
  std::vector<std::vector<Part>> parts_;  ///< Of every rank of the ring.
  std::size_t part_count_ = 0;            ///< Of all ranks.
  std::int64_t rows_ = 0;
  bool is_backward_ = false;
  bool under_way_ = false;
  Ticket ticket_ = 0;
  Scratch decays_;    ///< fp32 [heads, rows]
  Scratch d_decays_;  ///< The same, which nobody reads.
  Scratch ends_;      ///< fp32 [documents, heads, key_dim, value_dim], as are the next.
  Scratch starts_;
  Scratch all_;    ///< Of the parts of all ranks.
  Scratch zeros_;  ///< [rows, heads, value_dim]
};

}  // namespace hdpsim::kernels
