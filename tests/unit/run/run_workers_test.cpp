#include "sim/run/run_workers.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "sim/base/diagnostic.h"
#include "sim/run/run_record.h"
#include "sim/run/runner.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr char version[] = "1";

Study study_of(const std::vector<std::string>& overrides) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  return load_study(HDPSIM_SOURCE_DIR "/configs/studies/tiny.yaml", overrides, catalog);
}

/// Twelve runs: three plans, two contexts, two seeds.
Study small_study() {
  return study_of({"data.steps=2", "sweep={data.context: [32Ki, 64Ki], data.seed: [1, 2]}"});
}

/// Letters between threads that stand for processes.
class Office {
 public:
  explicit Office(int size) : boxes_(static_cast<std::size_t>(size)), silent_(static_cast<std::size_t>(size)) {}

  void post(int from, int to, std::string text) {
    const std::lock_guard lock(mutex_);
    boxes_.at(static_cast<std::size_t>(to)).push_back({from, std::move(text)});
    changed_.notify_all();
  }
  std::optional<Letter> take(int rank, std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    std::deque<Letter>& box = boxes_.at(static_cast<std::size_t>(rank));
    changed_.wait_for(lock, wait, [&] { return !box.empty(); });
    if (box.empty()) return std::nullopt;
    Letter letter = std::move(box.front());
    box.pop_front();
    return letter;
  }
  std::atomic<bool>& silent(int rank) { return silent_.at(static_cast<std::size_t>(rank)); }
  std::atomic<bool>& closed() { return closed_; }
  [[nodiscard]] int size() const { return static_cast<int>(boxes_.size()); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Letter>> boxes_;
  std::vector<std::atomic<bool>> silent_;
  std::atomic<bool> closed_ = false;
};

class OfficeMail : public ProcessMail {
 public:
  OfficeMail(Office& office, int rank) : office_(office), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return office_.size(); }
  void post(int to, std::string text) override { office_.post(rank_, to, std::move(text)); }
  [[nodiscard]] std::optional<Letter> take(std::chrono::milliseconds wait) override {
    return office_.take(rank_, wait);
  }
  [[nodiscard]] bool is_silent(int process) const override { return office_.silent(process); }
  [[nodiscard]] bool is_closed() const override { return office_.closed(); }

 protected:
  Office& office_;

 private:
  int rank_;
};

/// Posts so many letters; then its process is dead: nothing it writes arrives any more, and nobody hears of it.
class DyingMail final : public OfficeMail {
 public:
  DyingMail(Office& office, int rank, int letters) : OfficeMail(office, rank), left_(letters) {}
  void post(int to, std::string text) override {
    if (left_-- > 0) return OfficeMail::post(to, std::move(text));
    office_.silent(rank()) = true;
  }

 private:
  std::atomic<int> left_;
};

/// What is stable of the results: the seconds that simulating took are not.
std::vector<std::string> texts_of(std::vector<Run> runs) {
  std::vector<std::string> texts;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (StepResult& step : runs[run].result.steps) step.phases = {};
    texts.push_back(run_text(runs[run].result));
  }
  return texts;
}

std::vector<std::string> results_alone(const Study& study) {
  return texts_of(run_study(study, {.version = version}).value());
}

TEST_CASE("processes that share a study give the results of one, and progress counts every run once", "[sharing]") {
  const Study study = small_study();
  Office office(3);
  OfficeMail first(office, 0);
  std::size_t finished = 0;
  std::optional<std::vector<Run>> runs;
  {
    std::vector<std::jthread> others;
    for (int rank = 1; rank < 3; ++rank) {
      others.emplace_back([&, rank] {
        OfficeMail mail(office, rank);
        CHECK(serve_study(mail, small_study(), version, 2, [] { return false; }) == Served::finished);
      });
    }
    const auto helpers = make_process_workers(first, study, version);
    runs = run_study(study, {.version = version,
                             .report = [&](const Progress& progress) { finished += progress.finished ? 1 : 0; },
                             .helpers = helpers.get()});
  }
  REQUIRE(runs);
  CHECK(finished == 12);
  CHECK(texts_of(*runs) == results_alone(study));
}

