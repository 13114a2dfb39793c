#include "kernels/ring/ring_attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "kernels/ring/message_driver.h"

namespace hdpsim::kernels {
namespace {

std::size_t fp32_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

const void* offset(const void* data, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}

}  // namespace

// A group seen from one of its ranks, for one pass.
class RingAttention::Ring {
 public:
  Ring(const RingGroup& group, const Backend& backend, const Transport& transport, const char* pass)
      : group_(group), element_bytes_(element_bytes(backend.element())), pass_(pass) {
    require_valid(group.heads, {});
    require_members(transport);
    const auto self = std::find(group.members.begin(), group.members.end(), transport.rank());
    position_ = static_cast<int>(self - group.members.begin());
    rows_ = documents().rows(position_);
  }

  [[nodiscard]] const AttentionHeads& heads() const { return group_.heads; }
  [[nodiscard]] int steps() const { return documents().ranks(); }
  [[nodiscard]] int next() const { return member(position_ + 1); }
  [[nodiscard]] int previous() const { return member(position_ + steps() - 1); }
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t query_width() const { return heads().heads * heads().dim; }
  [[nodiscard]] std::int64_t kv_width() const { return 2 * heads().kv_heads * heads().dim; }
  [[nodiscard]] std::int64_t kv_count(int step) const { return documents().rows(source(step)) * kv_width(); }
  [[nodiscard]] std::int64_t most_kv() const { return documents().most_rows() * kv_width(); }
  [[nodiscard]] std::size_t elements(std::int64_t count) const {
    return static_cast<std::size_t>(count) * element_bytes_;
  }
  [[nodiscard]] std::vector<AttentionBlock> blocks(int step) const {
    return documents().blocks(position_, source(step));
  }
  [[nodiscard]] Rows<const void> keys(const void* kv) const { return {kv, kv_width()}; }
  [[nodiscard]] Rows<const void> values(const void* kv) const {
    return {offset(kv, elements(kv_width() / 2)), kv_width()};
  }
  [[nodiscard]] std::string text(int step) const {
    return fmt::format("ring attention {}, step {} of {}, ring of ranks {}", pass_, step + 1, steps(),
                       fmt::join(group_.members, " "));
  }

 private:
  [[nodiscard]] const ShardedDocuments& documents() const { return *group_.documents; }
  [[nodiscard]] int source(int step) const { return (position_ + steps() - step) % steps(); }
  [[nodiscard]] int member(int position) const { return group_.members[static_cast<std::size_t>(position % steps())]; }
  void require_members(const Transport& transport) const;

  const RingGroup& group_;
  std::size_t element_bytes_;
  const char* pass_;
  int position_ = 0;
  std::int64_t rows_ = 0;
};

void RingAttention::Ring::require_members(const Transport& transport) const {
  const std::vector<int>& members = group_.members;
  if (group_.documents == nullptr) throw UnsupportedInput("ring: no documents");
  if (std::cmp_not_equal(members.size(), documents().ranks())) {
    throw UnsupportedInput(
        fmt::format("ring: {} members for documents sharded over {} ranks", members.size(), documents().ranks()));
  }
  const std::set<int> distinct(members.begin(), members.end());
  if (distinct.size() != members.size() || *distinct.begin() < 0 || *distinct.rbegin() >= transport.size() ||
      !distinct.contains(transport.rank())) {
    throw UnsupportedInput(fmt::format("ring: ranks {} are not a ring with rank {} among {} ranks",
                                       fmt::join(members, " "), transport.rank(), transport.size()));
  }
}

// The messages of one step. Where an error ends the step, they are still waited for: their buffers are about to go.
class RingAttention::Exchange {
 public:
  Exchange(Transport& transport, const Ring& ring, int step) : transport_(transport), ring_(ring), step_(step) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    if (!under_way_) return;
    try {
      transport_.wait(ticket_);
    } catch (const std::exception&) {  // The error that ended the step is the one to report.
    }
  }

