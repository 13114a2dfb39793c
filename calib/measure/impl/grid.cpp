#include "calib/measure/impl/grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "calib/measure/impl/workloads.h"
#include "calib/measure/workload.h"
#include "sim/model/layers.h"
#include "sim/model/work.h"

namespace hdpsim::calib {
namespace {

void add_products(std::vector<Candidate>& candidates, int level, const LinearPart& part) {
  for (const Gemm& gemm : part.gemms) candidates.emplace_back(gemm, level);
}

/// The products of a layer of each kind without those of experts, which depend on the router, and of the output head;
/// those without tensor parallelism and with few tokens come first.
void add_model(std::vector<Candidate>& candidates, const Transformer& model) {
  const std::vector<Transformer> kinds = of_each_kind(model);
  for (const std::int64_t tp : {1, 2, 4, 8}) {
    for (const std::int64_t tokens : {512, 1024, 2048, 4096, 8192, 16'384}) {
      const bool common = tokens == 1024 || tokens == 4096 || tokens == 16'384;
      const int level = (tp == 1 ? 0 : 1) + (common ? 0 : 1);
      for (const Direction direction : {Direction::forward, Direction::backward}) {
        for (const Transformer& kind : kinds) {
          add_products(candidates, level, before_attention(kind, tokens, tp, direction));
          add_products(candidates, level, after_attention(kind, tokens, tp, direction));
        }
        add_products(candidates, level + 1, output_head(model, tokens, tp, direction));
      }
    }
  }
}

void add_cube(std::vector<Candidate>& candidates, int level, const std::vector<std::int64_t>& sizes) {
  for (const std::int64_t m : sizes) {
    for (const std::int64_t n : sizes) {
      for (const std::int64_t k : sizes) candidates.emplace_back(Gemm{m, n, k}, level);
    }
  }
}

}  // namespace

std::vector<Candidate> gemm_grid(const std::optional<Transformer>& model) {
  std::vector<Candidate> candidates;
  if (model) add_model(candidates, *model);
  const int after_model = model ? 1 : 0;
  add_cube(candidates, after_model, {128, 512, 2048, 8192});
  add_cube(candidates, after_model + 1, {256, 1024, 4096});
  // Sizes between the powers of two that are multiples of no tile: partly filled waves, ragged edges.
  add_cube(candidates, after_model + 1, {192, 1536, 5120});
  add_cube(candidates, after_model + 2, {300, 1000, 3000});
  add_cube(candidates, after_model + 3, {128, 256, 512, 1024, 2048, 4096});
  return candidates;
}

std::vector<Candidate> memory_bound_grid(const DeviceSpeed& speed, kernels::Element element) {
  constexpr std::int64_t smallest = std::int64_t{128} << 10;
  const std::int64_t largest = std::max<std::int64_t>(16 * speed.cache_bytes, std::int64_t{256} << 20);
  std::vector<Candidate> candidates;
  for (const std::string& kernel : memory_bound_kernels()) {
    int step = 0;
    for (std::int64_t bytes = smallest; bytes <= largest; bytes *= 2, ++step) {
      MemoryBoundSubject subject{kernel, bytes};
      subject.bytes = moved_bytes(subject, element);
      candidates.emplace_back(subject, step % 4 == 0 ? 0 : step % 2 == 0 ? 1 : 2);
    }
  }
  return candidates;
}

std::vector<Candidate> copy_grid(const std::vector<CopyKind>& kinds) {
  std::vector<Candidate> candidates;
  for (const CopyKind kind : kinds) {
    for (int power = 12; power <= 28; ++power) {
      candidates.emplace_back(CopySubject{kind, std::int64_t{1} << power}, power % 4 == 0 ? 0 : power % 2 == 0 ? 1 : 2);
    }
  }
  return candidates;
}

std::vector<Candidate> message_grid(const std::vector<std::int64_t>& rank_counts) {
  constexpr std::array<MessageKind, 5> kinds = {MessageKind::send_recv, MessageKind::all_reduce,
                                                MessageKind::all_gather, MessageKind::reduce_scatter,
                                                MessageKind::all_to_all};
  std::vector<Candidate> candidates;
  for (const std::int64_t ranks : rank_counts) {
    for (const MessageKind kind : kinds) {
      // Whole fp32 numbers on every rank, to which nccl-tests rounds its sizes too.
      const std::int64_t unit = ranks * 4;
      const auto add = [&](double bytes, int level) {
        candidates.emplace_back(MessageSubject{kind, ranks, static_cast<std::int64_t>(bytes) / unit * unit}, level);
      };
      for (int power = 10; power <= 26; ++power) {
        add(std::exp2(power), power % 4 == 2 ? 0 : power % 2 == 0 ? 1 : 2);
        // At the end of a cache, a message of twice the size may take six times as long.
        if (power >= 20 && power <= 24) add(std::exp2(power + 0.5), 2);
      }
    }
  }
  return candidates;
}

}  // namespace hdpsim::calib
