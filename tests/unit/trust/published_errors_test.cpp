#include "sim/trust/published_errors.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

const RunKind dense_h100{Workload::dense, "nvidia", "H100-80GB"};
const RunKind dense_a100{Workload::dense, "nvidia", "A100-80GB"};
const RunKind torch_h100{Workload::dense, "pytorch", "H100-80GB"};
const RunKind experts_h100{Workload::experts, "nvidia", "H100-80GB"};

ErrorRow row(const RunKind& kind, const std::string& set, double center, ErrorOf of = ErrorOf::step_time) {
  return {.of = of, .kind = kind, .set = set, .figures = 10, .errors = {center, 0.02}};
}

TEST_CASE("a kind without published figures takes the errors of the next wider one, and says so", "[trust]") {
  const PublishedErrors errors({row(dense_h100, "a", 0), row(dense_a100, "b", 0.1), row(experts_h100, "c", 0.5)});
  const auto own = errors.of(ErrorOf::step_time, dense_h100);
  REQUIRE(own);
  CHECK(own->is_own);
  CHECK(own->kind == "dense, nvidia, H100-80GB");
  CHECK(own->sets == 1);
  CHECK(own->figures == 10);

  const auto other_device = errors.of(ErrorOf::step_time, {Workload::dense, "nvidia", "MI300X"});
  CHECK_FALSE(other_device->is_own);
  CHECK(other_device->kind == "dense, nvidia");
  CHECK(other_device->sets == 2);
  CHECK(errors.of(ErrorOf::step_time, torch_h100)->kind == "dense");
  CHECK(errors.of(ErrorOf::step_time, {Workload::host_bound, "nvidia", "H100-80GB"})->kind == "all runs");
  CHECK(errors.of(ErrorOf::step_time, {Workload::experts, "pytorch", "H100-80GB"})->kind == "experts");
  CHECK_FALSE(errors.of(ErrorOf::speedup, dense_h100));
}

TEST_CASE("what the sets of a kind say outweighs what wider kinds say", "[trust]") {
  std::vector<ErrorRow> rows = {row(experts_h100, "far", 1)};
  for (int i = 0; i < 8; ++i) rows.push_back(row(dense_h100, "near " + std::to_string(i), 0.1));
  const PublishedErrors errors(rows);
  const double near = errors.of(ErrorOf::step_time, dense_h100)->spread.center;
  CHECK(near > 0.1);
  CHECK(near < 0.15);
  CHECK(errors.of(ErrorOf::step_time, experts_h100)->spread.center > near);
  CHECK(errors.of(ErrorOf::step_time, dense_h100)->spread.range(0.9).most <
        errors.of(ErrorOf::step_time, experts_h100)->spread.range(0.9).most);
}

TEST_CASE("a set without its rows has no say", "[trust]") {
  const PublishedErrors errors({row(dense_h100, "a", 0), row(dense_h100, "b", 0.4)});
  CHECK(errors.without("b").of(ErrorOf::step_time, dense_h100)->spread.center == 0);
  CHECK(errors.without("b").rows().size() == 1);
}

TEST_CASE("memory knows dense models and those with experts alone", "[trust]") {
  const PublishedErrors errors({row(dense_h100, "a", 0.1, ErrorOf::memory)});
  CHECK(errors.of(ErrorOf::memory, {Workload::host_bound, "nvidia", "H100-80GB"})->is_own);
  CHECK(errors.of(ErrorOf::memory, {Workload::mixed_lengths, "nvidia", "H100-80GB"})->is_own);
  CHECK(errors.of(ErrorOf::memory, experts_h100)->kind == "all runs");
}

TEST_CASE("the file of errors reads back as it was", "[trust]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "trust.yaml").string();
  const PublishedErrors errors({row(dense_h100, "nemo-24.07", -0.00001), row(experts_h100, "c", 0.5, ErrorOf::memory)});
  std::ofstream(path) << published_errors_file(errors);
  Diagnostics problems;
  const PublishedErrors read = load_published_errors(path, problems);
  CHECK(problems.empty());
  REQUIRE(read.rows().size() == 2);
  CHECK(read.rows()[0].set == "nemo-24.07");
  CHECK(read.rows()[0].errors.center == 0);
  CHECK(read.rows()[1].kind == experts_h100);
  CHECK(read.rows()[1].of == ErrorOf::memory);
  CHECK(published_errors_file(read) == published_errors_file(errors));
  CHECK(published_errors_file(errors).find("-0.0000") == std::string::npos);
}

TEST_CASE("all that is wrong in a file of errors is reported, and none of it is taken", "[trust]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "trust.yaml").string();
  std::ofstream(path)
      << "errors:\n"
         "  - {of: step_time, workload: dense, stack: nvidia, device: X, set: a, figures: 1, center: 0, "
         "spread: 0}\n"
         "  - {of: speed, workload: dense, stack: amd, device: X, set: a, figures: 0, center: 0, "
         "spread: -1}\n";
  Diagnostics problems;
  CHECK(load_published_errors(path, problems).rows().empty());
  CHECK(problems.sorted().size() == 4);
}

}  // namespace
}  // namespace hdpsim
