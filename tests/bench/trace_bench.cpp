#include <benchmark/benchmark.h>

#include <filesystem>

#include "sim/trace/trace.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

const std::filesystem::path traces = std::filesystem::path(HDPSIM_SOURCE_DIR) / "traces";
constexpr std::int64_t context = 2 << 20;

BatchOptions budget(std::int64_t tokens) {
  return {.context = context, .tokens_per_step = tokens, .overlong = Overlong::split, .seed = 1};
}

void draw_batch(benchmark::State& state, const char* preset) {
  const BatchSourcePtr batches = make_batches(load_preset(preset, traces), budget(state.range(0)));
  std::int64_t step = 0;
  std::size_t sequences = 0;
  while (state.KeepRunning()) sequences = batches->step(step++).sequences.size();
  state.counters["sequences"] = static_cast<double>(sequences);
}
BENCHMARK_CAPTURE(draw_batch, github, "github")
    ->RangeMultiplier(4)
    ->Range(32 << 20, 512 << 20)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draw_batch, wikipedia, "wikipedia")->Arg(32 << 20)->Unit(benchmark::kMillisecond);

void cut_trace(benchmark::State& state) {
  auto source = make_drawn_lengths(load_preset("github", traces), 1, state.range(0));
  const BatchSourcePtr batches = make_batches(std::make_shared<LengthTrace>(collect(*source)), budget(32 << 20));
  std::int64_t step = 0;
  while (state.KeepRunning()) benchmark::DoNotOptimize(batches->step(step++));
}
BENCHMARK(cut_trace)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void tally_lengths(benchmark::State& state) {
  auto source = make_drawn_lengths(load_preset("github", traces), 1, 1'000'000);
  const LengthTrace trace = collect(*source);
  while (state.KeepRunning()) {
    LengthTally tally;
    for (const std::int64_t tokens : trace.tokens) tally.add(tokens);
    benchmark::DoNotOptimize(tally);
  }
  state.SetItemsProcessed(state.iterations() * 1'000'000);
}
BENCHMARK(tally_lengths)->Unit(benchmark::kMillisecond);

void read_file(benchmark::State& state, const char* extension) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / (std::string("lengths.") + extension);
  constexpr std::int64_t count = 1'000'000;
  static_cast<void>(write_trace(*make_drawn_lengths(load_preset("github", traces), 1, count), path));
  while (state.KeepRunning()) benchmark::DoNotOptimize(tally(*open_trace(path)));
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK_CAPTURE(read_file, lines, "txt")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_file, csv, "csv")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_file, jsonl, "jsonl")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_file, npy, "npy")->Unit(benchmark::kMillisecond);

void fit_lengths(benchmark::State& state) {
  auto source = make_drawn_lengths(load_preset("wikipedia", traces), 1, 1'000'000);
  const LengthTally lengths = tally(*source);
  while (state.KeepRunning()) benchmark::DoNotOptimize(fit(lengths));
}
BENCHMARK(fit_lengths)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
