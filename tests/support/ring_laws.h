#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/reference/reference_attention.h"
#include "kernels/ring/sharding.h"
#include "tests/support/reference_backend.h"
#include "tests/support/ring_attention.h"
#include "tests/support/transport_laws.h"

namespace hdpsim::kernels {

struct RingCase {
  std::vector<std::int64_t> lengths;
  std::vector<int> members;
  Sharding sharding = Sharding::zigzag;
  AttentionHeads heads{.heads = 4, .kv_heads = 2, .dim = 64, .scale = 0.125F};
  unsigned seed = 1;
  Element element = Element::fp32;
  /// Relative to the largest expected value, for results that are rounded to fp32 a few times. Results rounded to
  /// another element may be off by half a unit of its last place more.
  double tolerance = 2e-6;

  [[nodiscard]] std::string text() const {
    return fmt::format("lengths {}, ring of ranks {}, {}, heads {} of {}, seed {}", fmt::join(lengths, " "),
                       fmt::join(members, " "), sharding == Sharding::zigzag ? "zigzag" : "contiguous", heads.heads,
                       heads.kv_heads, seed);
  }
};

/// The whole documents on one device, in fp64.
class WholeAttention {
 public:
  explicit WholeAttention(const RingCase& ring_case) {
    const AttentionHeads& heads = ring_case.heads;
    std::vector<AttentionBlock> blocks;
    for (const std::int64_t length : ring_case.lengths) {
      begins.push_back(rows);
      if (length > 0) {
        blocks.push_back(
            {.query_begin = rows, .queries = length, .key_begin = rows, .keys = length, .mask = Mask::causal});
      }
      rows += length;
    }
    std::mt19937 random(ring_case.seed);
    // Multiples of 1/64 between -1 and 1, which bf16 holds exactly.
    const auto draw = [&](std::int64_t width) {
      std::vector<double> values(static_cast<std::size_t>(rows * width));
      for (double& value : values) value = static_cast<double>(random() % 129) / 64.0 - 1.0;
      return values;
    };
    q = draw(heads.heads * heads.dim);
    k = draw(heads.kv_heads * heads.dim);
    v = draw(heads.kv_heads * heads.dim);
    d_o = draw(heads.heads * heads.dim);
    const reference::AttentionInput input{.heads = heads, .blocks = blocks, .q = q, .k = k, .v = v};
    result = reference::attention_forward(input);
    // Backward begins with the output as the device stores it.
    const ReferenceBackend rounding(ring_case.element);
    stored_o = result.o;
    for (double& value : stored_o) {
      std::vector<std::byte> place(element_bytes(ring_case.element));
      rounding.store(place.data(), 0, value);
      value = rounding.load(place.data(), 0);
    }
    const std::vector<double> delta = reference::attention_delta(heads, stored_o, d_o);
    gradients = reference::attention_backward(input, d_o, result.lse, delta);
  }

  std::int64_t rows = 0;
  std::vector<std::int64_t> begins;  ///< First row of each document.
  std::vector<double> q, k, v, d_o, stored_o;
  reference::AttentionResult result;
  reference::AttentionGradients gradients;
};

/// One rank of rings: the data of one thread or process of a test.
class RingRank {
 public:
  RingRank(Backend& backend, Transport& transport)
      : backend_(backend), transport_(transport), ring_(backend, transport), rounding_(backend.element()) {}

  /// Checks forward and backward of this rank's part against the whole, from the whole's inputs. A rank that is not a
  /// member does nothing.
  void check(const RingCase& ring_case, const WholeAttention& whole, LawReport& report) {
    const auto self = std::find(ring_case.members.begin(), ring_case.members.end(), transport_.rank());
    if (self == ring_case.members.end()) return;
    const ShardedDocuments documents(ring_case.lengths, static_cast<int>(ring_case.members.size()), ring_case.sharding);
    const auto position = static_cast<int>(self - ring_case.members.begin());
    const Share share{ring_case, whole, report, documents.pieces(position), documents.rows(position)};
    const RingGroup group{.heads = ring_case.heads, .documents = &documents, .members = ring_case.members};
    check_forward(share, group);
    check_backward(share, group);
  }

