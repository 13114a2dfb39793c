#include "sim/program/impl/gathered_chunks.h"

#include <utility>

#include "sim/model/mixing.h"
#include "sim/model/shares.h"
#include "sim/program/ring_launches.h"

namespace hdpsim {
namespace {

// What the operators of a step read and write for an element, in numbers of the model's type and of fp32. A step has
// all queries and the earlier half of its keys, or the later half of the queries and all of its keys, each in half of
// the steps; where it has a half, the whole tensor is copied (_partial_update).
struct OperatorTraffic {
  double elements = 0;
  double fp32 = 0;
  std::int64_t kernels = 0;

  [[nodiscard]] Bytes bytes(std::int64_t count, std::int64_t element_bytes) const {
    const double of_one = elements * static_cast<double>(element_bytes) + fp32 * static_cast<double>(fp32_bytes);
    return Bytes(count).scaled(of_one);
  }
};
constexpr double touched = 0.75;
constexpr double copied = 0.5 * 2;

/// By whether the layer is compiled. Eager _SDPAMerger: a cast, a difference, a sigmoid with its product, a difference;
/// small ones of the log-sum-exp. Compiled, each step is one kernel for outputs and one for gradients.
struct StepOperators {
  OperatorTraffic merge_step;
  OperatorTraffic sum_step;
};
constexpr StepOperators eager{{touched, touched * 9 + copied, 9}, {touched, touched * 2 + copied, 2}};
constexpr StepOperators compiled{{touched, 2, 1}, {touched, 2, 1}};
constexpr OperatorTraffic merge_ends{2, 2, 2};   // casts of the first output and of the result
constexpr OperatorTraffic sum_ends{2, 4, 3};     // zeros, the first sum, a cast
constexpr OperatorTraffic joined_sums{0, 2, 1};  // torch.cat of both gradients into a message
constexpr OperatorTraffic joined_keys{2, 0, 1};  // torch.cat of keys and values, in every step

class GatheredChunks {
 public:
  GatheredChunks(PassWriter& writer, Direction direction)
      : writer_(writer),
        attention_(ring_attention(writer.micro_batch(), writer.layer(), writer.tp(), writer.sharing(), direction)),
        others_(writer.sharing().ranks() - 1),
        keys_(kv_bytes(writer.layer(), writer.shared_tokens(), writer.tp())),
        waits_(writer.recipe().layers == LayerKernels::compiled),
        operators_(waits_ ? compiled : eager) {}

  void forward(std::optional<Index> projected) {
    const std::optional<Index> gathered = gather(projected);
    attend_own();
    attend_others(gathered);
    run(operators_.merge_step, queries(), others_);
    run(merge_ends, queries(), 1);
  }

  void backward(Index differentiated) {
    const std::optional<Index> gathered = gather(differentiated);
    const Index own = attend_own();
    const std::optional<Index> travelling = send_beside(own);
    attend_others(gathered);
    run(operators_.sum_step, queries() + key_elements(), others_);
    run(joined_sums, key_elements(), others_ + 1);
    run(sum_ends, queries() + key_elements(), 1);
    send_alone(travelling);
  }

 private:
  std::optional<Index> gather(std::optional<Index> needed) {
    run(joined_keys, key_elements(), others_);
    const SharingCollective keys{CollectiveKind::all_gather, keys_ * (others_ + 1), SharedTensor::keys};
    if (!waits_) return writer_.share_overlapped(keys, needed);
    writer_.share(keys, needed);
    return std::nullopt;
  }

  // A rank sends a message in each step. All but one are what the ring of a reduce-scatter moves.
  std::optional<Index> send_beside(Index own) {
    if (waits_) return std::nullopt;
    return writer_.share_overlapped(gradients(others_), own);
  }
  void send_alone(std::optional<Index> travelling) { writer_.share(gradients(waits_ ? others_ + 1 : 1), travelling); }

  // Of which a rank sends so many messages.
  [[nodiscard]] SharingCollective gradients(std::int64_t messages) const {
    const Bytes message = keys_ * writer_.recipe().dkv_bytes_per_element / writer_.layer().element_bytes;
    return {CollectiveKind::reduce_scatter, message * messages * (others_ + 1) / others_, SharedTensor::keys, true};
  }

  Index attend_own() {
    writer_.attend_local();
    return attend(writer_.attention(std::move(attention_.own), SpanLaunch::Part::own));
  }

  void attend_others(std::optional<Index> gathered) {
    const Index launch = writer_.attention(std::move(attention_.step), SpanLaunch::Part::step);
    for (std::int64_t other = 0; other < others_; ++other) {
      attend(launch);
      if (other == 0 && gathered) writer_.body().back().after(*gathered);
    }
  }

  Index attend(Index launch) { return writer_.add_ring(Opcode::attention, Stream::compute, launch, 0); }

  void run(const OperatorTraffic& traffic, std::int64_t elements, std::int64_t times) {
    const Bytes bytes = traffic.bytes(elements, writer_.layer().element_bytes) * times;
    writer_.add_ring(Opcode::merge, Stream::compute, writer_.memory_bound({bytes, traffic.kernels * times}), 0);
  }

  [[nodiscard]] std::int64_t queries() const {
    return writer_.shared_tokens() * (writer_.layer().heads / writer_.tp()) * value_dim(writer_.layer());
  }
  [[nodiscard]] std::int64_t key_elements() const { return keys_.count() / writer_.layer().element_bytes; }

  PassWriter& writer_;
  RingAttention attention_;
  std::int64_t others_;  // ranks
  Bytes keys_;           // and values of a rank
  bool waits_;
  const StepOperators& operators_;
};

}  // namespace

bool attends_by_chunks(PassWriter& writer) {
  const Transformer& layer = writer.layer();
  return writer.recipe().is_pytorch() && writer.sharing().ranks() > 1 && !layer.indexer &&
         attention_reach(layer) == 0 && !is_uneven(writer.micro_batch());
}

void forward_by_chunks(PassWriter& writer, std::optional<Index> projected) {
  GatheredChunks(writer, Direction::forward).forward(projected);
}

std::optional<Index> backward_by_chunks(PassWriter& writer, Index differentiated) {
  GatheredChunks(writer, Direction::backward).backward(differentiated);
  return std::nullopt;
}

}  // namespace hdpsim