  void send(const void* data, std::size_t bytes) { sends_.push_back({ring_.next(), data, bytes}); }
  void receive(void* data, std::size_t bytes) { receives_.push_back({ring_.previous(), data, bytes}); }

  void start() {
    if (sends_.empty() && receives_.empty()) return;
    ticket_ = transport_.start(sends_, receives_);
    under_way_ = true;
  }

  void wait() {
    if (!std::exchange(under_way_, false)) return;
    try {
      transport_.wait(ticket_);
    } catch (const DeviceError& error) {
      throw DeviceError(fmt::format("{}: {}", ring_.text(step_), error.what()));
    }
  }

 private:
  Transport& transport_;
  const Ring& ring_;
  int step_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  Ticket ticket_ = 0;
  bool under_way_ = false;
};

void* RingAttention::reserve(Buffer& buffer, std::size_t bytes) {
  if (bytes > buffer.bytes) {
    backend_.synchronize();  // The old memory may be in use.
    buffer = {};
    buffer.memory = backend_.allocate(bytes);
    buffer.bytes = bytes;
  }
  return buffer.memory.get();
}

float* RingAttention::reserve_fp32(Buffer& buffer, std::int64_t count) {
  return static_cast<float*>(reserve(buffer, fp32_bytes(count)));
}

// An LSE of no key at all, [count]. No pattern of equal bytes is -inf, so it is uploaded, once.
const float* RingAttention::minus_infinity(std::int64_t count) {
  const std::size_t before = minus_infinity_.bytes;
  float* const data = reserve_fp32(minus_infinity_, count);
  if (minus_infinity_.bytes != before) {
    const std::vector<float> values(static_cast<std::size_t>(count), -std::numeric_limits<float>::infinity());
    backend_.upload(data, values.data(), fp32_bytes(count));
  }
  return data;
}

void RingAttention::attend(const Ring& ring, int step, const RingForward& op, const void* kv, void* o,
                           bool accumulate) {
  const auto blocks = ring.blocks(step);
  if (blocks.empty()) return;
  backend_.run(AttentionForward{.heads = ring.heads(),
                                .blocks = blocks,
                                .q = {op.q, ring.query_width()},
                                .k = ring.keys(kv),
                                .v = ring.values(kv),
                                .o = {o, ring.query_width()},
                                .lse = op.lse,
                                .lse_stride = ring.rows(),
                                .accumulate = accumulate});
}

void RingAttention::forward(const RingGroup& group, const RingForward& op) {
  const Ring ring(group, backend_, transport_, "forward");
  const MessageDriver progress(backend_, transport_);
  // Several steps add up in fp32. The first need not where the element is fp32: all rows see keys in it.
  const bool rounds_at_the_end = backend_.element() != Element::fp32 && ring.steps() > 1;
  const std::int64_t o_count = ring.rows() * ring.query_width();
  void* o = op.o;
  if (rounds_at_the_end) {
    o = reserve_fp32(sum_, o_count);
    const std::int64_t lse_count = ring.rows() * ring.heads().heads;
    backend_.fill_bytes(o, 0, fp32_bytes(o_count));
    backend_.copy(op.lse, minus_infinity(lse_count), fp32_bytes(lse_count));
  }
  const void* kv = op.kv;
  for (int step = 0; step < ring.steps(); ++step) {
    Exchange exchange(transport_, ring, step);
    const void* const arriving = pass_on(ring, step, kv, exchange);
    exchange.start();
    attend(ring, step, op, kv, o, step > 0 || rounds_at_the_end);
    exchange.wait();
    kv = arriving;
  }
  if (rounds_at_the_end) backend_.run(Cast{.count = o_count, .from = o, .to = op.o});
}

