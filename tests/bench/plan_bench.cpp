// Planning, checking and plan files. The target: a batch of 32Mi tokens for 2,048 HDP ranks in less than 50 ms, and no
// worse than n log n when tokens and ranks grow together.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "sim/base/random.h"
#include "sim/plan/group_cut.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/plan_time.h"
#include "sim/plan/planner.h"
#include "tests/support/plain_rings.h"
#include "tests/support/planner_of.h"

namespace hdpsim {
namespace {

constexpr std::int64_t longest = 2 << 20;
constexpr std::int64_t tokens_per_rank = (32 << 20) / 2048;

// LLaMA-7B on A100-class devices (the rates of ByteScale, arXiv 2502.21231, section 8), 8,192 tokens a rank.
PlanningContext pool(std::int64_t ranks) {
  PlanningContext context;
  context.ranks = ranks;
  context.ranks_per_node = 4;
  context.capacity = 8192;
  context.context = longest;
  context.layers = 32;
  context.served_bytes = {.query = 16384, .key = 4096};
  context.work = test::with_plain_rings({.per_area = 9.2e-9,
                                         .per_token = 2.2e-4,
                                         .per_micro_batch = 0.05,
                                         .per_ring_token = 2.7e-5,
                                         .per_ring_step = 1.3e-3,
                                         .offload_per_token = 1.7e-4});
  context.host_tokens = 65536;
  return context;
}

// As many tokens in every octave of lengths from 256 tokens to the longest (density 1 / s^2): close to what is
// published of code repositories.
Batch batch_for(std::int64_t ranks) {
  constexpr double shortest = 256;
  RandomStream random(1, "bench lengths");
  Batch batch;
  std::int64_t left = ranks * tokens_per_rank;
  while (left > 0) {
    const double tail = 1 - random.uniform() * (1 - shortest / static_cast<double>(longest));
    const std::int64_t tokens = std::min<std::int64_t>(left, std::llround(shortest / tail));
    batch.sequences.push_back({tokens, std::ssize(batch.sequences)});
    left -= tokens;
  }
  return batch;
}

std::unique_ptr<Planner> planner(const std::string& entry, const PlanningContext& context) {
  Diagnostics diagnostics;
  auto made = test::planner_of(parse_document("bench", entry, diagnostics), context, diagnostics);
  diagnostics.throw_if_any();
  return made;
}

void plan(benchmark::State& state, const std::string& entry) {
  const PlanningContext context = pool(state.range(0));
  const Batch batch = batch_for(state.range(0));
  const auto policy = planner(entry, context);
  for (auto _ : state) benchmark::DoNotOptimize(policy->plan(batch, 0));
  state.SetComplexityN(state.range(0));
  state.counters["sequences"] = static_cast<double>(batch.sequences.size());
}

void series(benchmark::internal::Benchmark* bench) {
  bench->Arg(1024)->Arg(2048)->Arg(4096)->Arg(16384)->Arg(65536);
  bench->Unit(benchmark::kMillisecond)->Complexity(benchmark::oNLogN);
}

BENCHMARK_CAPTURE(plan, static, "static")->Apply(series);
BENCHMARK_CAPTURE(plan, hdp_naive, "hdp-naive")->Apply(series);
BENCHMARK_CAPTURE(plan, hdp_naive_offload, "hdp-naive: {offload: auto}")->Apply(series);
BENCHMARK_CAPTURE(plan, hdp_balance, "hdp-balance")->Apply(series);
BENCHMARK_CAPTURE(plan, hdp_balance_offload, "hdp-balance: {offload: auto}")->Apply(series);
BENCHMARK_CAPTURE(plan, hdp_balance_widen, "hdp-balance: {widen: true}")->Apply(series);

// Policies of other systems: 4,096 sequences on 512 ranks in less than 50 ms.
void published(benchmark::State& state, const std::string& entry) {
  const PlanningContext context = pool(512);
  Batch batch = batch_for(1024);
  batch.sequences.resize(4096);
  const auto policy = planner(entry, context);
  for (auto _ : state) benchmark::DoNotOptimize(policy->plan(batch, 0));
}
BENCHMARK_CAPTURE(published, static_next_fit, "static: {packing: next_fit}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, static_trl, "static: {packing: trl}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, static_llamafactory, "static: {packing: llamafactory}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, static_llm_foundry, "static: {packing: llm_foundry}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, static_xtuner, "static: {packing: xtuner}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, static_veomni, "static: {packing: veomni}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, megatron_dp_balanced, "megatron-dp-balanced")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, megatron_hybrid_cp, "megatron-hybrid-cp")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, megatron_hybrid_cp_packing, "megatron-hybrid-cp: {packing: true}")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, megatron_dynamic_cp, "megatron-dynamic-cp")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, flexsp, "flexsp")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, flexsp_homogeneous, "flexsp-homogeneous")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, hydraulis, "hydraulis")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, hydraulis_joint, "hydraulis: {search: joint}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, wlb, "wlb")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, wlb_without_delay, "wlb: {defer: false}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, skrull, "skrull")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, chunkflow, "chunkflow")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, distca, "distca")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, distca_code, "distca: {as: code}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, zeppelin, "zeppelin")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, openrlhf, "openrlhf")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, verl, "verl: {cp: 256}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, skyrl, "skyrl: {cp: 256}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, areal, "areal: {cp: 256}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, areal_kk, "areal: {cp: 256, packer: kk}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(published, prime_rl, "prime-rl: {cp: 256}")->Unit(benchmark::kMillisecond);

// How 4,096 documents are cut over 512 ranks, and what each of these then has to do: milliseconds.
void cut_over_ranks(benchmark::State& state, TokenCut cut) {
  Batch batch = batch_for(1024);
  batch.sequences.resize(4096);
  std::vector<std::int64_t> lengths;
  for (const Sequence& sequence : batch.sequences) lengths.push_back(sequence.tokens);
  for (auto _ : state) benchmark::DoNotOptimize(make_group_cut(cut, lengths, 512)->work());
}
BENCHMARK_CAPTURE(cut_over_ranks, per_document, TokenCut::per_document)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(cut_over_ranks, per_pack, TokenCut::per_pack)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(cut_over_ranks, dispatch, TokenCut::dispatch)->Unit(benchmark::kMillisecond);

Plan balanced_plan(std::int64_t ranks) {
  return planner("hdp-balance", pool(ranks))->plan(batch_for(ranks), 0);
}

void plan_check(benchmark::State& state) {
  const Plan made = balanced_plan(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(check_plan(made));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(plan_check)->Apply(series);

void plan_times(benchmark::State& state) {
  const Plan made = balanced_plan(state.range(0));
  const WorkModel work = pool(state.range(0)).work;
  for (auto _ : state) benchmark::DoNotOptimize(plan_time(made, work));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(plan_times)->Apply(series);

void plan_file_write(benchmark::State& state) {
  const Plan made = balanced_plan(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(plan_text(made));
}
BENCHMARK(plan_file_write)->Arg(2048)->Arg(16384)->Arg(65536)->Unit(benchmark::kMillisecond);

void plan_file_read(benchmark::State& state) {
  const std::string text = plan_text(balanced_plan(state.range(0)));
  for (auto _ : state) {
    Diagnostics diagnostics;
    benchmark::DoNotOptimize(read_plan("plan.json", text, diagnostics));
  }
  state.counters["bytes"] = static_cast<double>(text.size());
}
BENCHMARK(plan_file_read)->Arg(2048)->Arg(16384)->Arg(65536)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
