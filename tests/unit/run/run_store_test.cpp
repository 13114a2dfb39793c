#include "sim/run/run_store.h"

#include <fstream>

#include "sim/study/fingerprint.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

/// A folder that is gone after the test.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "hdpsim_run_store_test") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

RunResult a_result() {
  StepResult step;
  step.step = 3;
  step.sequences = 17;
  step.tokens = 1 << 20;
  step.micro_batches = 40;
  step.model_flops = 1.0 / 3;
  step.time = Duration::picoseconds(123'456'789'012'345'678);
  step.mean[Activity::attention] = step.time;
  step.busy = {1_ps, 2_ps, 3_ps, 4_ps};
  step.evidence = {DurationSum::picoseconds(5), DurationSum::picoseconds(6), {}, {}};
  step.evidence[2].add(Duration::max(), 3);  // what many ranks do together
  step.connections = {13, 14};
  step.memory = {Bytes(9), Bytes(10), Bytes(15), {}, HdpRank(7), 2, 8_ps};
  step.memory.parts[MemoryPart::head] = Bytes(9);
  step.events = 11;
  step.phases = {0.1, 0.2, 0.3, 0.4, 0.5};
  return {{step},
          {step.mean, Breakdown{}},
          {{"node 0 nic 0 out", 25_GBps, Bytes(12), 0.5}},
          {3, {{HdpRank(7), {{0_ps, Bytes(1), Bytes(2)}, {8_ps, Bytes(9), Bytes(3)}}}, {HdpRank(8), {}}}}};
}

TEST_CASE("a kept run comes back exactly", "[resume]") {
  const TemporaryFolder folder;
  const RunStore store(folder.path());
  store.save("this run", a_result());
  const auto kept = store.load("this run");
  REQUIRE(kept);
  const StepResult& step = kept->steps.at(0);
  const StepResult expected = a_result().steps[0];
  CHECK(step.time == expected.time);
  CHECK(step.model_flops == expected.model_flops);
  CHECK(step.busy == expected.busy);
  CHECK(step.evidence == expected.evidence);
  CHECK(step.memory == expected.memory);
  CHECK(kept->memory == a_result().memory);
  CHECK(step.connections == expected.connections);
  CHECK(step.events == expected.events);
  CHECK(step.sequences == 17);
  CHECK(step.phases.simulation_s == 0.4);
  CHECK(step.phases.summary_s == 0.5);
  CHECK(kept->ranks.size() == 2);
  CHECK(kept->ranks[0][Activity::attention] == expected.time);
  CHECK(kept->links == a_result().links);
}

TEST_CASE("a run that depends on something else is not taken", "[resume]") {
  const TemporaryFolder folder;
  const RunStore store(folder.path());
  store.save("this run", a_result());
  CHECK_FALSE(store.load("that run"));
  // Nor is one whose file has the right name by chance.
  std::filesystem::copy_file(store.file_of("this run"), store.file_of("that run"));
  CHECK_FALSE(store.load("that run"));
}

TEST_CASE("a damaged run is simulated again", "[resume]") {
  const TemporaryFolder folder;
  const RunStore store(folder.path());
  store.save("this run", a_result());
  std::filesystem::resize_file(store.file_of("this run"), 100);
  CHECK_FALSE(store.load("this run"));
  std::ofstream(store.file_of("this run")) << R"({"schema": "hdpsim.run/3", "identity": "this run", "steps": [{}]})";
  CHECK_FALSE(store.load("this run"));
}

TEST_CASE("fingerprints are those of FNV-1a", "[resume]") {
  CHECK(fingerprint("") == 0xcbf29ce484222325);
  CHECK(fingerprint("a") == 0xaf63dc4c8601ec8c);  // the authors' test vectors
  CHECK(fingerprint("foobar") == 0x85944171f73967e8);
  CHECK(fingerprint("bar", fingerprint("foo")) == fingerprint("foobar"));
}

}  // namespace
}  // namespace hdpsim
