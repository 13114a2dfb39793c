#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "sim/base/text.h"
#include "sim/trace/impl/column_meaning.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

/// Columns of a published trace of requests. A training on them uses the prompt and the generated text.
struct PublishedColumns {
  std::string_view prompt;
  std::string_view generated;
};

// traces/README.md says where each is documented.
constexpr std::array published = {
    PublishedColumns{"input_length", "output_length"},            // Mooncake, Bailian
    PublishedColumns{"ContextTokens", "GeneratedTokens"},         // Azure LLM inference
    PublishedColumns{"Request tokens", "Response tokens"},        // BurstGPT
    PublishedColumns{"input_tokens", "output_tokens"},            // ServeGen
    PublishedColumns{"num_prefill_tokens", "num_decode_tokens"},  // vidur
};

// Names of the column that holds the lengths in files of tokenizers and of training frameworks, in lower case. The
// first two may stand beside others of them.
constexpr std::array<std::string_view, 14> usual_names = {
    "length", "tokens",     "n_tokens",        "num_tokens",      "token_count",      "ntokens",    "seq_len",
    "seqlen", "seq_length", "sequence_length", "document_length", "input_ids_length", "doc_length", "lengths"};
constexpr std::size_t surest_names = 2;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_usual(const std::string& name) {
  return std::find(usual_names.begin(), usual_names.end(), lower(name)) != usual_names.end();
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-") == std::string::npos;
}

std::string columns_help(const std::vector<std::string>& names, const std::string& wanted) {
  const std::string best = closest(wanted, names);
  return fmt::format("{}the columns are: {}", best.empty() ? "" : fmt::format("did you mean '{}'? ", best),
                     joined(names, ", "));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// `a+b` means two columns, unless one column has that name.
std::vector<std::string> named_columns(const std::string& wanted, const std::vector<std::string>& names) {
  if (wanted.empty()) return {};
  if (contains(names, wanted)) return {wanted};
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t plus = wanted.find('+', at);
    parts.emplace_back(trimmed(std::string_view(wanted).substr(at, plus == std::string::npos ? plus : plus - at)));
    at = plus == std::string::npos ? plus : plus + 1;
  }
  return parts;
}

// `length`, `tokens`, or the only column: there is no doubt.
std::vector<std::string> sure_columns(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < surest_names; ++i) {
    if (contains(names, usual_names[i])) return {std::string(usual_names[i])};
  }
  return names.size() == 1 ? names : std::vector<std::string>{};
}

// Two columns may be the parts of a document, of which what was generated comes last.
std::string sum_help(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  std::copy_if(names.begin(), names.end(), std::back_inserter(parts),
               [](const std::string& name) { return meaning_of_column(name) == ColumnMeaning::length; });
  if (parts.size() != 2) return "";
  const auto is_generated = [](const std::string& name) { return lower(name).find("out") != std::string::npos; };
  std::stable_partition(parts.begin(), parts.end(), [&](const std::string& name) { return !is_generated(name); });
  return fmt::format("if a document is both, {}; ", joined(parts, "+"));
}

// What keeps the names from telling which column holds the lengths.
void report_no_column(const std::vector<std::string>& names, const TextPlace& place, FileProblems& problems) {
  if (std::all_of(names.begin(), names.end(), is_number)) {
    return problems.add(place, "the first line does not name the columns",
                        "write their names there, such as id,length");
  }
  problems.add(place, "which column holds the lengths?",
               fmt::format("name it with --column, or as column in data.lengths; {}{}", sum_help(names),
                           columns_help(names, "")));
}

// The columns of a published trace, or the only one with a usual name. Empty if there is none, or a choice.
std::vector<std::string> usual_columns(const std::vector<std::string>& names) {
  for (const PublishedColumns& columns : published) {
    if (contains(names, columns.prompt) && contains(names, columns.generated)) {
      return {std::string(columns.prompt), std::string(columns.generated)};
    }
  }
  std::vector<std::string> usual;
  std::copy_if(names.begin(), names.end(), std::back_inserter(usual), is_usual);
  return usual.size() == 1 ? usual : std::vector<std::string>{};
}

}  // namespace

bool is_headerless(const std::vector<std::string>& names) {
  return names.size() == 1 && is_number(names.front());
}

LengthColumns choose_columns(const std::vector<std::string>& names, const TraceOptions& options, const TextPlace& place,
                             FileProblems& problems) {
  LengthColumns chosen{.lengths = named_columns(options.column, names), .step = options.step_column};
  std::vector<std::string> wanted = chosen.lengths;
  if (!chosen.step.empty()) wanted.push_back(chosen.step);
  for (const std::string& name : wanted) {
    if (contains(names, name)) continue;
    problems.add(place, fmt::format("there is no column '{}'", name), columns_help(names, name));
  }
  if (chosen.lengths.empty()) {
    chosen.lengths = sure_columns(names);
    chosen.found = chosen.lengths.empty();
    if (chosen.found) chosen.lengths = usual_columns(names);
    if (chosen.lengths.empty()) {
      report_no_column(names, place, problems);
    } else if (is_headerless(names)) {
      problems.add(place, "the first line does not name a column",
                   "a file of one length a line has the format 'lines'");
    }
  }
  for (const std::string& name : chosen.lengths) {
    if (std::count(names.begin(), names.end(), name) < 2) continue;
    problems.add(place, fmt::format("the column '{}' stands here more than once", name), "rename all but one of them");
  }
  problems.throw_if_any();
  if (chosen.step.empty() && !contains(chosen.lengths, "step") && contains(names, "step")) chosen.step = "step";
  return chosen;
}

}  // namespace hdpsim
