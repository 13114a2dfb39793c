#include "sim/study/expert_options.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/text.h"
#include "sim/document/key_table.h"
#include "sim/model/shares.h"
#include "sim/study/compression_options.h"
#include "sim/study/mesh_options.h"
#include "sim/study/study_paths.h"

namespace hdpsim {
namespace {

constexpr Range exponents{0, 100};
constexpr Range capacity_factors{0.01, 1e5};
constexpr Range loads_of_experts{0, 1e15};

/// Options during reading, for a model whose experts may be unknown.
struct ExpertReading {
  ExpertOptions options;
  MixtureOfExperts moe;
  const Value* compression = nullptr;  ///< Read behind all others.
};

struct RoutingText {
  std::optional<double> zipf;
  std::uint64_t seed = 1;
  const Value* file = nullptr;
};

const KeyTable<RoutingText>& routing_table() {
  static const auto made = [] {
    KeyTable<RoutingText> routing("the routing");
    routing.number("zipf", exponents, at(&RoutingText::zipf), "the exponent of a Zipf distribution over the experts",
                   {.otherwise = "a `file` says"});
    routing.count("seed", {0, 9e15}, at(&RoutingText::seed), "the seed of which expert is how popular");
    routing.add(
        {"file", shape_of(KeyShape::Kind::text), "", "a list of each expert's counts", {.otherwise = "`zipf` says"}},
        [](const Value& value, RoutingText& read, Diagnostics&) { read.file = &value; });
    return routing;
  }();
  return made;
}

void read_capacity_factor(const Value& value, ExpertReading& experts, Diagnostics& diagnostics) {
  if (value.text == "none") return;
  if (const auto factor = read_in<double>(value, "'capacity_factor'", capacity_factors, diagnostics)) {
    experts.options.layout.capacity_factor = *factor;
  }
}

/// Reads a file of loads.
class LoadReader {
 public:
  LoadReader(ExpertReading& experts, Diagnostics& diagnostics)
      : moe_(experts.moe), options_(experts.options), diagnostics_(diagnostics) {}

  void read_shares(const Value& value) {
    const std::string path = path_of(value).string();
    if (!is_there(path)) return diagnostics_.error(value.position, fmt::format("there is no file {}", path));
    const Value list = load_document(path, diagnostics_);
    if (!list.is_sequence() || std::ssize(list.items) != moe_.experts) {
      diagnostics_.error(list.position,
                         fmt::format("the load must be a list of {} numbers, one an expert, found {}", moe_.experts,
                                     list.is_sequence() ? fmt::format("{} of them", list.items.size())
                                                        : std::string(kind_name(list.kind))));
      return;
    }
    std::vector<double> loads;
    for (const Value& item : list.items) loads.push_back(read_load(item));
    const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
    if (!(sum > 0)) return diagnostics_.error(list.position, "no expert has any load");
    const double most = 1 / static_cast<double>(moe_.experts_per_token);
    for (std::size_t i = 0; i < loads.size(); ++i) {
      loads[i] /= sum;
      if (loads[i] <= most + tolerance) continue;
      diagnostics_.error(
          list.items[i].position,
          fmt::format("expert {} has {:.1f} % of all copies: a token takes {} different experts, so none "
                      "has more than {:.1f} %",
                      i, 100 * loads[i], moe_.experts_per_token, 100 * most));
    }
    options_.layout.shares = std::move(loads);
  }

 private:
  double read_load(const Value& item) {
    return read_in<double>(item, "a load", loads_of_experts, diagnostics_).value_or(0);
  }

  static constexpr double tolerance = 1e-9;

