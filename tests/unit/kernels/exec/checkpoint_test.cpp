#include "kernels/exec/checkpoint.h"

#include <fstream>
#include <functional>

#include "kernels/spec/error.h"
#include "sim/base/fingerprint.h"
#include "sim/model/layers.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/kernels.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

const std::vector<std::int64_t> lengths = {50, 20, 31, 8};

std::vector<Plan> plans_of(std::int64_t ranks, std::int64_t first, std::int64_t last) {
  std::vector<Plan> plans;
  for (std::int64_t step = first; step < last; ++step) {
    plans.push_back(policy_plan("hdp-balance", ranks, 2, 60, lengths));
    plans.back().step = step;
  }
  return plans;
}

struct Run {
  std::vector<double> losses;
  std::vector<float> parameters;
};

// Goes on from `from`, unless that is empty, and ends with a checkpoint at `to`, unless that is.
Transformer two_by_two() {
  Transformer model = tiny_model();
  model.kv_heads = 2;
  return model;
}

Run run(const std::vector<Plan>& plans, const fs::path& from, const fs::path& to, const Way& way = {}) {
  const Transformer model = two_by_two();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  Run result;
  run_ranks(static_cast<int>(way.mesh(plans.front().ranks).devices()), [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Executor executor(*backend, transport, model, options_for(way));
    if (!from.empty() && executor.load(from) != plans.front().step) throw std::logic_error("another step");
    Run own;
    for (const Plan& whole : plans) {
      const Plan plan = planned_for(way, whole);
      const LoweringOptions lowering = lowering_for(*backend, model, way.mesh(plan.ranks), way.recipe(), way.pipeline);
      own.losses.push_back(executor.run_step(Program(plan, lowering), *tokens).loss);
    }
    if (!to.empty()) executor.save(to, plans.back().step + 1);
    own.parameters = executor.parameters();
    if (transport.rank() == 0) result = std::move(own);
  });
  return result;
}

TEST_CASE("training goes on from a checkpoint to the bit", "[exec][checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "checkpoint";
  const Run whole = run(plans_of(3, 0, 5), "", "");
  const Run first = run(plans_of(3, 0, 2), "", file);
  const Run second = run(plans_of(3, 2, 5), file, "");
  CHECK(second.parameters == whole.parameters);
  CHECK(std::equal(second.losses.begin(), second.losses.end(), whole.losses.begin() + 2));
  CHECK_FALSE(fs::exists(file.string() + ".part"));
}

TEST_CASE("training goes on on another number of ranks, to rounding", "[exec][checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "checkpoint";
  const Run whole = run(plans_of(3, 0, 5), "", "");
  (void)run(plans_of(3, 0, 2), "", file);
  for (const std::int64_t ranks : {2, 4}) {
    const Run second = run(plans_of(ranks, 2, 5), file, "");
    for (std::size_t i = 0; i < 3; ++i) CHECK(second.losses[i] == Approx(whole.losses[i + 2]).epsilon(1e-5));
  }
}

TEST_CASE("a checkpoint knows nothing of the mesh that wrote it", "[exec][checkpoint][tp][pp]") {
  const test::TemporaryFolder folder;
  const fs::path of_one = folder.path() / "one";
  const fs::path of_mesh = folder.path() / "mesh";
  (void)run(plans_of(2, 0, 2), "", of_one);
  const Run whole = run(plans_of(2, 2, 4), of_one, "");
  const Way way{.tp = 2, .pp = 2};
  (void)run(plans_of(2, 2, 3), of_one, of_mesh, way);
  const Run end = run(plans_of(2, 3, 4), of_mesh, "");
  CHECK(end.losses[0] == Approx(whole.losses[1]).epsilon(1e-5));

  // To the bit where nothing is computed in between.
  run_ranks(static_cast<int>(way.mesh(2).devices()), [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Executor executor(*backend, transport, two_by_two(), options_for(way));
    executor.save(of_mesh, executor.load(of_one));
  });
  CHECK(test::text_of(of_mesh) == test::text_of(of_one));
}

TEST_CASE("a pipeline goes on from its checkpoint to the bit", "[exec][checkpoint][pp]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "checkpoint";
  const Way way{.pp = 2};
  const Run whole = run(plans_of(2, 0, 4), "", "", way);
  (void)run(plans_of(2, 0, 2), "", file, way);
  const Run second = run(plans_of(2, 2, 4), file, "", way);
  CHECK(second.parameters == whole.parameters);
  CHECK(std::equal(second.losses.begin(), second.losses.end(), whole.losses.begin() + 2));
}

// A file like `from` with one change.
fs::path changed(const fs::path& from, const std::function<void(std::string&)>& change) {
  std::string bytes = test::text_of(from);
  change(bytes);
  fs::path to = from.string() + "-changed";
  std::ofstream(to, std::ios::binary) << bytes;
  return to;
}

TEST_CASE("a checkpoint that is torn, damaged, foreign or missing is refused by name", "[exec][checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "checkpoint";
  (void)run(plans_of(2, 0, 1), "", file);
  const auto refused = [&](const fs::path& path, const std::string& reason) {
    CHECK_THROWS_AS(run(plans_of(2, 1, 2), path, ""), UnsupportedInput);
    CHECK_THROWS_WITH(run(plans_of(2, 1, 2), path, ""), Contains(path.string()) && Contains(reason));
  };
  refused(folder.path() / "missing", "it cannot be read");
  refused(changed(file, [](std::string& bytes) { bytes.pop_back(); }), "bytes");
  refused(changed(file, [](std::string& bytes) { bytes.resize(40); }), "it is too short");
  refused(changed(file, [](std::string& bytes) { bytes[0] = 'H'; }), "it does not begin as one");
  refused(changed(file, [](std::string& bytes) { bytes[bytes.size() / 2] ^= 1; }), "its checksum is wrong");
  refused(changed(file, [](std::string& bytes) { bytes[24] ^= 1; }), "its checksum is wrong");  // the shape

  const CheckpointTitle other{fingerprint(shape_text(tiny_model(1))), 0, 0, 0};
  CheckpointWriter(folder.path() / "other", other).finish();
  refused(folder.path() / "other", "is of another model than 'tiny'");
}

TEST_CASE("a checkpoint that is not finished leaves the one before as it was", "[exec][checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "checkpoint";
  const CheckpointTitle title{1, 2, 7, 8};
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  {
    CheckpointWriter writer(file, title);
    writer.write(numbers);
    writer.finish();
  }
  {
    CheckpointWriter torn(file, title);
    torn.write(std::span(numbers).first(3));
  }
  CHECK_FALSE(fs::exists(file.string() + ".part"));
  CheckpointReader reader(file);
  reader.verify();
  CHECK(reader.title().updates == 7);
  CHECK(reader.title().next_step == 8);
  std::vector<float> read(3);
  reader.read(1, 0, read);
  CHECK(read == std::vector<float>{3, 4, 0});
  CHECK_THROWS_AS(CheckpointWriter(folder.path() / "no" / "folder", title), MachineError);
}

}  // namespace
}  // namespace hdpsim::kernels::exec
