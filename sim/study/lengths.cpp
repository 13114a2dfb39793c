#include "sim/study/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/document/key_table.h"
#include "sim/study/media_keys.h"
#include "sim/study/study_paths.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {
namespace {

constexpr Range token_counts{1, static_cast<double>(longest_length)};

/// The contents of a map of lengths, from any source.
struct LengthsText {
  std::string name;  ///< Name of the preset or the file.
  TraceOptions trace;
  std::optional<TraceOrder> order;
  MixtureOptions mixture;
  Media media;
  std::int64_t fixed = 0;
  Lognormal lognormal;
  LognormalPareto lognormal_pareto;
};

using LengthsKeys = KeyTable<LengthsText>;

// The keys of a lognormal, with or without a Pareto tail.
template <class Parameters>
KeyTable<Parameters> body_keys(std::string what) {
  KeyTable<Parameters> keys(std::move(what));
  keys.number("mu", at(&Parameters::mu), "mean of ln(tokens)", {.required = true});
  keys.number("sigma", at(&Parameters::sigma), "standard deviation of ln(tokens)", {.required = true});
  keys.count("min", token_counts, at(&Parameters::min), "the shortest length", {.unit = "tokens"});
  keys.count("max", token_counts, at(&Parameters::max), "the longest length", {.unit = "tokens"});
  return keys;
}

KeyTable<LognormalPareto> tailed_keys() {
  auto keys = body_keys<LognormalPareto>("a lognormal with a Pareto tail");
  keys.count("tail_from", token_counts, at(&LognormalPareto::tail_from), "where the tail begins",
             {.unit = "tokens", .required = true});
  keys.number("alpha", at(&LognormalPareto::alpha), "the tail's exponent", {.required = true});
  keys.number("tail_share", at(&LognormalPareto::tail_share), "share of the documents in the tail",
              {.otherwise = "as much as the lognormal has there"});
  return keys;
}

void add_mixture(LengthsKeys& keys) {
  keys.word("edges", "convention of class edges", {{"upper", ClassEdges::upper}, {"lower", ClassEdges::lower}},
            at(&LengthsText::mixture, &MixtureOptions::edges), "which edge of a mixture's class its label is");
  keys.count("lowest", Range{16, token_counts.most}, at(&LengthsText::mixture, &MixtureOptions::lowest),
             "the shortest length of a mixture's lowest class", {.unit = "tokens"});
}

void add_media(LengthsKeys& keys) {
  keys.map("media", media_table(), at(&LengthsText::media),
           "images, video and audio of a sample beside its text, whose length the other keys state: the length of the "
           "sequence is the sum",
           {.otherwise = "none"});
}

LengthsKeys preset_keys() {
  LengthsKeys keys("the lengths");
  keys.text("preset", at(&LengthsText::name), "a distribution of `traces`");
  add_mixture(keys);
  add_media(keys);
  return keys;
}

LengthsKeys file_keys() {
  std::vector<std::pair<std::string, std::optional<TraceFormat>>> formats;
  for (const std::string& name : trace_format_names()) formats.emplace_back(name, trace_format(name));
  LengthsKeys keys("the lengths");
  keys.text("file", at(&LengthsText::name),
            "a file of lengths or of a distribution, in any format of `traces/README.md`");
  keys.text("column", at(&LengthsText::trace, &TraceOptions::column), "column or field of the lengths",
            {.otherwise = "by its name"});
  keys.text("step_column", at(&LengthsText::trace, &TraceOptions::step_column), "column or field of the steps",
            {.otherwise = "`step`, where there is one"});
  keys.word("format", "format", formats, at(&LengthsText::trace, &TraceOptions::format), "the file's format",
            {.otherwise = "by its extension and columns"});
  keys.word(
      "order", "order of documents",
      {{"shuffle", std::optional(TraceOrder::shuffle)}, {"file", std::optional(TraceOrder::file)}},
      at(&LengthsText::order),
      "the order in which documents are read, on every pass the same: at random by `data.seed`, or as they are in "
      "the file; steps of a file keep theirs",
      {.otherwise = "`shuffle`; `file` in a replay"});
  keys.count("neighbours", Range{1, 1e6}, at(&LengthsText::trace, &TraceOptions::edges, &EdgeOptions::neighbours),
             "of `format: edges`, the most earlier neighbours of a node in its sequence");
  keys.count("interactions", Range{1, 1e9}, at(&LengthsText::trace, &TraceOptions::edges, &EdgeOptions::interactions),
             "of `format: edges`, the interactions of a step, each of which has three sequences",
             {.otherwise = "steps of `data.tokens_per_step`"});
  add_mixture(keys);
  add_media(keys);
  return keys;
}

LengthsKeys fixed_keys() {
  LengthsKeys keys("the lengths");
  keys.count("fixed", token_counts, at(&LengthsText::fixed), "all sequences have this length",
             {.unit = "tokens", .otherwise = "none"});
  add_media(keys);
  return keys;
}

LengthsKeys lognormal_keys() {
  static const KeyTable<Lognormal> body = body_keys<Lognormal>("a lognormal");
  LengthsKeys keys("the lengths");
  keys.map("lognormal", body, at(&LengthsText::lognormal), "the logarithm of a length is normally distributed");
  add_media(keys);
  return keys;
}

LengthsKeys lognormal_pareto_keys() {
  static const KeyTable<LognormalPareto> body = tailed_keys();
  LengthsKeys keys("the lengths");
  keys.map("lognormal_pareto", body, at(&LengthsText::lognormal_pareto), "the same with a Pareto tail");
  add_media(keys);
  return keys;
}

enum class Source : std::uint8_t { preset, file, fixed, lognormal, lognormal_pareto };

// The first key of a table names its source; the others belong to it.
const std::array<LengthsKeys, 5>& tables() {
  static const std::array<LengthsKeys, 5> made = {preset_keys(), file_keys(), fixed_keys(), lognormal_keys(),
                                                  lognormal_pareto_keys()};
  return made;
}

// A text is the path of a file.
Value as_map(const Value& lengths) {
  if (!lengths.is_scalar() || lengths.text.empty()) return lengths;
  Value map = Value::map(lengths.position);
  map.set("file", lengths);
  return map;
}

// Quotes a text, so that YAML does not interpret it.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result.append(c == '\'' ? 2 : 1, c);
  return result + "'";
}

