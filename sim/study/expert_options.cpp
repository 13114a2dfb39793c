#include "sim/study/expert_options.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "sim/document/reader.h"
#include "sim/study/study_paths.h"

namespace hdpsim {
namespace {

constexpr Range exponents{0, 100};
constexpr Range capacity_factors{0.01, 1e5};
constexpr Range loads_of_experts{0, 1e15};

class ExpertReader {
 public:
  ExpertReader(MixtureOfExperts moe, Diagnostics& diagnostics) : moe_(std::move(moe)), diagnostics_(diagnostics) {}

  ExpertOptions read(const Value& value) {
    MapReader map(value, "the experts", diagnostics_);
    if (const Value* across = map.find("across")) {
      const auto choice = read_choice(*across, "way across ranks", expert_span_names(), diagnostics_);
      options_.across = static_cast<ExpertSpan>(choice.value_or(0));
    }
    if (const Value* factor = map.find("capacity_factor")) read_capacity_factor(*factor);
    if (const Value* routing = map.find("routing")) read_routing(*routing);
    map.finish();
    return std::move(options_);
  }

 private:
  void read_capacity_factor(const Value& value) {
    if (value.text == "none") return;
    if (const auto factor = read_in<double>(value, "'capacity_factor'", capacity_factors, diagnostics_)) {
      options_.layout.capacity_factor = *factor;
    }
  }

  void read_routing(const Value& value) {
    if (value.is_scalar()) {
      (void)read_choice(value, "routing", {"uniform"}, diagnostics_);
      return;
    }
    MapReader map(value, "the routing", diagnostics_);
    const auto exponent = map.optional_in<double>("zipf", exponents);
    const auto seed = map.optional_in<std::int64_t>("seed", {0, 9e15});
    const Value* file = map.find("file");
    map.finish();
    if (value.is_map() && (map.value().find("zipf") == nullptr) == (file == nullptr)) {
      map.error("routing is 'uniform', a 'zipf' exponent or a 'file'", "write routing: {zipf: 0.5}");
      return;
    }
    const bool known = moe_.experts > 0 && moe_.experts_per_token <= moe_.experts;
    if (exponent && known) {
      options_.layout.shares = zipf_shares(moe_, *exponent, static_cast<std::uint64_t>(seed.value_or(1)));
    }
    if (file != nullptr && known) read_shares(*file);
  }

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

  double read_load(const Value& item) {
    return read_in<double>(item, "a load", loads_of_experts, diagnostics_).value_or(0);
  }

  static constexpr double tolerance = 1e-9;

  MixtureOfExperts moe_;
  Diagnostics& diagnostics_;
  ExpertOptions options_;
};

}  // namespace

std::string ExpertOptions::text() const {
  if (layout.ep == 1) return "";
  const std::string how = across == ExpertSpan::inside
                              ? ""
                              : fmt::format(" ({})", expert_span_names().at(static_cast<std::size_t>(across)));
  return fmt::format(" x ep {}{}", layout.ep, how);
}

ExpertOptions read_experts(const Value& study, const Transformer& model, std::int64_t ep, Diagnostics& diagnostics) {
  const Value* value = study.find("moe");
  if (value != nullptr && value->is_null()) value = nullptr;
  const bool is_known = model.layers > 0;  // otherwise its problems are told
  if (value != nullptr && is_known && !model.moe) {
    diagnostics.error(value->position, fmt::format("{} has no experts", model.name), "remove 'moe'");
  }
  ExpertOptions options;
  if (value != nullptr && (model.moe || !is_known)) {
    options = ExpertReader(model.moe.value_or(MixtureOfExperts{}), diagnostics).read(*value);
  }
  options.layout.ep = ep;
  return options;
}

}  // namespace hdpsim