 private:
  struct Share {
    const RingCase& ring_case;
    const WholeAttention& whole;
    LawReport& report;
    std::vector<Piece> pieces;
    std::int64_t rows;

    [[nodiscard]] std::int64_t query_width() const { return ring_case.heads.heads * ring_case.heads.dim; }
    [[nodiscard]] std::int64_t key_width() const { return ring_case.heads.kv_heads * ring_case.heads.dim; }
  };

  void check_forward(const Share& share, const RingGroup& group) {
    const DeviceMemory q = upload(local(share, {share.whole.q}));
    const DeviceMemory kv = upload(local(share, {share.whole.k, share.whole.v}));
    const std::int64_t heads = group.heads.heads;
    const DeviceMemory o = poisoned(share.rows * share.query_width() * element_size());
    const DeviceMemory lse = poisoned(share.rows * heads * fp32_size);
    ring_.forward(group, {.q = q.get(), .kv = kv.get(), .o = o.get(), .lse = static_cast<float*>(lse.get())});

    const std::vector<double> found_o = download(o, share.rows * share.query_width());
    compare(share, "o", share.query_width(), share.whole.result.o, rounding_unit(),
            [&](std::int64_t row, std::int64_t i) { return found_o[index(row * share.query_width() + i)]; });
    const std::vector<float> found_lse = download_fp32(lse, share.rows * heads);
    std::vector<double> expected_lse;  // by rows, as everything else
    for (std::int64_t row = 0; row < share.whole.rows; ++row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        expected_lse.push_back(share.whole.result.lse[index(head * share.whole.rows + row)]);
      }
    }
    compare(share, "lse", heads, expected_lse, 0,
            [&](std::int64_t row, std::int64_t head) { return found_lse[index(head * share.rows + row)]; });
  }

  void check_backward(const Share& share, const RingGroup& group) {
    const DeviceMemory q = upload(local(share, {share.whole.q}));
    const DeviceMemory kv = upload(local(share, {share.whole.k, share.whole.v}));
    const DeviceMemory o = upload(local(share, {share.whole.stored_o}));
    const DeviceMemory d_o = upload(local(share, {share.whole.d_o}));
    std::vector<float> local_lse(index(group.heads.heads * share.rows));
    for (const Piece& piece : share.pieces) {
      for (std::int64_t row = 0; row < piece.rows; ++row) {
        for (std::int64_t head = 0; head < group.heads.heads; ++head) {
          const std::int64_t at = head * share.whole.rows + first_row(share, piece) + row;
          local_lse[index(head * share.rows + piece.local_begin + row)] =
              static_cast<float>(share.whole.result.lse[index(at)]);
        }
      }
    }
    const DeviceMemory lse = poisoned(share.rows * group.heads.heads * fp32_size);
    backend_.upload(lse.get(), local_lse.data(), local_lse.size() * sizeof(float));
    const DeviceMemory d_q = poisoned(share.rows * share.query_width() * fp32_size);
    const DeviceMemory d_kv = poisoned(share.rows * 2 * share.key_width() * fp32_size);
    ring_.backward(group, {.q = q.get(),
                           .kv = kv.get(),
                           .o = o.get(),
                           .lse = static_cast<const float*>(lse.get()),
                           .d_o = d_o.get(),
                           .d_q = static_cast<float*>(d_q.get()),
                           .d_kv = static_cast<float*>(d_kv.get())});

    const std::int64_t width = share.key_width();
    const std::vector<float> found_q = download_fp32(d_q, share.rows * share.query_width());
    const std::vector<float> found_kv = download_fp32(d_kv, share.rows * 2 * width);
    compare(share, "d_q", share.query_width(), share.whole.gradients.d_q, 0,
            [&](std::int64_t row, std::int64_t i) { return found_q[index(row * share.query_width() + i)]; });
    compare(share, "d_k", width, share.whole.gradients.d_k, 0,
            [&](std::int64_t row, std::int64_t i) { return found_kv[index(row * 2 * width + i)]; });
    compare(share, "d_v", width, share.whole.gradients.d_v, 0,
            [&](std::int64_t row, std::int64_t i) { return found_kv[index((row * 2 + 1) * width + i)]; });
  }

