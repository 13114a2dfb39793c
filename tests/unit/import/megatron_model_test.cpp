#include <string>

#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "tests/unit/import/megatron_runs.h"

namespace hdpsim::test::megatron {
namespace {

using Kind = ImportNote::Kind;

TEST_CASE("widths that nothing states are those that Megatron derives", "[import]") {
  const Transformer plain = model(small);
  CHECK(plain.ffn_hidden == 4 * 1024);
  CHECK(plain.head_dim == 1024 / 16);
  CHECK(plain.kv_heads == 16);
  CHECK(plain.biases);
  CHECK(plain.tied_embeddings);
  CHECK(plain.learned_positions == 2048);
  // 4 x 1024 x 2 / 3 = 2730.7, of which 42 x 64 = 2688 is the multiple below
  CHECK(model(std::string(small) + llama).ffn_hidden == 2688);
  CHECK(model(std::string(small) + llama + "--group-query-attention --num-query-groups 4 --kv-channels 128").kv_heads ==
        4);
}

TEST_CASE("a model has the parameters that its arguments make", "[import]") {
  const std::int64_t h = 1024;
  const std::int64_t layers = 12;
  const std::int64_t v = 393 * 128;
  // With biases: 4 h^2 + 4 h of attention, 8 h^2 + 5 h of an MLP of 4 h, two norms of 2 h; one table of tokens, one of
  // positions, a last norm.
  CHECK(parameter_count(model(small)) == layers * (12 * h * h + 13 * h) + (v + 2048) * h + 2 * h);
  // Without: 4 h^2 of attention, three matrices of the MLP, two norms of h; two tables, a last norm.
  CHECK(parameter_count(model(std::string(small) + llama)) ==
        layers * (4 * h * h + 3 * h * 2688 + 2 * h) + 2 * v * h + h);
}

TEST_CASE("a vocabulary is padded to a multiple of 128 x tp", "[import]") {
  // 50,257 entries: 393 x 128 = 50,304; with tp 8 50 x 1,024 = 51,200
  CHECK(model(small).vocabulary == 393 * 128);
  CHECK(model(std::string(small) + "--tensor-model-parallel-size 8").vocabulary == 50 * 1024);
  CHECK(model(std::string(small) + "--make-vocab-size-divisible-by 1").vocabulary == 50'257);
  // the end of a document is one more entry of the NullTokenizer: 32,001 is rounded up to 251 x 128
  CHECK(model(std::string(small) + "--tokenizer-type NullTokenizer --vocab-size 32000").vocabulary == 251 * 128);
  CHECK(model(std::string(small) + "--tokenizer-type HuggingFaceTokenizer --vocab-size 32000").vocabulary == 32'000);
  CHECK(model(std::string(small) + "--tokenizer-type HuggingFaceTokenizer", {.vocabulary = 128'256}).vocabulary ==
        128'256);
  const Read none = read(std::string(small) + "--tokenizer-type HuggingFaceTokenizer");
  REQUIRE(none.problems.sorted().size() == 1);
  CHECK(none.problems.sorted().front().message == "nothing states the vocabulary of the HuggingFaceTokenizer");
  CHECK(none.problems.sorted().front().help.find("--vocab-size N") == 0);
}

TEST_CASE("a model is of the family that says what its arguments say", "[import]") {
  const auto family = [](const std::string& arguments) {
    return good(std::string(small) + arguments).run.configuration.find("architectures")->items.at(0).text;
  };
  const std::string rope = "--position-embedding-type rope ";
  CHECK(family("") == "GPT2LMHeadModel");
  CHECK(family(llama) == "LlamaForCausalLM");
  CHECK(family(std::string(llama) + "--add-qkv-bias") == "Qwen2ForCausalLM");
  CHECK(family(std::string(llama) + "--qk-layernorm") == "Qwen3ForCausalLM");
  CHECK(family(rope) == "Starcoder2ForCausalLM");
  CHECK(family(rope + "--squared-relu --disable-bias-linear") == "Starcoder2ForCausalLM");
  CHECK(family("--disable-bias-linear") == "MPTForCausalLM");
  CHECK(family("--group-query-attention --num-query-groups 2") == "MPTForCausalLM");
  const std::string experts = std::string(llama) + "--num-experts 8 ";
  CHECK(family(experts) == "MixtralForCausalLM");
  CHECK(family(experts + "--qk-layernorm") == "Qwen3MoeForCausalLM");
  CHECK(family(experts + "--moe-layer-freq 2") == "DeepseekForCausalLM");
  CHECK(family(experts + "--moe-shared-expert-intermediate-size 2688") == "DeepseekForCausalLM");
  CHECK(family(experts + "--add-qkv-bias") == "Glm4MoeForCausalLM");
  CHECK(family(experts + "--multi-latent-attention") == "DeepseekV3ForCausalLM");
}

TEST_CASE("every family has the traits of the arguments", "[import]") {
  const Transformer qwen = model(std::string(small) + llama + "--qk-layernorm --add-qkv-bias");
  CHECK(qwen.qk_norm);
  CHECK(qwen.qkv_biases);
  const Transformer star = model(std::string(small) +
                                 "--position-embedding-type rope --disable-bias-linear "
                                 "--group-query-attention --num-query-groups 2");
  CHECK_FALSE(star.biases);
  CHECK_FALSE(star.gated_mlp);
  CHECK(star.kv_heads == 2);
  CHECK(star.learned_positions == 0);
  const Transformer mpt = model(std::string(small) +
                                "--disable-bias-linear --group-query-attention "
                                "--num-query-groups 2 --ffn-hidden-size 2048");
  CHECK_FALSE(mpt.biases);
  CHECK(mpt.kv_heads == 2);
  CHECK(mpt.ffn_hidden == 2048);
  CHECK(mpt.learned_positions == 2048);
  const Transformer glm = model(std::string(small) + llama +
                                "--num-experts 8 --moe-ffn-hidden-size 512 --add-qkv-bias "
                                "--moe-shared-expert-intermediate-size 1024");
  CHECK(glm.qkv_biases);
  CHECK_FALSE(glm.qk_norm);
  CHECK(glm.moe->experts == 8);
  CHECK(glm.moe->experts_per_token == 2);
  CHECK(glm.moe->expert_hidden == 512);
  CHECK(glm.moe->shared_hidden == 1024);
}

TEST_CASE("layers have experts or windows as a period or a list says", "[import]") {
  const auto with_experts = [](const Transformer& each) {
    std::int64_t count = 0;
    for (const LayerRun& run : each.pattern) {
      const bool has = run.kind == 0 ? each.moe.has_value() : each.others.at(run.kind - 1).moe.has_value();
      if (has) count += run.count;
    }
    return each.pattern.empty() ? (each.moe ? each.layers : 0) : count;
  };
  const std::string experts = std::string(small) + llama + "--num-experts 8 ";
  CHECK(with_experts(model(experts)) == 12);
  CHECK(with_experts(model(experts + "--moe-layer-freq 3")) == 4);
  CHECK(with_experts(model(experts + "--moe-layer-freq ([0]*1+[1]*11)")) == 11);
  CHECK(problems(experts + "--moe-layer-freq [1]*11").at(0).find("is about 11 layers, but the model has 12") !=
        std::string::npos);

  const Transformer windows = model(std::string(small) + llama + "--window-size 127,0 --window-attn-skip-freq 4");
  std::int64_t full = 0;
  for (const LayerRun& run : windows.pattern) {
    const std::int64_t window = run.kind == 0 ? windows.window : windows.others.at(run.kind - 1).window;
    if (window == 0) full += run.count;
    if (window != 0) CHECK(window == 128);  // a token sees itself, too
  }
  CHECK(full == 3);
}

TEST_CASE("what no family says is unsupported, at the argument", "[import]") {
  CHECK(problems(std::string(small) + "\\\n  --swiglu --disable-bias-linear")
            .at(0)
            .find("a gated MLP with learned positions") != std::string::npos);
  CHECK(problems(std::string(small) + "\\\n  --retro-add-retriever") ==
        std::vector<std::string>{"2:3: unsupported: --retro-add-retriever is of a model with a retriever"});
}

TEST_CASE("a hybrid has a branch a layer, by its letters or dealt by ratios", "[import][hybrid]") {
  std::string base(small);
  base.replace(base.find("--num-layers 12 "), 16, "");
  base += "--disable-bias-linear --position-embedding-type none --normalization RMSNorm --squared-relu ";
  const Transformer stated = model(base +
                                   "--hybrid-layer-pattern M-M*-E/*M/*M --num-experts 8 --moe-router-topk 3 "
                                   "--mamba-num-heads 16 --mamba-head-dim 32 --mamba-num-groups 4");
  CHECK(stated.layers == 6 + 2 * 2);
  CHECK(stated.predictions == 3);
  const Transformer mamba = of_kind(stated, layer_runs(stated, 0, 1).front().kind);
  REQUIRE(mamba.linear);
  CHECK(mamba.linear->heads == 16);
  CHECK(mamba.linear->value_dim == 32);
  CHECK(mamba.linear->key_heads == 4);
  CHECK(of_kind(stated, layer_runs(stated, 5, 1).front().kind).moe->experts_per_token == 3);
  // The older name, with bars where stages end.
  const Read older = good(base + "--hybrid-override-pattern 'M-M*|-M-M'");
  CHECK(Read::text(older.run.configuration, "hybrid_override_pattern") == "M-M*-M-M");
  CHECK(older.notes(Kind::unmodelled).size() == 1);
  // Bars end chunks: four of two stages are two virtual stages.
  const Read chunks = good(base + "--hybrid-layer-pattern 'MM|M*|-M|M-M' --pipeline-model-parallel-size 2");
  CHECK(chunks.mesh("virtual_stages") == "2");
  CHECK(problems(base + "--hybrid-layer-pattern 'MM|M*|-M' --pipeline-model-parallel-size 2").size() == 1);
  // Two layers in twelve attend, and each has a third of the ten others before it; five of these are MLPs.
  const Read dealt = good(base + "--num-layers 12 --hybrid-attention-ratio 0.16 --hybrid-mlp-ratio 0.4");
  CHECK(Read::text(dealt.run.configuration, "hybrid_override_pattern") == "M-M*-M-M*-M-");
  CHECK(problems(base + "--num-layers 12 --hybrid-attention-ratio 1.5").size() == 1);
  CHECK(problems(base + "--num-layers 12 --hybrid-attention-ratio 0.8 --hybrid-mlp-ratio 0.3").size() == 1);
  CHECK(problems(base + "--hybrid-attention-ratio 0.2").size() == 1);  // of how many layers
  CHECK(problems(base + "--hybrid-layer-pattern M*M*/MM/M*").size() == 1);
  CHECK(problems(base + "--hybrid-layer-pattern M*M* --window-size 128,0").size() == 1);
  CHECK(problems(base + "--num-layers 12 --hybrid-attention-ratio $R").size() == 1);  // told once
  const Read without = good(base + "--hybrid-layer-pattern M*M*/ --mtp-num-layers 1");
  CHECK(Read::text(without.run.configuration, "num_nextn_predict_layers") == "absent");
  CHECK(without.notes(Kind::unmodelled).size() == 1);
}

TEST_CASE("arguments that contradict the letters of a hybrid are told", "[import][hybrid]") {
  std::string base(small);
  base.replace(base.find("--num-layers 12 "), 16, "");
  base += "--disable-bias-linear --position-embedding-type none --normalization RMSNorm --squared-relu ";
  const auto problem = [&](const std::string& arguments) {
    const auto all = problems(base + arguments);
    REQUIRE(all.size() == 1);
    return all.front();
  };
  CHECK_THAT(problem("--hybrid-layer-pattern MM --hybrid-override-pattern M*"), Catch::Contains("says already"));
  CHECK_THAT(problem("--hybrid-layer-pattern M*M- --hybrid-attention-ratio 0.5"),
             Catch::Contains("is 2 of 4 layers, the pattern has 1"));
  CHECK(problems(base + "--hybrid-layer-pattern M*M- --hybrid-attention-ratio 0.25").empty());
  const std::string bars = "--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M*|M-' ";
  CHECK_THAT(problem(bars + "--num-virtual-stages-per-pipeline-rank 2"), Catch::Contains("bars of the pattern"));
  CHECK_THAT(problem(bars + "--num-layers-per-virtual-pipeline-stage 5"), Catch::Contains("bars of the pattern"));
  CHECK(problems(base + "--pipeline-model-parallel-size 2 --hybrid-layer-pattern 'M*|M*/M|M'").empty());
  const Read modules = good(base + "--hybrid-layer-pattern M*/*-/*- --mtp-num-layers 5");
  CHECK(Read::text(modules.run.configuration, "num_nextn_predict_layers") == "2");
  CHECK_THAT(fmt::format("{}", fmt::join(modules.notes(Kind::assumed), "\n")),
             Catch::Contains("by the 2 modules of --hybrid-layer-pattern"));
  CHECK_THAT(problem("--hybrid-layer-pattern M*E"), Catch::Contains("--num-experts is missing"));
  CHECK_THAT(problem("--num-layers 9000000000000000000 --hybrid-attention-ratio 0.1"),
             Catch::Contains("it must be from 1 to 10000"));
  for (const char* none : {"''", "/M*", "'|||'"}) {
    CHECK_THAT(problem(std::string("--hybrid-layer-pattern ") + none), Catch::Contains("no letter states a layer"));
  }
  CHECK_THAT(problem("--hybrid-layer-pattern M*- --mamba-num-heads 12"),
             Catch::Contains("8 groups of keys do not divide 12 heads"));
  CHECK_THAT(problem("--hybrid-layer-pattern M*- --mamba-head-dim 1000"),
             Catch::Contains("heads of 1000 do not divide the 2048 channels"));
}

TEST_CASE("an indexer of keys is that of DeepSeek-V3.2, and its keys are gathered", "[import][indexer]") {
  const std::string latent = std::string(small) + llama + "--multi-latent-attention --context-parallel-size 2 ";
  const std::string indexer =
      "--experimental-attention-variant dsa --dsa-indexer-n-heads 8 --dsa-indexer-head-dim 32 --dsa-indexer-topk 256 ";
  const Read read =
      good(latent + indexer + "--dsa-indexer-topk-freq 2 --dsa-indexer-use-sparse-loss --dsa-indexer-loss-coeff 0.01");
  CHECK(read.mesh("cp_comm_type") == "all_gather");
  CHECK(Read::text(read.run.configuration, "architectures") == "DeepseekV32ForCausalLM");
  const Transformer made = model(latent + indexer + "--dsa-indexer-topk-freq 2");
  REQUIRE(made.indexer.has_value());
  CHECK(*made.indexer == KeyIndexer{.heads = 8, .head_dim = 32, .keys = 256, .is_shared = true});
  CHECK(made.others.size() == 1);                                     // layers that take the choice of the one before
  CHECK(problems(std::string(small) + llama + indexer).size() == 1);  // without latents
  CHECK(problems(latent + "--experimental-attention-variant dsa").size() == 3);
  CHECK(problems(latent + "--experimental-attention-variant other").size() == 1);
  CHECK(problems(latent + indexer + "--cp-comm-type nonsense").size() == 1);
  CHECK(problems(latent + indexer + "--window-size 128,0").size() == 1);
  const std::size_t assumed = read.notes(Kind::assumed).size();
  CHECK(good(latent + indexer).notes(Kind::assumed).size() == assumed + 1);  // that it learns
  const std::string idle = "--dsa-indexer-use-sparse-loss --dsa-indexer-loss-coeff 0";
  CHECK(good(latent + indexer + idle).notes(Kind::assumed).size() == assumed + 1);
}

TEST_CASE("gated delta nets are those of Qwen3-Next, or of Qwen 3.5 without experts", "[import]") {
  const std::string nets = std::string(small) + llama +
                           "--qk-layernorm --experimental-attention-variant gated_delta_net --linear-attention-freq 4 "
                           "--linear-num-value-heads 8 --linear-num-key-heads 4 --attention-output-gate ";
  const Transformer dense = model(nets);
  CHECK(dense.gated_output);
  REQUIRE(dense.others.size() == 1);
  CHECK(dense.pattern.size() == 6);  // three delta nets, one attention, three times
  CHECK(dense.others[0].linear->heads == 8);
  CHECK(dense.others[0].linear->key_heads == 4);
  const std::string experts = "--num-experts 8 --moe-shared-expert-intermediate-size 512 --moe-shared-expert-gate ";
  CHECK(Read::text(good(nets + experts).run.configuration, "architectures") == "Qwen3NextForCausalLM");
  const Transformer listed = model(nets + "--linear-attention-freq '[1]*2+[0]*10'");
  CHECK(layer_runs(listed, 0, 2).size() == 1);
  CHECK(of_kind(listed, layer_runs(listed, 0, 1).front().kind).linear.has_value());
  CHECK_FALSE(of_kind(listed, layer_runs(listed, 2, 1).front().kind).linear.has_value());
  CHECK(problems(std::string(small) + llama + "--attention-output-gate").size() == 1);
  const std::string without_period = std::string(small) + llama + "--experimental-attention-variant gdn ";
  CHECK(problems(without_period + "--qk-layernorm").size() == 1);
  CHECK(problems(without_period + "--linear-attention-freq 2").size() == 1);  // without norms
}

}  // namespace
}  // namespace hdpsim::test::megatron
