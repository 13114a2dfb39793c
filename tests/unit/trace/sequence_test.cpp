#include "sim/trace/sequence.h"

#include "tests/support/catch.h"

namespace hdpsim {

TEST_CASE("a batch has the tokens of its sequences", "[trace]") {
  const Batch batch{{{5, 0}, {7, 1}, {2, 1}}};
  CHECK(batch.tokens() == 5 + 7 + 2);
  CHECK(Batch{}.tokens() == 0);
}

}  // namespace hdpsim