  const MixtureOfExperts& moe_;
  ExpertOptions& options_;
  Diagnostics& diagnostics_;
};

void read_routing(const Value& value, ExpertReading& experts, Diagnostics& diagnostics) {
  if (value.is_scalar()) {
    (void)read_choice(value, "routing", {"uniform"}, diagnostics);
    return;
  }
  RoutingText routing;
  (void)routing_table().read(value, routing, diagnostics);
  if (value.is_map() && (value.find("zipf") == nullptr) == (routing.file == nullptr)) {
    diagnostics.error(value.position, "routing is 'uniform', a 'zipf' exponent or a 'file'",
                      "write routing: {zipf: 0.5}");
    return;
  }
  const MixtureOfExperts& moe = experts.moe;
  const bool known = moe.experts > 0 && moe.experts_per_token <= moe.experts;
  if (routing.zipf && known) experts.options.layout.shares = zipf_shares(moe, *routing.zipf, routing.seed);
  if (routing.file != nullptr && known) LoadReader(experts, diagnostics).read_shares(*routing.file);
}

const KeyTable<ExpertReading>& expert_table() {
  static const auto made = [] {
    KeyTable<ExpertReading> keys("the experts");
    std::vector<std::pair<std::string, ExpertSpan>> spans;
    for (const std::string& name : expert_span_names()) spans.emplace_back(name, static_cast<ExpertSpan>(spans.size()));
    keys.word("across", "way across ranks", spans, at(&ExpertReading::options, &ExpertOptions::across),
              "where an expert group lies and what unequal ranks do",
              {.written = written_with_experts, .see = "experts"});
    KeyShape factor = shape_of(KeyShape::Kind::number);
    factor.range = capacity_factors;
    factor.limits = range_text(capacity_factors);
    keys.add(
        {"capacity_factor",
         either_shape({word_shape({"none"}), factor}),
         "none",
         "an expert takes at most this many times the even share of copies, and drops the others; `none`: it takes "
         "all",
         {.written = written_with_experts}},
        read_capacity_factor);
    keys.word(
        "dispatch", "way of copies",
        {{"per_copy", ExpertDispatch::per_copy},
         {"per_node", ExpertDispatch::per_node},
         {"hybrid_ep", ExpertDispatch::hybrid_ep}},
        at(&ExpertReading::options, &ExpertOptions::layout, &ExpertLayout::dispatch),
        "`per_copy`: each copy of a token travels by itself, in NCCL's all-to-all; `per_node`: a token travels once "
        "to each node that has some of its experts and is forwarded there (DeepEP); `hybrid_ep`: so, too, and its "
        "kernels also sort and pad what they bring (Hybrid-EP)",
        {.written = written_with_experts, .see = "experts"});
    keys.kept({"compression",
               either_shape({word_shape({"none"}), map_shape(compression_keys())}),
               "none",
               "of copies with equal hashes only the mean travels, and is computed (LSH-MoE)",
               {.written = written_with_experts, .see = "compressed-experts", .mechanism = "expert-compression"}},
              &ExpertReading::compression);
    keys.flag("fp8_sent", at(&ExpertReading::options, &ExpertOptions::layout, &ExpertLayout::fp8_sent),
              "tokens, and in backward gradients, travel to their experts in fp8 with a scale for every 128 columns; "
              "results travel back in bf16. Needs `kernels.linear` in fp8",
              {.written = written_with_experts});
    keys.flag("router_padding", at(&ExpertReading::options, &ExpertOptions::layout, &ExpertLayout::router_padding),
              "with products in fp8, the router pads what each expert gets to whole blocks "
              "(Megatron-LM's `--moe-router-padding-for-quantization`); `false`: kernels copy it for that, and back, "
              "but under `hybrid_ep`",
              {.written = written_with_experts, .see = "experts"});
    keys.add({"routing",
              either_shape({word_shape({"uniform"}), map_shape(routing_table().texts())}),
              "uniform",
              "what the router sends to each expert",
              {.written = written_with_experts}},
             read_routing);
    return keys;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& expert_keys() {
  return expert_table().texts();
}

std::string ExpertOptions::text() const {
  if (layout.ep == 1) return "";
  std::vector<std::string> how;
  if (across != ExpertSpan::inside) how.push_back(expert_span_names().at(static_cast<std::size_t>(across)));
  if (layout.dispatch == ExpertDispatch::per_node) how.emplace_back("once per node");
  if (layout.dispatch == ExpertDispatch::hybrid_ep) how.emplace_back("Hybrid-EP");
  if (layout.fp8_sent) how.emplace_back("in fp8");
  if (layout.compression) how.push_back(fmt::format("compressed to {:.3g} %", 100 * layout.compression->rate));
  const std::string cut = layout.etp > 1 ? fmt::format(" x etp {}", layout.etp) : "";
  return fmt::format(" x ep {}{}{}", layout.ep, cut, how.empty() ? "" : fmt::format(" ({})", joined(how, ", ")));
}

ExpertOptions read_experts(const Value& study, const Transformer& model, const ExpertDivision& division,
                           Diagnostics& diagnostics) {
  const Value* value = study.find("moe");
  if (value != nullptr && value->is_null()) value = nullptr;
  const bool is_known = model.layers > 0;  // otherwise its problems have been reported
  if (value != nullptr && is_known && !model.moe) {
    diagnostics.error(value->position, fmt::format("{} has no experts", model.name), "remove 'moe'");
  }
  if (value != nullptr && (model.moe || !is_known)) {
    ExpertReading experts{{}, model.moe.value_or(MixtureOfExperts{})};
    experts.options.layout.ep = division.ep;
    experts.options.layout.etp = division.etp;
    (void)expert_table().read(*value, experts, diagnostics);
    if (experts.compression != nullptr) {
      const std::int64_t columns = is_known ? copy_width(model) : 0;
      read_compression(*experts.compression, columns, experts.options.layout, diagnostics);
    }
    return std::move(experts.options);
  }
  ExpertOptions options;
  options.layout.ep = division.ep;
  options.layout.etp = division.etp;
  return options;
}

}  // namespace hdpsim
