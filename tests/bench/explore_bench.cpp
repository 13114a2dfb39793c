// How long the live page waits: a setting of the main study at one point changes (1,024 GPUs, three plans, 50 steps),
// until its first figures, those of an eighth of the steps, and those of all of them with the fastest static mesh.

#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "sim/explore/session.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

/// A page that leaves after so many answers.
class PageReader final : public AnswerStream {
 public:
  explicit PageReader(int answers) : left_(answers) {}
  void send(std::string_view text) override {
    if (text.find(R"("kind":"answer")") != std::string_view::npos) --left_;
  }
  [[nodiscard]] bool is_closed() const override { return left_ <= 0; }

 private:
  int left_;
};

// Until the answer with this number, from 1 on; each question is a new one.
void answers_of_page(benchmark::State& state) {
  const test::TemporaryFolder scratch;
  ExploreSession session({.study = HDPSIM_SOURCE_DIR "/configs/studies/bytescale-7b.yaml",
                          .data = HDPSIM_SOURCE_DIR,
                          .scratch = scratch.path(),
                          .version = "bench",
                          .jobs = std::thread::hardware_concurrency()});
  int seed = 0;
  for (auto _ : state) {
    PageReader reader(static_cast<int>(state.range(0)));
    session.answer(fmt::format(R"({{"want": "answer", "set": ["data.seed={}", "data.context=1Mi"]}})", ++seed), reader);
  }
}
BENCHMARK(answers_of_page)
    ->Arg(1)
    ->Arg(2)
    ->Arg(3)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace hdpsim
