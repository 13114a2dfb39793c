#include "kernels/ring/traded_heads.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/transport/in_process.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

// Three ranks with 2, 1 and 0 rows, which lie in the order 1, 0, 0 in the group.
GroupRows unequal_rows(int position) {
  return {.members = {0, 1, 2}, .position = position, .held = {{{0, 1, 2}}, {{0, 0, 1}}, {}}};
}

// An element tells its row in the group and its head.
float element(std::int64_t row, std::int64_t head) {
  return static_cast<float>(10 * row + head);
}

TEST_CASE("traded, a rank has its heads of all rows in order; traded back, its rows with all heads",
          "[ring][sharing]") {
  std::vector<std::vector<float>> heads(3);
  std::vector<std::vector<float>> tokens(3);
  run_ranks(3, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    TradedHeads trading(*backend, transport);
    const GroupRows rows = unequal_rows(transport.rank());
    trading.join(rows);
    std::vector<float> own;
    for (const RowRange& range : rows.held[static_cast<std::size_t>(transport.rank())]) {
      for (std::int64_t row = 0; row < range.rows; ++row) {
        for (std::int64_t head = 0; head < 3; ++head) own.push_back(element(range.begin + row, head));
      }
    }
    std::vector<float> all(3);
    std::vector<float> again(own.size());
    const auto bytes = [](std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); };
    const TradedTensor there{{bytes(own), 3 * sizeof(float)}, {bytes(all), sizeof(float)}, sizeof(float)};
    const TradedTensor back{{bytes(again), 3 * sizeof(float)}, {bytes(all), sizeof(float)}, sizeof(float)};
    trading.prepare(there, TradedHeads::Way::to_heads);
    trading.trade(there);
    trading.finish(there, TradedHeads::Way::to_heads);
    trading.prepare(back, TradedHeads::Way::to_tokens);
    trading.trade(back);
    trading.finish(back, TradedHeads::Way::to_tokens);
    const auto rank = static_cast<std::size_t>(transport.rank());
    heads[rank] = all;
    tokens[rank] = again;
    if (again != own) tokens[rank] = {-1};
  });
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    CHECK(heads[static_cast<std::size_t>(rank)] ==
          std::vector<float>{element(0, rank), element(1, rank), element(2, rank)});
  }
  CHECK(tokens[0] == std::vector<float>{10, 11, 12, 20, 21, 22});
  CHECK(tokens[1] == std::vector<float>{0, 1, 2});
  CHECK(tokens[2].empty());
}

TEST_CASE("a group counts its rows", "[ring][sharing]") {
  const GroupRows rows = unequal_rows(1);
  CHECK(rows.own() == 1);
  CHECK(rows.most() == 2);
  CHECK(rows.all() == 3);
}

}  // namespace
}  // namespace hdpsim::kernels