TEST_CASE("the runs of a process that dies are done by the others, whenever it dies", "[sharing]") {
  const Study study = small_study();
  const std::vector<std::string> expected = results_alone(study);
  for (int letters = 0; letters < 4; ++letters) {
    CAPTURE(letters);
    Office office(3);
    OfficeMail first(office, 0);
    std::optional<std::vector<Run>> runs;
    {
      std::jthread dying([&] {
        DyingMail mail(office, 1, letters);
        (void)serve_study(mail, study, version, 1, [] { return false; });
      });
      std::jthread living([&] {
        OfficeMail mail(office, 2);
        (void)serve_study(mail, study, version, 1, [] { return false; });
      });
      const auto helpers = make_process_workers(first, study, version);
      runs = run_study(study, {.version = version, .helpers = helpers.get()});
    }
    REQUIRE(runs);
    CHECK(texts_of(*runs) == expected);
  }
}

TEST_CASE("a process that has another study, or is another version, is refused", "[sharing]") {
  const Study study = small_study();
  for (const auto& [overrides, its_version] :
       {std::pair<std::vector<std::string>, const char*>{{"data.seed=7"}, version}, {{}, "2"}}) {
    Office office(2);
    OfficeMail first(office, 0);
    std::vector<std::string> all = {"data.steps=2000", "sweep={data.context: [32Ki, 64Ki]}"};
    const Study own = study_of(all);
    all.insert(all.end(), overrides.begin(), overrides.end());
    std::jthread other([&, all, its = its_version] {
      OfficeMail mail(office, 1);
      (void)serve_study(mail, study_of(all), its, 1, [] { return false; });
    });
    const auto helpers = make_process_workers(first, own, version);
    CHECK_THROWS_AS(run_study(own, {.version = version, .helpers = helpers.get()}), InputError);
  }
}

TEST_CASE("a process that comes when all runs are done is still heard", "[sharing]") {
  const Study own = study_of({"data.steps=1"});
  RunQueue queue(
      own, [] { return false; }, [](std::int64_t, FinishedRun*) {});
  queue.close();
  Office office(2);
  OfficeMail first(office, 0);
  std::jthread other([&] {
    OfficeMail mail(office, 1);
    (void)serve_study(mail, study_of({"data.steps=1", "data.seed=7"}), version, 1, [] { return false; });
  });
  make_process_workers(first, own, version)->work(queue);
  CHECK_THROWS_AS(queue.rethrow(), InputError);
}

TEST_CASE("a process that has lost process 0 says so, and one that process 0 has left ends", "[sharing]") {
  const Study study = small_study();
  Office office(2);
  OfficeMail mail(office, 1);
  office.silent(0) = true;
  CHECK_THROWS_WITH(serve_study(mail, study, version, 1, [] { return false; }), Catch::Contains("process 0 is lost"));
  office.closed() = true;
  CHECK(serve_study(mail, study, version, 1, [] { return false; }) == Served::left_alone);
  CHECK(serve_study(mail, study, version, 1, [] { return true; }) == Served::stopped);
}

TEST_CASE("a run that a given-up process finishes after all counts once", "[sharing]") {
  const Study study = small_study();
  int told = 0;
  RunQueue queue(
      study, [] { return false; }, [&](std::int64_t, FinishedRun* finished) { told += finished ? 1 : 0; });
  queue.put(4);
  queue.close();
  REQUIRE(queue.next_run() == 4U);
  CHECK_FALSE(queue.next_run());
  queue.give_back(4);
  CHECK(queue.waiting() == 1);
  queue.finish({.run = 4});
  CHECK(queue.is_complete());
  CHECK_FALSE(queue.next_run());
  queue.finish({.run = 4});
  queue.finish({.run = 5});  // was never put
  CHECK(told == 1);
}

TEST_CASE("a run that cannot be simulated elsewhere stays with the threads of this process", "[sharing]") {
  const Study study = small_study();
  RunQueue queue(
      study, [] { return false; }, [](std::int64_t, FinishedRun*) {});
  queue.put(3);
  REQUIRE(queue.next_run() == 3U);
  queue.keep(3);
  CHECK_FALSE(queue.next_run());
  const auto task = queue.next_step();
  REQUIRE(task);
  CHECK(task->run == 3);
  CHECK(task->step == 0);
}

}  // namespace
}  // namespace hdpsim
