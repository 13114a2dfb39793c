// What kernels of a layer on a CPU refuse; their results are those of laws/.

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels {

TEST_CASE("an id outside the vocabulary, and a step before the first, are refused by name", "[layer]") {
  const auto backend = make_cpu_backend();
  const std::vector<std::int32_t> ids = {0, 7};
  std::vector<float> table(28, 0.0F);
  std::vector<float> y(8, 0.0F);
  const EmbeddingForward lookup{
      .tokens = 2, .vocabulary = 7, .width = 4, .table = table.data(), .ids = ids.data(), .y = y.data()};
  CHECK_THROWS_WITH(backend->run(lookup), "embedding: token 1 is 7, but the vocabulary has 7 entries");
  const std::vector<std::int32_t> targets = {-2, 0};
  const CrossEntropy loss{
      .tokens = 2, .vocabulary = 4, .logits = y.data(), .targets = targets.data(), .loss = table.data()};
  CHECK_THROWS_WITH(backend->run(loss), "cross-entropy: token 0 is -2, but the vocabulary has 4 entries");
  CHECK_THROWS_WITH(backend->run(Adam{.step = 0}), "adam: steps are counted from 1");
}

}  // namespace hdpsim::kernels
