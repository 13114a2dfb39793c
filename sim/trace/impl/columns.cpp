#include "sim/trace/impl/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

namespace hdpsim {
namespace {

using Words = std::vector<std::string>;
using Vocabulary = std::string_view;  // words with blanks between them

constexpr Vocabulary token_words = "token tokens tok toks ntokens";
constexpr Vocabulary length_words = "length lengths len lens seqlen seqlens seqlength";
constexpr Vocabulary range_words = "range ranges bin bins bucket buckets interval intervals";
constexpr Vocabulary lower_words = "lower low lo min minimum from start begin left";
constexpr Vocabulary upper_words = "upper high hi max maximum to end right until";
constexpr Vocabulary count_words = "count counts cnt # amount quantity multiplicity repeats";
constexpr Vocabulary number_words = "n nr no num number";
constexpr Vocabulary share_words =
    "frequency frequencies freq freqs share shares fraction fractions frac proportion percent "
    "percentage pct perc % weight weights proportions percentages pmf";
constexpr Vocabulary likelihood_words = "p prob probs probability probabilities pdf density ratio";
constexpr Vocabulary quantile_words = "q quantile quantiles percentile percentiles pctile pctl centile centiles";
constexpr Vocabulary cumulative_words = "cumulative cum cumul cumsum cdf ecdf accumulated below shorter";
constexpr Vocabulary longer_words = "ccdf survival exceedance above exceeding longer";
constexpr Vocabulary documents =
    "docs documents samples sequences seqs records rows examples occurrences hits items "
    "requests prompts observations instances texts files occurrence conversations";
constexpr Vocabulary one_document = "doc document sample sequence seq record row item example request prompt text file";
constexpr Vocabulary fillers = "of the in per bound edge total value";

Words words_of(std::string_view name) {
  Words words(1);
  char before = ' ';
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool begins = std::isupper(byte) != 0 && std::islower(static_cast<unsigned char>(before)) != 0;
    const bool is_sign = c == '%' || c == '#';
    if ((begins || is_sign || before == '%' || before == '#') && !words.back().empty()) words.emplace_back();
    if (std::isalnum(byte) != 0 || is_sign || byte >= 0x80) {
      words.back() += static_cast<char>(std::tolower(byte));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
    before = c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool is_one_of(const std::string& word, Vocabulary vocabulary) {
  for (std::size_t at = vocabulary.find(word); at != Vocabulary::npos; at = vocabulary.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || vocabulary[at - 1] == ' ';
    if (begins && (end == vocabulary.size() || vocabulary[end] == ' ')) return true;
  }
  return false;
}

/// Questions about the words of one name.
class Name {
 public:
  explicit Name(std::string_view name) : words_(words_of(name)) {}

  [[nodiscard]] bool has(Vocabulary vocabulary) const {
    return std::any_of(words_.begin(), words_.end(), [&](const auto& word) { return is_one_of(word, vocabulary); });
  }
  /// Whether every word is of some of these, or carries no meaning.
  [[nodiscard]] bool is_of(std::initializer_list<Vocabulary> vocabularies) const {
    return !words_.empty() && std::all_of(words_.begin(), words_.end(), [&](const std::string& word) {
      return is_one_of(word, fillers) ||
             std::any_of(vocabularies.begin(), vocabularies.end(),
                         [&](Vocabulary vocabulary) { return is_one_of(word, vocabulary); });
    });
  }
  [[nodiscard]] bool is_single() const { return words_.size() == 1; }
  /// "row_number", "doc_no": which one, and not how many.
  [[nodiscard]] bool is_number_of_one() const {
    return words_.size() == 2 && is_one_of(words_[0], one_document) && is_one_of(words_[1], number_words);
  }

 private:
  Words words_;
};

ColumnMeaning bin_meaning(const Name& name) {
  const bool upper = name.has(upper_words) && name.is_of({upper_words, range_words, length_words, token_words});
  const bool lower = name.has(lower_words) && name.is_of({lower_words, range_words, length_words, token_words});
  if (upper != lower) return upper ? ColumnMeaning::upper : ColumnMeaning::lower;
  const bool range = name.has(range_words) && name.is_of({range_words, length_words, token_words});
  return range ? ColumnMeaning::range : ColumnMeaning::other;
}

// What counts, or weighs, documents or tokens.
ColumnMeaning weight_meaning(const Name& name) {
  const bool of_tokens = name.has(token_words);
  if (!name.is_of({count_words, number_words, share_words, likelihood_words, cumulative_words, longer_words, documents,
                   one_document, range_words, length_words, token_words}) ||
      name.is_number_of_one()) {
    return ColumnMeaning::other;
  }
  if (name.has(longer_words)) return ColumnMeaning::unclear_share;
  if (name.has(cumulative_words)) return of_tokens ? ColumnMeaning::unclear_share : ColumnMeaning::cumulative;
  if (name.has(share_words)) return of_tokens ? ColumnMeaning::token_share : ColumnMeaning::share;
  if (of_tokens) return ColumnMeaning::other;
  if (name.has(likelihood_words)) return ColumnMeaning::likelihood;
  if (name.is_single() && name.has(number_words)) return ColumnMeaning::number;
  return name.has(count_words) || name.has(number_words) || name.has(documents) ? ColumnMeaning::count
                                                                                : ColumnMeaning::other;
}

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
// first two are taken also where there are others of them.
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

// `a+b` means two columns, unless one column has that name.
std::vector<std::string> named_columns(const std::string& wanted, const std::vector<std::string>& names) {
  if (wanted.empty()) return {};
  if (contains(names, wanted)) return {wanted};
  std::vector<std::string> parts;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t plus = wanted.find('+', at);
    parts.emplace_back(
        without_blanks(std::string_view(wanted).substr(at, plus == std::string::npos ? plus : plus - at)));
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

// The columns of a published trace, or the only one with a usual name, or without one the only list of tokens. Empty if
// there is none, or a choice.
std::vector<std::string> usual_columns(const std::vector<std::string>& names) {
  for (const PublishedColumns& columns : published) {
    if (contains(names, columns.prompt) && contains(names, columns.generated)) {
      return {std::string(columns.prompt), std::string(columns.generated)};
    }
  }
  std::vector<std::string> usual;
  std::copy_if(names.begin(), names.end(), std::back_inserter(usual), is_usual);
  if (usual.empty()) {
    std::copy_if(names.begin(), names.end(), std::back_inserter(usual),
                 [](const std::string& name) { return name == "input_ids" || name == "token_ids"; });
  }
  return usual.size() == 1 ? usual : std::vector<std::string>{};
}

}  // namespace

ColumnMeaning meaning_of_column(std::string_view name) {
  const Name words(name);
  if (words.has(quantile_words) && words.is_of({quantile_words, documents, one_document, length_words, token_words})) {
    return ColumnMeaning::quantile;
  }
  if (const ColumnMeaning bin = bin_meaning(words); bin != ColumnMeaning::other) return bin;
  if (const ColumnMeaning weight = weight_meaning(words); weight != ColumnMeaning::other) return weight;
  constexpr Vocabulary no_length = "id ids hash type cost price rate second mean average";
  const bool is_length = (words.has(token_words) || words.has(length_words)) && !words.has(no_length);
  return is_length ? ColumnMeaning::length : ColumnMeaning::other;
}

bool is_name_of_lengths(std::string_view name) {
  return Name(name).has(length_words);
}

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
    problems.add(place, fmt::format("the column '{}' is here more than once", name), "rename all but one of them");
  }
  problems.throw_if_any();
  if (chosen.step.empty() && !contains(chosen.lengths, "step") && contains(names, "step")) chosen.step = "step";
  return chosen;
}

}  // namespace hdpsim
