#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <unordered_map>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/document/input_file.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

struct Field {
  std::string_view text;
  int column = 1;  ///< In the line.
};

/// The fields of a line up to the `most`-th, between commas if it has one and between blanks otherwise.
std::vector<Field> split_line(std::string_view line, std::size_t most) {
  const bool has_commas = line.find(',') != std::string_view::npos;
  const std::string_view separators = has_commas ? std::string_view(",") : blanks;
  std::vector<Field> fields;
  std::size_t at = has_commas ? 0 : line.find_first_not_of(blanks);
  while (at < line.size() && fields.size() < most) {
    const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
    const std::string_view text = line.substr(at, end - at);
    const std::size_t blank = std::min(text.find_first_not_of(blanks), text.size());
    fields.push_back({without_blanks(text), static_cast<int>(at + blank) + 1});
    at = has_commas ? end + 1 : line.find_first_not_of(blanks, end);
  }
  return fields;
}

/// The places of an interaction's source, target and time among the fields of a line.
struct EdgeColumns {
  std::array<std::size_t, 3> places{0, 1, 2};
  bool has_two_sides = false;  ///< Sources and targets are numbered apart, as users and items are.

  [[nodiscard]] std::size_t fields() const { return *std::max_element(places.begin(), places.end()) + 1; }
};

constexpr std::size_t most_header_fields = 1000;
constexpr const char* header_help =
    "name the columns source,target,time (or u,v,t, src,dst,ts, user_id,item_id,timestamp)";

// By a header line; empty if it lacks one of the columns.
std::optional<EdgeColumns> columns_of(const std::vector<Field>& header) {
  using Names = std::vector<std::string_view>;
  static const std::array<Names, 3> usual{Names{"u", "src", "source", "user_id", "user"},
                                          Names{"v", "dst", "target", "destination", "item_id", "item"},
                                          Names{"t", "ts", "time", "timestamp"}};
  EdgeColumns columns;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    const auto found = std::find_if(header.begin(), header.end(), [&](const Field& field) {
      return std::find(usual[i].begin(), usual[i].end(), field.text) != usual[i].end();
    });
    if (found == header.end()) return std::nullopt;
    columns.places[i] = static_cast<std::size_t>(found - header.begin());
  }
  columns.has_two_sides =
      header[columns.places[0]].text.starts_with("user") && header[columns.places[1]].text.starts_with("item");
  return columns;
}

// Of a line without a header above it: KONECT puts a weight before the time.
EdgeColumns columns_by_number(std::string_view line) {
  const bool has_weight = line.find(',') == std::string_view::npos && split_line(line, 5).size() == 4;
  return {.places = {0, 1, has_weight ? std::size_t{3} : std::size_t{2}}};
}

std::optional<std::int64_t> node_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_good = problem == std::errc() && end == text.data() + text.size();
  return is_good && number >= 0 && number < (std::int64_t{1} << 62) ? std::optional(number) : std::nullopt;
}

/// What is known of a node: its interactions, and how many of them have its latest time.
struct Node {
  std::int64_t interactions = 0;
  std::int64_t latest = 0;
  double time = 0;

  [[nodiscard]] std::int64_t before(double now) const { return time < now ? interactions : interactions - latest; }
  void add(double now) {
    latest = time < now || interactions == 0 ? 1 : latest + 1;
    time = now;
    ++interactions;
  }
};

/// Replays the interactions of a temporal graph, in one pass, with memory for its nodes.
class EdgeSource : public FileSource {
 public:
  EdgeSource(const std::filesystem::path& path, const EdgeOptions& options)
      : FileSource(path.string()), lines_(path), options_(options), random_(1, "negative endpoints") {
    HDPSIM_CHECK(options.neighbours >= 1 && options.interactions.value_or(1) >= 1, "{} neighbours", options.neighbours);
  }

 private:
  std::optional<Length> read() override {
    while (ready_.empty() && lines_.next_filled('#')) take_line(lines_.text());
    if (ready_.empty()) return std::nullopt;
    const Length length = ready_.front();
    ready_.pop_front();
    return length;
  }