  // `found(local row, i)` against expected [whole rows, width], piece by piece, so that an error names its chunk.
  template <class Found>
  void compare(const Share& share, const char* what, std::int64_t width, const std::vector<double>& expected,
               double rounding_unit, const Found& found) {
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t number = 0; number < share.pieces.size(); ++number) {
      const Piece& piece = share.pieces[number];
      for (std::int64_t at = 0; at < piece.rows * width; ++at) {
        const std::int64_t row = at / width;
        const double value = found(piece.local_begin + row, at % width);
        const double wanted = expected[index((first_row(share, piece) + row) * width + at % width)];
        const double bound = share.ring_case.tolerance * largest + rounding_unit * std::abs(wanted);
        if (std::abs(value - wanted) <= bound) continue;
        share.report.fail(
            fmt::format("{} on rank {}: row {} of document {} (chunk {} of those it holds), element {} is {}, "
                        "not {}. {}",
                        what, transport_.rank(), piece.begin + row, piece.document, number, at % width, value, wanted,
                        share.ring_case.text()));
        return;
      }
    }
  }

  static constexpr std::int64_t fp32_size = 4;
  static std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }
  static std::int64_t first_row(const Share& share, const Piece& piece) {
    return share.whole.begins[index(piece.document)] + piece.begin;
  }
  [[nodiscard]] std::int64_t element_size() const {
    return static_cast<std::int64_t>(element_bytes(rounding_.element()));
  }
  // Half a unit in the last place of a value near a power of two, relative to it.
  [[nodiscard]] double rounding_unit() const { return rounding_.element() == Element::fp32 ? 0 : 1.0 / 256; }

  // The rows of this rank; of several tensors, those of one token side by side.
  static std::vector<double> local(const Share& share, const std::vector<std::span<const double>>& tensors) {
    std::vector<double> values;
    for (const Piece& piece : share.pieces) {
      for (std::int64_t row = 0; row < piece.rows; ++row) {
        for (const std::span<const double> tensor : tensors) {
          const std::size_t width = tensor.size() / index(share.whole.rows);
          const auto from = tensor.subspan(index(first_row(share, piece) + row) * width, width);
          values.insert(values.end(), from.begin(), from.end());
        }
      }
    }
    return values;
  }

  [[nodiscard]] DeviceMemory poisoned(std::int64_t bytes) {
    DeviceMemory memory = backend_.allocate(index(bytes));
    backend_.fill_bytes(memory.get(), 0xFF, index(bytes));
    return memory;
  }
  [[nodiscard]] DeviceMemory upload(const std::vector<double>& values) {
    std::vector<std::byte> host(values.size() * index(element_size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      rounding_.store(host.data(), static_cast<std::int64_t>(i), values[i]);
    }
    DeviceMemory memory = backend_.allocate(host.size());
    backend_.upload(memory.get(), host.data(), host.size());
    return memory;
  }
  [[nodiscard]] std::vector<float> download_fp32(const DeviceMemory& memory, std::int64_t count) {
    std::vector<float> host(index(count));
    backend_.download(host.data(), memory.get(), host.size() * sizeof(float));
    return host;
  }
  [[nodiscard]] std::vector<double> download(const DeviceMemory& memory, std::int64_t count) {
    std::vector<std::byte> host(index(count * element_size()));
    backend_.download(host.data(), memory.get(), host.size());
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(rounding_.load(host.data(), i));
    return values;
  }

  Backend& backend_;
  Transport& transport_;
  RingAttention ring_;
  ReferenceBackend rounding_;  // knows the element
};

}  // namespace hdpsim::kernels
