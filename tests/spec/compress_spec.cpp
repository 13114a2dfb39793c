#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

TEST_CASE("the rate of drawn vectors is the one that a study takes, and hashing has been timed", "[compress]") {
  const Workplace here;
  const auto printed = [&](const std::string& arguments) {
    return nlohmann::json::parse(here.hdpsim("compress --format json " + arguments).out).at("rates");
  };
  // A study of Mixtral, whose copies have 4,096 columns.
  const auto rates = printed("--similarity 0.97 --hashes 4 --width 4096");
  REQUIRE(rates.size() == 1);
  CHECK(rates.at(0).at("tokens") == 16 * 32);
  CHECK(rates.at(0).at("rate") == rates.at(0).at("clusters").get<double>() / (16 * 32));
  CHECK(rates.at(0).at("hash_s") > 0);
  here.write("study.yaml", R"(name: experts
cluster: {preset: h100-rail, gpus: 16}
model: {preset: mixtral-8x7b}
moe: {across: waves, compression: {hashes: 4, similarity: 0.97}}
data: {lengths: {fixed: 4Ki}, context: 4Ki, tokens_per_step: 64Ki, steps: 1}
mesh: {tp: 1, ep: 8}
plans: [static]
)");
  const std::string text = here.run("study study.yaml").out;
  CHECK_THAT(text, Catch::Contains(fmt::format("compressed to {:.3g} %", 100 * rates.at(0).at("rate").get<double>())));
  // What tokens differ from the means of their clusters grows as clusters do.
  const auto all = printed("--similarity 0.9,0.99 --width 64");
  CHECK(all.size() == 10);
  CHECK(all.at(0).at("similarity") == 0.9);
  CHECK(all.at(9).at("hashes") == 10);
}

TEST_CASE("the rate of vectors of a file is printed, and a wrong file is refused with its place", "[compress]") {
  const Workplace here;
  here.write("vectors.json", "[[1, 2], [2, 4], [-1, -2]]");
  // Two clusters. The mean of the first two is (1.5, 3), from which both differ by (0.5, 1): sqrt(2.5 / 30) = 0.289.
  CHECK_THAT(here.hdpsim("compress --vectors vectors.json --hashes 6").out,
             Catch::Contains("         -       6        2       3         2  0.667       0.289 "));
  CHECK(here.hdpsim("compress --vectors vectors.json --hashes 1 --format csv").out.find("\n,1,2,3,2,0.66") !=
        std::string::npos);
  here.write("wrong.json", "[[1, 2], [2]]");
  const Outcome wrong = here.hdpsim("compress --vectors wrong.json");
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Catch::Contains("wrong.json:1:10: error: a vector must be a list of 2 numbers"));
  CHECK(here.hdpsim("compress --vectors vectors.json --columns 3").code == 2);
  CHECK(here.hdpsim("compress --similarity 1.5").code == 2);
}

}  // namespace
}  // namespace hdpsim::spec