// Keys and values go on to the next rank, unless this step is the last; returns where those of the next step arrive.
const void* RingAttention::pass_on(const Ring& ring, int step, const void* kv, Exchange& exchange) {
  if (step + 1 == ring.steps()) return nullptr;
  void* const arriving = reserve(kv_[step % 2], ring.elements(ring.most_kv()));
  exchange.send(kv, ring.elements(ring.kv_count(step)));
  exchange.receive(arriving, ring.elements(ring.kv_count(step + 1)));
  return arriving;
}

void RingAttention::attend_back(const Ring& ring, int step, const RingBackward& op, const void* kv, float* d_kv) {
  backend_.fill_bytes(d_kv, 0, fp32_bytes(ring.kv_count(step)));
  const auto blocks = ring.blocks(step);
  if (blocks.empty()) return;
  const std::int64_t width = ring.query_width();
  backend_.run(AttentionBackward{.heads = ring.heads(),
                                 .blocks = blocks,
                                 .q = {op.q, width},
                                 .k = ring.keys(kv),
                                 .v = ring.values(kv),
                                 .d_o = {op.d_o, width},
                                 .lse = op.lse,
                                 .delta = static_cast<const float*>(delta_.memory.get()),
                                 .lse_stride = ring.rows(),
                                 .d_q = {op.d_q, width},
                                 .d_k = {d_kv, ring.kv_width()},
                                 .d_v = {d_kv + ring.kv_width() / 2, ring.kv_width()},
                                 .deterministic = op.deterministic});
}

void RingAttention::backward(const RingGroup& group, const RingBackward& op) {
  const Ring ring(group, backend_, transport_, "backward");
  const MessageDriver progress(backend_, transport_);
  const std::int64_t width = ring.query_width();
  float* const delta = reserve_fp32(delta_, ring.rows() * ring.heads().heads);
  backend_.run(AttentionDelta{
      .heads = ring.heads(), .rows = ring.rows(), .o = {op.o, width}, .d_o = {op.d_o, width}, .delta = delta});
  backend_.fill_bytes(op.d_q, 0, fp32_bytes(ring.rows() * width));

  const void* kv = op.kv;
  float* d_kv = op.d_kv;  // of the step; this rank's own stays here, the others' travel on
  for (int step = 0; step < ring.steps(); ++step) {
    Exchange exchange(transport_, ring, step);
    const void* const arriving = pass_on(ring, step, kv, exchange);
    // What the ranks before this one have found for the keys of this step. The first of them was their owner's
    // neighbour.
    const bool sum_arrives = step >= 2;
    if (sum_arrives) pass_on_gradient(ring, step, d_kv, exchange);
    exchange.start();
    if (step > 0) d_kv = reserve_fp32(d_kv_[step % 2], ring.most_kv());
    attend_back(ring, step, op, kv, d_kv);
    exchange.wait();
    if (sum_arrives) add_arrived(ring, step, d_kv);
    kv = arriving;
  }
  if (ring.steps() == 1) return;
  Exchange last(transport_, ring, ring.steps() - 1);
  pass_on_gradient(ring, ring.steps(), d_kv, last);
  last.start();
  last.wait();
  add_arrived(ring, 0, op.d_kv);
}

// The gradient of the step before goes on to the next rank; that of this step arrives. One step after the last is the
// first: the gradient comes home.
void RingAttention::pass_on_gradient(const Ring& ring, int step, const float* d_kv, Exchange& exchange) {
  float* const arriving = reserve_fp32(d_kv_[2], ring.most_kv());
  exchange.send(d_kv, fp32_bytes(ring.kv_count(step - 1)));
  exchange.receive(arriving, fp32_bytes(ring.kv_count(step)));
}

void RingAttention::add_arrived(const Ring& ring, int step, float* d_kv) {
  const void* const arrived = d_kv_[2].memory.get();
  backend_.run(Add{.count = ring.kv_count(step), .a = d_kv, .b = arrived, .y = d_kv, .fp32 = true});
}

}  // namespace hdpsim::kernels