  void take_line(std::string_view line) {
    if (line.starts_with('%')) {  // KONECT says in its first line whether a graph is bipartite
      has_two_sides_ = has_two_sides_ || without_blanks(line.substr(1)).starts_with("bip");
      return;
    }
    if (!columns_) {
      const std::vector<Field> first = split_line(line, most_header_fields);
      if (std::none_of(first.begin(), first.end(), [](const Field& field) { return node_number(field.text); })) {
        columns_ = columns_of(first);
        if (!columns_) problems().fail({line, lines_.number(), 1}, "the header names no interactions", header_help);
        return;
      }
      columns_ = columns_by_number(line);
    }
    take_interaction(line);
  }

  void take_interaction(std::string_view line) {
    const std::vector<Field> fields = split_line(line, columns_->fields());
    if (fields.size() < columns_->fields()) {
      add({line, lines_.number(), 1}, fmt::format("the line has {} of {} fields", fields.size(), columns_->fields()),
          "an interaction is source,target,time");
      return;
    }
    const std::optional<std::uint64_t> source = node_of(line, fields[columns_->places[0]], 0);
    const std::optional<std::uint64_t> target = node_of(line, fields[columns_->places[1]], 1);
    const std::optional<double> time = time_of(line, fields[columns_->places[2]]);
    if (!source || !target || !time) return;
    const std::size_t from = index_of(*source);
    const std::size_t to = index_of(*target);
    if (std::exchange(nodes_[to].second, true) == false) targets_.push_back(to);
    put(from, *time);
    put(to, *time);
    put(targets_[random_.below(targets_.size())], *time);
    nodes_[from].first.add(*time);
    nodes_[to].first.add(*time);
    ++interactions_;
  }

  void put(std::size_t node, double time) {
    Length length{1 + std::min(options_.neighbours, nodes_[node].first.before(time)), {}};
    if (options_.interactions) length.step = interactions_ / *options_.interactions;
    ready_.push_back(length);
  }

  std::optional<std::uint64_t> node_of(std::string_view line, const Field& field, std::uint64_t side) {
    if (const auto number = node_number(field.text)) {
      const bool is_apart = has_two_sides_ || columns_->has_two_sides;
      return 2 * static_cast<std::uint64_t>(*number) + (is_apart ? side : 0);
    }
    add({line, lines_.number(), field.column}, fmt::format("the node \"{}\" is not a whole number from 0", field.text),
        "number the nodes");
    return std::nullopt;
  }

  std::optional<double> time_of(std::string_view line, const Field& field) {
    const TextPlace place{line, lines_.number(), field.column};
    const Parsed<double> time = parse_weight(field.text);
    if (!time.value) {
      add(place, fmt::format("the time \"{}\" is not a number from 0", field.text), "write seconds: 1082040961");
    } else if (*time.value < time_) {
      add(place, fmt::format("the time {} is before {}, that of an interaction above", *time.value, time_),
          fmt::format("sort the interactions by time: sort -s -g -k{}{}", columns_->places[2] + 1,
                      line.find(',') == std::string_view::npos ? "" : " -t,"));
      return std::nullopt;
    } else {
      time_ = *time.value;
    }
    return time.value;
  }

  void add(const TextPlace& place, std::string message, std::string help) {
    problems().add(place, std::move(message), std::move(help));
  }

  std::size_t index_of(std::uint64_t node) {
    const auto [found, is_new] = indices_.emplace(node, nodes_.size());
    if (is_new) nodes_.emplace_back();
    return found->second;
  }

  LineReader lines_;
  const EdgeOptions options_;
  RandomStream random_;
  std::optional<EdgeColumns> columns_;
  bool has_two_sides_ = false;
  double time_ = 0;
  std::int64_t interactions_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> indices_;
  std::vector<std::pair<Node, bool>> nodes_;  // and whether it has been a target
  std::vector<std::size_t> targets_;
  std::deque<Length> ready_;  // of the interaction that was read last
};

}  // namespace

std::unique_ptr<LengthSource> open_edges(const std::filesystem::path& path, const EdgeOptions& options) {
  return std::make_unique<EdgeSource>(path, options);
}

}  // namespace hdpsim