class LengthsReader {
 public:
  LengthsReader(const Value& value, const std::filesystem::path& presets, Diagnostics& diagnostics)
      : value_(as_map(value)), presets_(presets), diagnostics_(diagnostics) {}

  std::optional<Lengths> read() {
    if (!value_.is_map()) {
      const MapReader reports_it(value_, "the lengths", diagnostics_);
      return std::nullopt;
    }
    std::vector<std::size_t> given;
    for (std::size_t i = 0; i < tables().size(); ++i) {
      const Value* found = value_.find(tables()[i].texts().front().name);
      if (found != nullptr && !found->is_null()) given.push_back(i);
    }
    if (given.size() != 1) {
      diagnostics_.error(value_.position,
                         "lengths come from one source: 'preset', 'file', 'lognormal', 'lognormal_pareto' or 'fixed'",
                         "write lengths: {preset: github}");
      return std::nullopt;
    }
    Diagnostics found;
    (void)tables()[given[0]].read(value_, text_, found);
    diagnostics_.append(found);
    if (static_cast<Source>(given[0]) == Source::file) check_keys_of_edges();
    if (!found.empty()) return std::nullopt;
    std::optional<Lengths> lengths = made_of(static_cast<Source>(given[0]));
    const Value* media = value_.find("media");
    if (lengths && media != nullptr && !media->is_null()) add_media_to(*lengths);
    return lengths;
  }

 private:
  // The keys of graphs and those of columns exclude each other.
  void check_keys_of_edges() {
    const bool is_graph = text_.trace.format == TraceFormat::edges;
    const auto refuse = [&](const char* key, const char* message, const char* help) {
      if (const Value* stated = value_.find(key)) {
        diagnostics_.error(stated->position, fmt::format("'{}' {}", key, message), help);
      }
    };
    for (const char* key : {"neighbours", "interactions"}) {
      if (!is_graph) refuse(key, "belongs to a list of interactions", "write format: edges beside it");
    }
    for (const char* key : {"column", "step_column"}) {
      if (is_graph) refuse(key, "names nothing in a list of interactions", "remove it: lengths follow from the graph");
    }
  }

