#include "sim/study/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/document/reader.h"
#include "sim/study/study_paths.h"
#include "sim/trace/preset.h"

namespace hdpsim {
namespace {

constexpr double most_tokens = static_cast<double>(longest_length);

class LengthsReader {
 public:
  LengthsReader(const Value& value, const std::filesystem::path& presets, Diagnostics& diagnostics)
      : map_(value, "the lengths", diagnostics), presets_(presets), diagnostics_(diagnostics) {}

  std::optional<Lengths> read() {
    const std::array kinds = {map_.find("preset"), map_.find("file"), map_.find("lognormal"),
                              map_.find("lognormal_pareto"), map_.find("fixed")};
    const auto given = kinds.size() - static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), nullptr));
    if (map_.value().is_map() && given != 1) {
      map_.error("lengths come from one source: 'preset', 'file', 'lognormal', 'lognormal_pareto' or 'fixed'",
                 "write lengths: {preset: github}");
    }
    if (given != 1) return std::nullopt;
    if (kinds[0] != nullptr) return from_preset(*kinds[0]);
    if (kinds[1] != nullptr) return from_file(*kinds[1]);
    if (kinds[4] != nullptr) return from_fixed();
    return kinds[2] != nullptr ? from_lognormal(*kinds[2]) : from_lognormal_pareto(*kinds[3]);
  }

 private:
  // What the trace library throws has no place in the study.
  std::optional<Lengths> guarded(const Value& where, const std::function<Lengths()>& make) {
    try {
      return make();
    } catch (const InputError& error) {
      for (Diagnostic problem : error.diagnostics().sorted()) {
        if (problem.position.file.empty()) problem.position = where.position;
        diagnostics_.error(problem.position, problem.message, problem.help);
      }
      return std::nullopt;
    }
  }

  MixtureOptions mixture_options() {
    MixtureOptions options;
    if (const Value* edges = map_.find("edges")) {
      const auto choice = read_choice(*edges, "convention of class edges", {"upper", "lower"}, diagnostics_);
      options.edges = choice == 1 ? ClassEdges::lower : ClassEdges::upper;
    }
    options.lowest = map_.optional_in<std::int64_t>("lowest", {1, most_tokens}).value_or(options.lowest);
    return options;
  }

  std::optional<Lengths> from_preset(const Value& preset) {
    const MixtureOptions mixture = mixture_options();
    map_.finish();
    const auto name = hdpsim::read<std::string>(preset, diagnostics_);
    if (!name) return std::nullopt;
    return guarded(preset, [&] { return Lengths{nullptr, load_preset(*name, presets_, mixture)}; });
  }

  std::optional<Lengths> from_file(const Value& file) {
    TraceOptions options;
    if (const Value* format = map_.find("format")) {
      const std::vector<std::string> names = trace_format_names();
      if (const auto choice = read_choice(*format, "format", names, diagnostics_))
        options.format = trace_format(names[*choice]);
    }
    options.column = map_.optional<std::string>("column", "");
    options.step_column = map_.optional<std::string>("step_column", "");
    const MixtureOptions mixture = mixture_options();
    map_.finish();
    if (!hdpsim::read<std::string>(file, diagnostics_)) return std::nullopt;
    const std::filesystem::path path = path_of(file);
    if (!is_there(path)) {
      diagnostics_.error(file.position, fmt::format("there is no file {}", path.string()));
      return std::nullopt;
    }
    return guarded(file, [&] { return load_lengths(path, options, mixture); });
  }

  std::optional<Lengths> from_fixed() {
    const auto tokens = map_.required_in<std::int64_t>("fixed", {1, most_tokens});
    map_.finish();
    if (!tokens) return std::nullopt;
    return Lengths{nullptr, make_distribution(std::vector<LengthBin>{{*tokens, *tokens, 1}})};
  }

  std::optional<Lengths> from_lognormal(const Value& value) {
    map_.finish();
    MapReader map(value, "a lognormal", diagnostics_);
    Lognormal parameters;
    read_body(map, parameters);
    map.finish();
    return guarded(value, [&] { return Lengths{nullptr, make_distribution(parameters)}; });
  }

  std::optional<Lengths> from_lognormal_pareto(const Value& value) {
    map_.finish();
    MapReader map(value, "a lognormal with a Pareto tail", diagnostics_);
    LognormalPareto parameters;
    read_body(map, parameters);
    parameters.tail_from = map.required_in<std::int64_t>("tail_from", {1, most_tokens}).value_or(1);
    parameters.alpha = map.required<double>("alpha").value_or(parameters.alpha);
    parameters.tail_share = map.optional<double>("tail_share");
    map.finish();
    return guarded(value, [&] { return Lengths{nullptr, make_distribution(parameters)}; });
  }

  template <class Parameters>
  static void read_body(MapReader& map, Parameters& parameters) {
    parameters.mu = map.required<double>("mu").value_or(parameters.mu);
    parameters.sigma = map.required<double>("sigma").value_or(parameters.sigma);
    parameters.min = map.optional_in<std::int64_t>("min", {1, most_tokens}).value_or(parameters.min);
    parameters.max = map.optional_in<std::int64_t>("max", {1, most_tokens}).value_or(parameters.max);
  }

  MapReader map_;
  const std::filesystem::path& presets_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<Lengths> read_lengths(const Value& value, const std::filesystem::path& presets,
                                    Diagnostics& diagnostics) {
  Diagnostics found;
  std::optional<Lengths> lengths = LengthsReader(value, presets, found).read();
  diagnostics.append(found);
  return found.empty() ? lengths : std::nullopt;
}

std::uint64_t fingerprint_of_lengths(const Value& value, const std::filesystem::path& presets) {
  if (const Value* file = value.find("file")) return fingerprint_of_file(path_of(*file));
  if (const Value* preset = value.find("preset")) return fingerprint_of_file(presets / (preset->text + ".csv"));
  return 0;
}

}  // namespace hdpsim
