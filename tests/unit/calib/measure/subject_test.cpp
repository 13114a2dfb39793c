#include "calib/measure/subject.h"

#include "calib/measure/impl/subject_json.h"
#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

std::vector<Subject> one_of_each() {
  return {Attention{.blocks = {{100, 100, Mask::causal, 3}, {64, 32, Mask::full, 1}},
                    .heads = 8,
                    .kv_heads = 2,
                    .head_dim = 64,
                    .direction = Direction::backward},
          Gemm{1, 2, 3},
          MemoryBoundSubject{"adam", 4096},
          CopySubject{CopyKind::h2d_of_both, 1 << 20},
          MessageSubject{MessageKind::all_to_all, 4, 1 << 16},
          MessageSubject{MessageKind::send_recv, 2, 1 << 10, LinkKind::network},
          InterferenceSubject{"gemm", "d2h", 8}};
}

TEST_CASE("the text of every kind of subject reads back as an equal subject", "[subject]") {
  for (const Subject& subject : one_of_each()) {
    const std::string text = subject_text(subject);
    CAPTURE(text);
    const std::optional<Subject> back = subject_from(Json::parse(text));
    REQUIRE(back);
    CHECK(back->index() == subject.index());
    CHECK(subject_text(*back) == text);
    CHECK(family_of(*back) == family_of(subject));
  }
}

TEST_CASE("JSON of no subject is none", "[subject]") {
  CHECK_FALSE(subject_from(Json::parse(R"({"family": "astrology"})")));
  CHECK_FALSE(subject_from(Json::parse(R"({"family": "messages", "kind": "shout", "ranks": 2, "bytes": 1})")));
  CHECK_THROWS(subject_from(Json::parse(R"({"family": "gemm", "m": 1, "n": "two", "k": 3})")));
}

TEST_CASE("labels tell subjects apart", "[subject]") {
  const std::vector<Subject> subjects = one_of_each();
  CHECK(label_of(subjects[0]) == "attention backward d64 h8/2 2 documents");
  CHECK(label_of(subjects[1]) == "gemm 1x2x3");
  CHECK(label_of(subjects[2]) == "adam 4.10 kB");
  CHECK(label_of(subjects[4]) == "all_to_all 4 ranks 65.5 kB");
  CHECK(label_of(subjects[5]) == "send_recv 2 ranks between nodes 1.02 kB");
  CHECK(label_of(subjects[6]) == "gemm under d2h, 8 blocks");
}

}  // namespace
}  // namespace hdpsim::calib
