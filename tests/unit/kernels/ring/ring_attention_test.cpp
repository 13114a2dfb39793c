#include "tests/support/ring_attention.h"

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/transport/in_process.h"
#include "tests/support/catch.h"
#include "tests/support/reference_backend.h"
#include "tests/support/ring_laws.h"

namespace hdpsim::kernels {
namespace {

using Catch::Matchers::Contains;

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// What all members of the ring find wrong.
std::string check(const RingCase& ring_case) {
  const WholeAttention whole(ring_case);
  LawReport report;
  run_ranks(static_cast<int>(ring_case.members.size()), [&](Transport& transport) {
    ReferenceBackend backend(ring_case.element);
    RingRank(backend, transport).check(ring_case, whole, report);
  });
  return report.text();
}

TEST_CASE("a ring computes what one device computes, forward and backward, head and tail chunk", "[ring]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const Sharding sharding : {Sharding::zigzag, Sharding::contiguous}) {
      // Longer and shorter than two chunks a rank, odd, one row, none.
      REQUIRE(check({.lengths = {37, 5, 0, 1, 16, 3}, .members = first_ranks(ranks), .sharding = sharding}) ==
              no_faults);
    }
  }
}

TEST_CASE("heads that share keys and values", "[ring]") {
  for (const std::int64_t kv_heads : {1, 2, 8}) {
    const AttentionHeads heads{.heads = 8, .kv_heads = kv_heads, .dim = 64, .scale = 0.2F};
    REQUIRE(check({.lengths = {29, 6}, .members = first_ranks(3), .heads = heads}) == no_faults);
  }
  const AttentionHeads wide{.heads = 2, .kv_heads = 1, .dim = 128, .scale = 0.09F};
  REQUIRE(check({.lengths = {29, 6}, .members = first_ranks(3), .heads = wide}) == no_faults);
}

TEST_CASE("random documents on random rings", "[ring][property]") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    std::mt19937 random(seed);
    RingCase ring_case{.lengths = {}, .members = first_ranks(1 + static_cast<int>(random() % 6)), .seed = seed};
    ring_case.lengths.resize(1 + random() % 4);
    for (std::int64_t& length : ring_case.lengths) length = static_cast<std::int64_t>(random() % 30);
    REQUIRE(check(ring_case) == no_faults);
  }
}

TEST_CASE("a ring over nothing does nothing", "[ring]") {
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{}, {0}, {0, 0}}) {
    REQUIRE(check({.lengths = lengths, .members = first_ranks(3)}) == no_faults);
  }
}

TEST_CASE("bf16: the output is rounded once, however many steps it took", "[ring]") {
  for (const int ranks : {1, 2, 8}) {
    REQUIRE(check({.lengths = {40, 9}, .members = first_ranks(ranks), .element = Element::bf16}) == no_faults);
  }
}

TEST_CASE("rings of any size and order run side by side and one after another, on the same ranks", "[ring]") {
  std::vector<std::vector<RingCase>> rounds(4);
  rounds[0] = {{.lengths = {31}, .members = {0, 1, 2}}, {.lengths = {8, 9}, .members = {5, 3}}};
  rounds[1] = {{.lengths = {3}, .members = {4}}, {.lengths = {50, 2}, .members = {2, 5, 1, 0, 3}}};
  rounds[2] = {{.lengths = {17}, .members = {5, 4, 3, 2, 1, 0}}};
  rounds[3] = {
      {.lengths = {10}, .members = {1, 0}}, {.lengths = {11}, .members = {3, 2}}, {.lengths = {}, .members = {5}}};
  std::vector<std::vector<WholeAttention>> wholes;
  wholes.reserve(rounds.size());
  for (const auto& round : rounds) wholes.emplace_back(round.begin(), round.end());

  LawReport report;
  run_ranks(6, [&](Transport& transport) {
    ReferenceBackend backend;
    RingRank rank(backend, transport);
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      for (std::size_t ring = 0; ring < rounds[round].size(); ++ring) {
        rank.check(rounds[round][ring], wholes[round][ring], report);
      }
    }
  });
  REQUIRE(report.text() == no_faults);
}

TEST_CASE("a ring of real kernels computes what one device computes", "[ring]") {
  const RingCase ring_case{.lengths = {300, 5, 129}, .members = first_ranks(3), .tolerance = 1e-5};
  const WholeAttention whole(ring_case);
  LawReport report;
  run_ranks(3, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    RingRank(*backend, transport).check(ring_case, whole, report);
  });
  REQUIRE(report.text() == no_faults);
}

// Writes down what a rank does, in order.
class RecordingBackend final : public ReferenceBackend {
 public:
  explicit RecordingBackend(std::vector<std::string>& log) : log_(log) {}
  using ReferenceBackend::run;
  void run(const AttentionForward& op) override {
    log_.emplace_back("attention");
    ReferenceBackend::run(op);
  }
  void run(const AttentionBackward& op) override {
    log_.emplace_back("attention");
    ReferenceBackend::run(op);
  }

 private:
  std::vector<std::string>& log_;
};

class RecordingTransport final : public Transport {
 public:
  RecordingTransport(Transport& transport, std::vector<std::string>& log) : transport_(transport), log_(log) {}