  void add_media_to(Lengths& lengths) {
    const Value& media = *value_.find("media");
    if (!text_.media.any()) {
      diagnostics_.error(media.position, "there are no media",
                         "write media: {images: ...}, {video: ...} or {audio: ...}");
    } else if (lengths.trace != nullptr) {
      diagnostics_.error(media.position, "media are added to lengths that are drawn, and those of a file are not",
                         "make a distribution of the file: hdpsim trace convert FILE --to quantiles");
    } else {
      lengths.distribution = with_media(*lengths.distribution, text_.media);
    }
  }

  std::optional<Lengths> made_of(Source source) {
    switch (source) {
      case Source::preset:
        return guarded("preset", [&] { return Lengths{nullptr, load_preset(text_.name, presets_, text_.mixture)}; });
      case Source::file:
        return from_file();
      case Source::fixed:
        return Lengths{nullptr, make_distribution(std::vector<LengthBin>{{text_.fixed, text_.fixed, 1}})};
      case Source::lognormal:
        return guarded("lognormal", [&] { return Lengths{nullptr, make_distribution(text_.lognormal)}; });
      case Source::lognormal_pareto:
        break;
    }
    return guarded("lognormal_pareto", [&] { return Lengths{nullptr, make_distribution(text_.lognormal_pareto)}; });
  }

  // Reports the errors of the trace library, which may have no position in the study.
  std::optional<Lengths> guarded(std::string_view key, const std::function<Lengths()>& make) {
    try {
      return make();
    } catch (const InputError& error) {
      for (Diagnostic problem : error.diagnostics().sorted()) {
        if (problem.position.file.empty()) problem.position = value_.find(key)->position;
        diagnostics_.error(problem.position, problem.message, problem.help);
      }
      return std::nullopt;
    }
  }

  std::optional<Lengths> from_file() {
    const Value& file = *value_.find("file");
    const std::filesystem::path path = path_of(file);
    if (!is_there(path)) {
      const bool is_preset = is_there(presets_ / (file.text + ".csv"));
      diagnostics_.error(file.position, fmt::format("there is no file {}", path.string()),
                         is_preset ? fmt::format("write {{preset: {}}}", file.text) : "");
      return std::nullopt;
    }
    return guarded("file", [&] { return load_lengths(path, text_.trace, text_.mixture); });
  }

  const Value value_;
  const std::filesystem::path& presets_;
  Diagnostics& diagnostics_;
  LengthsText text_;
};

}  // namespace

KeyShape lengths_shape() {
  std::vector<KeyText> keys;
  for (const LengthsKeys& table : tables()) {
    for (const KeyText& key : table.texts()) {
      const auto is_same = [&](const KeyText& other) { return other.name == key.name; };
      if (std::none_of(keys.begin(), keys.end(), is_same)) keys.push_back(key);
    }
  }
  return map_shape(std::move(keys));
}

std::optional<Lengths> read_lengths(const Value& value, const std::filesystem::path& presets,
                                    Diagnostics& diagnostics) {
  Diagnostics found;
  std::optional<Lengths> lengths = LengthsReader(value, presets, found).read();
  diagnostics.append(found);
  return found.empty() ? lengths : std::nullopt;
}

std::optional<TraceOrder> order_of_lengths(const Value& lengths) {
  LengthsText text;
  Diagnostics told_before;
  const Value map = as_map(lengths);
  if (map.find("file") != nullptr) {
    (void)tables()[static_cast<std::size_t>(Source::file)].read(map, text, told_before);
  }
  return text.order;
}

std::vector<std::string> with_lengths(const std::string& file, const std::string& column,
                                      const std::vector<std::string>& overrides) {
  if (file.empty() && !column.empty()) throw InputError("--column needs a file of lengths", "name it with --lengths");
  if (file == "-") throw InputError("a study repeats itself from a file: save what comes from standard input");
  std::vector<std::string> all;
  if (!file.empty()) {
    const std::string which = column.empty() ? "" : fmt::format(", column: {}", quoted(column));
    all.push_back(fmt::format("data.lengths={{file: {}{}}}", quoted(file), which));
  }
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

std::uint64_t fingerprint_of_lengths(const Value& lengths, const std::filesystem::path& presets) {
  const Value value = as_map(lengths);
  if (const Value* file = value.find("file")) return fingerprint_of_file(path_of(*file));
  if (const Value* preset = value.find("preset")) return fingerprint_of_file(presets / (preset->text + ".csv"));
  return 0;
}

}  // namespace hdpsim
