#include "sim/trace/impl/column_meaning.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
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

}  // namespace hdpsim