  [[nodiscard]] int rank() const override { return transport_.rank(); }
  [[nodiscard]] int size() const override { return transport_.size(); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    std::string text = "start";
    for (const Send& send : sends) text += fmt::format(" {}>{}", send.bytes, send.peer);
    for (const Receive& receive : receives) text += fmt::format(" {}<{}", receive.bytes, receive.peer);
    log_.push_back(text);
    return transport_.start(sends, receives);
  }
  void wait(Ticket ticket) override {
    log_.emplace_back("wait");
    transport_.wait(ticket);
  }
  void progress() override {
    log_.emplace_back("progress");
    transport_.progress();
  }
  void all_reduce(float* data, std::size_t count) override { transport_.all_reduce(data, count); }
  void all_gather(const void* mine, void* all, std::size_t bytes) override { transport_.all_gather(mine, all, bytes); }
  void reduce_scatter(const float* all, float* mine, std::size_t count) override {
    transport_.reduce_scatter(all, mine, count);
  }
  void all_to_all(const void* from, void* to, std::size_t bytes) override { transport_.all_to_all(from, to, bytes); }
  void barrier() override { transport_.barrier(); }

 private:
  Transport& transport_;
  std::vector<std::string>& log_;
};

TEST_CASE("messages start before the attention of their step and move while it computes", "[ring]") {
  // 24 rows in 6 chunks: each of 3 ranks holds 8 rows, whose keys and values are 2 x 2 x 64 fp32 of 4 B.
  const std::size_t bytes = std::size_t{8} * 2 * 2 * 64 * 4;
  const RingCase ring_case{.lengths = {24}, .members = first_ranks(3)};
  const WholeAttention whole(ring_case);
  LawReport report;
  std::vector<std::string> log;
  run_ranks(3, [&](Transport& transport) {
    std::vector<std::string> other_log;
    std::vector<std::string>& own_log = transport.rank() == 1 ? log : other_log;
    RecordingBackend backend(own_log);
    RecordingTransport recording(transport, own_log);
    RingRank(backend, recording).check(ring_case, whole, report);
    if (backend.has_progress_hook()) report.fail("the backend still drives a transport that may end");
  });
  REQUIRE(report.text() == no_faults);
  const std::string message = fmt::format("start {0}>2 {0}<0", bytes);  // of keys and values, or of their gradients
  const std::string both = fmt::format("start {0}>2 {0}>2 {0}<0 {0}<0", bytes);
  const std::string computed = " attention progress wait ";
  const std::string under_way = message + computed;
  const std::string forward = under_way + under_way + "attention progress ";
  // The gradients of a step travel under the next one, the own ones with the last keys; the sum goes home alone.
  const std::string backward = under_way + both + computed + under_way + message + " wait";
  REQUIRE(fmt::format("{}", fmt::join(log, " ")) == forward + backward);
}

TEST_CASE("a rank that fails in the middle of a ring ends the others, who name the step", "[ring]") {
  class FailingBackend final : public ReferenceBackend {
   public:
    using ReferenceBackend::run;
    void run(const AttentionForward& op) override {
      if (++launches_ == 2) throw std::runtime_error("rank 2 has had enough");
      ReferenceBackend::run(op);
    }

   private:
    int launches_ = 0;
  };
  const RingCase ring_case{.lengths = {64}, .members = first_ranks(4)};
  const WholeAttention whole(ring_case);
  std::vector<std::string> errors(4);
  LawReport report;
  const auto work = [&](Transport& transport) {
    FailingBackend failing;
    ReferenceBackend sound;
    Backend& backend = transport.rank() == 2 ? static_cast<Backend&>(failing) : sound;
    try {
      RingRank(backend, transport).check(ring_case, whole, report);
    } catch (const DeviceError& error) {
      errors[static_cast<std::size_t>(transport.rank())] = error.what();
      throw;
    }
  };
  REQUIRE_THROWS_WITH(run_ranks(4, work), "rank 2 has had enough");
  // Rank 2 lets the messages of its step end before it leaves, so the others find out in the step after. Of the
  // neighbours that each of them then misses, either may be named first; the state tells of all.
  for (const std::size_t rank : {0, 1, 3}) {
    REQUIRE_THAT(errors[rank], Contains("ring attention ") && Contains(", ring of ranks 0 1 2 3: ") &&
                                   Contains(fmt::format("rank {} waits for ", rank)) && Contains("rank 2 has left"));
  }
  REQUIRE_THAT(errors[3], Contains("ring attention forward, exchange 3 of 3"));
}

TEST_CASE("groups that are no ring with this rank are refused", "[ring]") {
  auto transports = make_in_process_transports(3);
  ReferenceBackend backend;
  RingAttention ring(backend, *transports[0]);
  const ShardedDocuments pair({8}, 2);
  const auto forward = [&](const std::vector<int>& members, const ShardedDocuments* documents) {
    ring.forward(
        {.heads = {.heads = 1, .kv_heads = 1, .dim = 64, .scale = 1}, .documents = documents, .members = members}, {});
  };
  REQUIRE_THROWS_WITH(forward({0, 1}, nullptr), "ring: no documents");
  REQUIRE_THROWS_WITH(forward({0, 1, 2}, &pair), "ring: 3 members for documents sharded over 2 ranks");
  for (const std::vector<int>& members : {std::vector<int>{1, 2}, {0, 3}, {0, 0}, {-1, 0}}) {
    REQUIRE_THROWS_AS(forward(members, &pair), UnsupportedInput);
  }
}

}  // namespace
}  // namespace hdpsim::kernels
