#include <map>

#include "kernels/exec/executor.h"
#include "tests/support/catch.h"
#include "tests/support/recompute_text.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

TEST_CASE("what is computed again gives the same bits", "[exec][recompute]") {
  const Transformer model = four_heads(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Plan plan = packs_and_rings(2, model.layers);
  for (const int tp : {1, 2}) {
    const Training kept = train(model, plan, *tokens, {.tp = tp});
    using enum LayerModule;
    for (const Recompute recompute :
         {Recompute::selective, Recompute::full, Recompute{norm}, Recompute{qkv}, Recompute{projection}, Recompute{mlp},
          Recompute{activation}, Recompute{norm, activation}, Recompute{attention, projection, norm},
          Recompute{norm, qkv, attention, mlp}}) {
      INFO("tp " << tp << ", " << test::recompute_text(recompute));
      const Training again = train(model, plan, *tokens, {.tp = tp, .recompute = recompute});
      CHECK(again.losses == kept.losses);
      CHECK((again.gradients == kept.gradients));  // too many to print
    }
  }
}

// Other shares for unlike micro-batches; one has none.
Plan offloading(Plan plan) {
  const double shares[] = {1, 0.5, 0, 0.8};
  for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) plan.micro_batches[i].offload = shares[i % 4];
  return plan;
}

TEST_CASE("activations that were on the host give the same bits", "[exec][offload]") {
  for (const std::int64_t layers : {2, 4}) {  // two stay on the device
    const Transformer model = four_heads(layers);
    const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
    for (const auto& [hdp, way] : {std::pair<std::int64_t, Way>{1, {}},
                                   {2, {}},
                                   {2, {.tp = 2}},
                                   {2, {.recompute = Recompute::selective}},
                                   {2, {.recompute = {LayerModule::norm, LayerModule::mlp}}},
                                   {2, {.recompute = {LayerModule::attention, LayerModule::projection}}},
                                   {2, {.recompute = Recompute::full}}}) {
      INFO(layers << " layers, hdp " << hdp << ", tp " << way.tp << ", recompute "
                  << test::recompute_text(way.recompute));
      const Plan plan = packs_and_rings(hdp, layers);
      const Training stays = train(model, plan, *tokens, way);
      const Training travels = train(model, offloading(plan), *tokens, way);
      CHECK(travels.losses == stays.losses);
      CHECK((travels.gradients == stays.gradients));
    }
  }
}

TEST_CASE("copies run beside what computes: out in the order of layers, and back last in first out",
          "[exec][offload]") {
  constexpr std::int64_t layers = 6;
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  Plan plan = one_rank_plan(layers, {400, 50});
  plan.micro_batches[0].offload = 1;
  const Timeline timeline = train(model, {plan}, *tokens).timelines.at(0);
  CHECK(timeline.ranks[0].total() == timeline.step_time);

  std::vector<const InstructionRecord*> out;
  std::vector<const InstructionRecord*> back;
  for (const InstructionRecord& record : timeline.instructions) {
    if (record.stream == Stream::d2h) out.push_back(&record);
    if (record.stream == Stream::h2d) back.push_back(&record);
    CHECK(record.begin <= record.end);
  }
  // Layers 0 to 3 of 6, which backward reaches in its iterations 2 to 5.
  const auto iterations = [](const std::vector<const InstructionRecord*>& records) {
    std::vector<std::uint32_t> found;
    for (const InstructionRecord* const record : records) found.push_back(record->iteration);
    return found;
  };
  CHECK(iterations(out) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(iterations(back) == std::vector<std::uint32_t>{2, 3, 4, 5});
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<InstructionRecord>> computed;  // by block and iteration
  for (const InstructionRecord& record : timeline.instructions) {
    if (record.stream == Stream::compute) computed[{record.block, record.iteration}].push_back(record);
  }
  // A layer takes the place of that two before it, which must have gone; and needs what it has kept.
  for (const InstructionRecord* const record : out) {
    CHECK(record->begin >= computed.at({record->block, record->iteration}).back().end);
    CHECK(record->end <= computed.at({record->block, record->iteration + 2}).front().begin);
  }
  for (const InstructionRecord* const record : back) {
    CHECK(record->begin >= computed.at({record->block, record->iteration - 2}).back().end);
    CHECK(record->end <= computed.at({record->block, record->iteration}).front().begin);
  }
}

}  // namespace
}  // namespace hdpsim::kernels::exec
