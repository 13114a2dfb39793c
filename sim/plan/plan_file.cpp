#include "sim/plan/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/base/quantity_limits.h"
#include "sim/document/json_stream.h"
#include "sim/document/limits.h"
#include "sim/document/reader.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

constexpr double largest_id = 4294967295.0;  // ids are 32 bits wide
constexpr auto most_ranks = static_cast<double>(limits::most_devices);
// Limits on the size of a plan. A step of a million ranks has 16 million sequences in 3 million micro-batches.
constexpr std::size_t most_sequences = std::size_t{1} << 24;
constexpr std::size_t most_micro_batches = std::size_t{1} << 22;
// Sequences are cut, but few into many spans; and a rank runs the micro-batches of its groups. A file with more spans
// than twice its sequences plus this, or more schedule entries than members of groups plus this, is no plan.
constexpr std::size_t most_superfluous = std::size_t{1} << 19;

// The place in the group by rank.
std::unordered_map<std::size_t, std::size_t> places_of(const std::vector<HdpRank>& group) {
  std::unordered_map<std::size_t, std::size_t> places;
  for (std::size_t i = 0; i < group.size(); ++i) places.emplace(group[i].index(), i);
  return places;
}

/// Thrown by a reader that has reported enough problems.
struct GivenUp {};

class PlanReader {
 public:
  explicit PlanReader(Diagnostics& diagnostics) : all_(diagnostics) {}

  // Takes an item of one of the long lists, read before the rest of the document. This works only for lists in an order
  // in which each can be read with what precedes it; the items of other lists stay in the document.
  bool take(const Value& before, std::string_view key, const Value& item) {
    if (key == "sequences") {
      read_sequence(item);
    } else if (key == "ids") {
      read_name(item);
    } else if (key == "micro_batches" && before.find("sequences") != nullptr && knows_ranks(before)) {
      read_micro_batch(item);
    } else if (key == "schedule" && before.find("micro_batches") != nullptr && knows_ranks(before)) {
      read_rank_schedule(item);
    } else {
      return false;
    }
    if (!diagnostics_.empty()) report();
    return true;
  }

  // Reads the document without the items that were taken.
  PlanDocument read(const Value& document) {
    PlanDocument read = read_document(document);
    all_.append(diagnostics_);
    return read;
  }

 private:
  // Passes on the problems of an item. A file with too many wrong items is no plan.
  void report() {
    all_.append(std::exchange(diagnostics_, {}));
    if (++wrong_items_ >= most_problems) throw GivenUp();
  }

  void require(bool fits, const Position& position, std::string_view what, std::size_t most) {
    if (fits) return;
    diagnostics_.error(position, fmt::format("more than {} {}", most, what), "is it the right file?");
    all_.append(diagnostics_);
    throw GivenUp();
  }

  PlanDocument read_document(const Value& document) {
    MapReader reader(document, "the plan", diagnostics_);
    const bool is_first = read_schema(reader);
    plan_.policy = reader.required<std::string>("policy").value_or("");
    plan_.step = reader.required_in<std::int64_t>("step", {0, most_steps_of_plans}).value_or(0);
    plan_.ranks = reader.required_in<std::int64_t>("ranks", {1, most_ranks}).value_or(0);
    plan_.capacity = reader.required_in<std::int64_t>("capacity", {1, most_tokens_of_plans}).value_or(0);
    plan_.layers = reader.required_in<std::int64_t>("layers", {1, most_layers_of_plans}).value_or(0);
    plan_.expert_ranks = reader.optional_in<std::int64_t>("expert_ranks", {1, most_ranks}).value_or(1);
    for (const Value& item : list(reader.require("sequences"), "'sequences'")) read_sequence(item);
    for (const Value& item : list(reader.require("micro_batches"), "'micro_batches'")) read_micro_batch(item);
    read_schedule(reader.require("schedule"));
    if (is_first) {
      require_none_of_second(reader);
    } else {
      read_second(reader);
    }
    reader.finish();
    return std::move(read_);
  }

  // Whether the file is of the first schema, which has fewer keys.
  bool read_schema(MapReader& reader) {
    const Value* schema = reader.require("schema");
    if (schema == nullptr) return false;
    return read_choice(*schema, "schema", {plan_schema, first_plan_schema}, diagnostics_) == std::size_t{1};
  }

  // What a file of the second schema may state besides the plan.
  void read_second(MapReader& reader) {
    PlanMesh& mesh = read_.mesh;
    mesh.tp = reader.optional_in<std::int64_t>("tp", {1, most_ranks}).value_or(1);
    mesh.pp = reader.optional_in<std::int64_t>("pp", {1, most_ranks}).value_or(1);
    mesh.model_layers = reader.optional_in<std::int64_t>("model_layers", {1, most_layers_of_plans}).value_or(0);
    if (const Value* placement = reader.find("placement")) {
      const std::vector<std::string> names = placement_names();
      if (const auto name = read_choice(*placement, "placement", names, diagnostics_)) mesh.placement = names[*name];
    }
    if (const Value* exchange = reader.find("exchange")) mesh.exchange = read_exchange(*exchange);
    check_exchanges();
    if (const Value* ids = reader.find("ids")) read_names(*ids);
    if (const Value* origin = reader.find("made_by")) read_origin(*origin);
    if (const Value* waves = reader.find("waves")) check_waves(*waves);
  }

  void require_none_of_second(MapReader& reader) {
    for (const char* key : {"made_by", "tp", "pp", "placement", "model_layers", "exchange", "waves", "ids"}) {
      if (const Value* value = reader.find(key)) tell_second(value->position, key);
    }
    for (const StatedExchange& stated : exchanges_) tell_second(stated.position, "exchange");
  }

  void tell_second(const Position& position, std::string_view key) {
    diagnostics_.error(position, fmt::format("'{}' is no key of {}", key, first_plan_schema),
                       fmt::format("write \"schema\": \"{}\"", plan_schema));
  }

  void read_name(const Value& item) {
    require(read_.ids.size() < most_sequences, item.position, "ids", most_sequences);
    SequenceName& name = read_.ids.emplace_back(std::int64_t{0});
    if (!item.is_scalar()) {
      diagnostics_.error(item.position, "an id is a whole number or a text", "write 17 or \"17\"");
    } else if (item.quoted) {
      name = item.text;
    } else if (const auto number = hdpsim::read<std::int64_t>(item, diagnostics_)) {
      name = *number;
    }
    if (!names_.insert(name).second)
      diagnostics_.error(item.position, fmt::format("the id {} is there twice", item.text));
  }

  void read_names(const Value& value) {
    for (const Value& item : list(&value, "'ids'")) read_name(item);
    if (!value.is_sequence() || read_.ids.size() == plan_.sequence_tokens.size()) return;
    diagnostics_.error(
        value.position,
        fmt::format("'ids' has {} entries, the plan has {} sequences", read_.ids.size(), plan_.sequence_tokens.size()),
        "one id a sequence, in their order");
  }

  void read_origin(const Value& value) {
    MapReader reader(value, "'made_by'", diagnostics_);
    read_.made_by = {reader.required<std::string>("version").value_or(""), reader.optional<std::string>("study", ""),
                     reader.optional<std::string>("hash", "")};
    reader.finish();
  }

  std::optional<KeyExchange> read_exchange(const Value& value) {
    const auto word = read_choice(value, "exchange", exchange_words(), diagnostics_);
    return word ? std::optional(all_key_exchanges()[*word]) : std::nullopt;
  }

  [[nodiscard]] static bool is_free(const MicroBatch& micro_batch) {
    return micro_batch.group.size() > 1 && micro_batch.cut == TokenCut::per_document;
  }

  // A micro-batch states what its cut asks for, a way of its own, or what the plan says anyhow.
  void check_exchanges() {
    for (const StatedExchange& stated : exchanges_) {
      MicroBatch& micro_batch = plan_.micro_batches[stated.micro_batch];
      const auto expected = exchange_in(read_, micro_batch);
      if (expected && stated.exchange == *expected) continue;
      if (is_free(micro_batch) && stated.exchange != KeyExchange::servers) {
        micro_batch.exchange = stated.exchange;
        continue;
      }
      if (!expected) continue;
      diagnostics_.error(
          stated.position,
          fmt::format("its group shares keys by {}, not {}", exchange_word(*expected), exchange_word(stated.exchange)),
          "groups of several ranks may differ from the plan, if nothing but documents is cut; leave 'exchange' out");
    }
  }

  // A runtime that believes it waits for ever. A plan that is in waves and does not say so was changed by hand.
  void check_waves(const Value& value) {
    const bool stated = hdpsim::read<bool>(value, diagnostics_).value_or(false);
    if (!stated || !diagnostics_.empty() || !all_.empty() || runs_in_waves(plan_)) return;
    diagnostics_.error(value.position,
                       "the plan does not run in waves: ranks have unlike numbers of micro-batches, or one at unlike "
                       "places",
                       "leave 'waves' out: it follows from 'schedule'");
  }

  // Problems with the number of ranks are reported later, with the rest of the document.
  bool knows_ranks(const Value& before) {
    if (plan_.ranks > 0) return true;
    const Value* ranks = before.find("ranks");
    if (ranks == nullptr) return false;
    Diagnostics later;
    const double count = static_cast<double>(hdpsim::read<std::int64_t>(*ranks, later).value_or(0));
    if (count >= 1 && count <= most_ranks) plan_.ranks = static_cast<std::int64_t>(count);
    return plan_.ranks > 0;
  }

  const std::vector<Value>& list(const Value* value, std::string_view what) {
    static const std::vector<Value> none;
    if (value == nullptr) return none;
    if (value->is_sequence()) return value->items;
    diagnostics_.error(value->position, fmt::format("{} must be a list, found {}", what, kind_name(value->kind)));
    return none;
  }

  // A whole number from `least` to `most`; otherwise a problem is reported and the result empty.
  std::optional<std::int64_t> number(const Value& value, std::string_view what, double least, double most) {
    const auto read_number = hdpsim::read<std::int64_t>(value, diagnostics_);
    if (!read_number) return std::nullopt;
    const auto compared = static_cast<double>(*read_number);
    if (compared >= least && compared <= most) return read_number;
    diagnostics_.error(value.position,
                       fmt::format("{} is {}, it must be from {:.0f} to {:.0f}", what, *read_number, least, most));
    return std::nullopt;
  }

  // An index into a list of `count` entries.
  std::optional<std::size_t> index(const Value& value, std::string_view what, std::size_t count) {
    const auto found = number(value, what, 0, largest_id);
    if (!found) return std::nullopt;
    if (static_cast<std::size_t>(*found) < count) return static_cast<std::size_t>(*found);
    diagnostics_.error(value.position, fmt::format("there is no {} {}: the plan has {}", what, *found, count));
    return std::nullopt;
  }

  void read_sequence(const Value& item) {
    require(plan_.sequence_tokens.size() < most_sequences, item.position, "sequences", most_sequences);
    plan_.sequence_tokens.push_back(number(item, "the length of a sequence", 1, most_tokens_of_plans).value_or(1));
  }

  void read_micro_batch(const Value& item) {
    require(plan_.micro_batches.size() < most_micro_batches, item.position, "micro-batches", most_micro_batches);
    MapReader reader(item, "a micro-batch", diagnostics_);
    MicroBatch& micro_batch = plan_.micro_batches.emplace_back();
    if (const Value* group = reader.require("group")) read_group(*group, micro_batch.group);
    for (const Value& span : list(reader.require("spans"), "'spans'")) read_span(span, micro_batch.spans);
    if (const Value* local = reader.find("local")) read_local(*local, micro_batch);
    if (const Value* cut = reader.find("cut")) {
      const auto word = read_choice(*cut, "cut", token_cut_words(), diagnostics_);
      if (word) micro_batch.cut = static_cast<TokenCut>(*word);
    }
    if (const Value* exchange = reader.find("exchange")) {
      const auto word = read_exchange(*exchange);
      if (word) exchanges_.push_back({plan_.micro_batches.size() - 1, *word, exchange->position});
    }
    if (const Value* moved = reader.find("moved")) read_moved(*moved, micro_batch);
    micro_batch.offload = reader.optional_in<double>("offload", {0, 1}).value_or(0);
    micro_batch.token_wise = reader.optional<bool>("token_wise", false);
    micro_batch.continues = reader.optional<bool>("continues", false);
    micro_batch.repeats_forward = reader.optional<bool>("repeats_forward", false);
    micro_batch.padding = reader.optional_in<std::int64_t>("padding", {0, most_tokens_of_plans}).value_or(0);
    micro_batch.padded = reader.optional<bool>("padded", false);
    micro_batch.update = reader.optional_in<std::int64_t>("update", {0, most_micro_batches}).value_or(0);
    reader.finish();
  }

  void read_span(const Value& item, std::vector<Span>& spans) {
    const bool whole = item.is_scalar();
    if (!whole && (!item.is_sequence() || item.items.size() != 3)) {
      diagnostics_.error(item.position, "a span is the index of a sequence or [sequence, begin, tokens]");
      return;
    }
    const auto sequence = index(whole ? item : item.items[0], "sequence", plan_.sequence_tokens.size());
    if (!sequence) return;
    Span span{SequenceId(*sequence), 0, plan_.sequence_tokens[*sequence]};
    if (!whole) {
      span.begin = number(item.items[1], "the begin of a span", 0, most_tokens_of_plans).value_or(0);
      span.tokens = number(item.items[2], "the length of a span", 1, most_tokens_of_plans).value_or(1);
    }
    const std::size_t most = 2 * plan_.sequence_tokens.size() + most_superfluous;
    require(++spans_ <= most, item.position, "spans of so many sequences", most);
    spans.push_back(span);
  }

  // [{"rank": 3, "spans": [5]}]: what ranks of the group hold alone.
  void read_local(const Value& value, MicroBatch& micro_batch) {
    std::unordered_map<std::size_t, std::size_t> places = places_of(micro_batch.group);  // of ranks not stated yet
    for (const Value& item : list(&value, "'local'")) {
      MapReader reader(item, "what a rank holds alone", diagnostics_);
      LocalSpans local;
      const auto rank = reader.required_in<std::int64_t>("rank", {0, most_ranks});
      for (const Value& span : list(reader.require("spans"), "'spans'")) read_span(span, local.spans);
      reader.finish();
      if (!rank) continue;
      const auto place = places.extract(static_cast<std::size_t>(*rank));
      if (place.empty()) {
        diagnostics_.error(
            item.position,
            fmt::format("rank {} is not in the group that shares the micro-batch, or stated twice", *rank),
            "list all that a rank holds alone at once");
        continue;
      }
      local.holder = place.mapped();
      micro_batch.local.push_back(std::move(local));
    }
    std::sort(micro_batch.local.begin(), micro_batch.local.end(),
              [](const LocalSpans& a, const LocalSpans& b) { return a.holder < b.holder; });
  }

  // [[0, 4096, 128, 3]]: rank 3 computes the attention of tokens 4,096 to 4,223 of span 0.
  void read_moved(const Value& value, MicroBatch& micro_batch) {
    const std::unordered_map<std::size_t, std::size_t> places = places_of(micro_batch.group);
    for (const Value& item : list(&value, "'moved'")) {
      const std::size_t most = most_superfluous + static_cast<std::size_t>(members_);
      require(++moved_ <= most, item.position, "queries that move", most);
      if (!item.is_sequence() || item.items.size() != 4) {
        diagnostics_.error(item.position, "queries that move are [index of a span, begin, tokens, rank]");
        continue;
      }
      const auto span = index(item.items[0], "span", micro_batch.spans.size());
      const auto begin = number(item.items[1], "the begin of queries", 0, most_tokens_of_plans);
      const auto tokens = number(item.items[2], "the number of queries", 1, most_tokens_of_plans);
      const auto rank = number(item.items[3], "a rank", 0, most_ranks);
      if (!span || !begin || !tokens || !rank) continue;
      const auto place = places.find(static_cast<std::size_t>(*rank));
      if (place == places.end()) {
        diagnostics_.error(item.items[3].position, fmt::format("rank {} is not in the group of the micro-batch", *rank),
                           "queries move to ranks of the group alone");
        continue;
      }
      micro_batch.moved.push_back({*span, *begin, *tokens, place->second});
    }
    std::stable_sort(micro_batch.moved.begin(), micro_batch.moved.end(),
                     [](const ServedQueries& a, const ServedQueries& b) {
                       return std::tie(a.span, a.begin) < std::tie(b.span, b.begin);
                     });
  }

  // "0-38", "0-3,8-11", "5", 5 or [0, 1, 2].
  void read_group(const Value& value, std::vector<HdpRank>& group) {
    const auto ranks = static_cast<std::size_t>(plan_.ranks);
    if (value.is_sequence()) {
      for (const Value& item : value.items) {
        if (++members_ > most_members_of_groups) return tell_members(value.position);
        if (const auto rank = index(item, "rank", ranks)) group.emplace_back(*rank);
      }
      return;
    }
    const auto text = hdpsim::read<std::string>(value, diagnostics_);
    if (!text) return;
    std::string_view rest = *text;
    while (true) {
      const std::size_t comma = rest.find(',');
      if (!read_run(rest.substr(0, comma), value.position, group)) return;
      if (comma == std::string_view::npos) return;
      rest.remove_prefix(comma + 1);
    }
  }

  bool read_run(std::string_view run, const Position& position, std::vector<HdpRank>& group) {
    const char* end = run.data() + run.size();
    std::int64_t first = 0;
    const auto [dash, first_error] = std::from_chars(run.data(), end, first);
    std::int64_t last = first;
    bool good = first_error == std::errc{} && first >= 0;
    if (good && dash != end) {
      const auto [stop, last_error] = std::from_chars(dash + 1, end, last);
      good = *dash == '-' && last_error == std::errc{} && stop == end && last >= first;
    }
    if (!good) {
      diagnostics_.error(position, fmt::format("'{}' is no run of ranks", run), "write ranks as 5, 0-38 or 0-3,8-11");
      return false;
    }
    if (last - first >= most_members_of_groups - members_) {
      tell_members(position);
      return false;
    }
    if (last >= plan_.ranks) {
      diagnostics_.error(position, fmt::format("there is no rank {}: the plan has {}", last, plan_.ranks));
      return false;
    }
    members_ += last - first + 1;
    for (std::int64_t rank = first; rank <= last; ++rank) group.emplace_back(static_cast<std::size_t>(rank));
    return true;
  }

  void tell_members(const Position& position) {
    if (std::exchange(too_many_members_, true)) return;
    diagnostics_.error(position, "too many ranks in the groups of one plan",
                       fmt::format("at most {} in all", most_members_of_groups));
  }

  void read_schedule(const Value* value) {
    for (const Value& rank : list(value, "'schedule'")) read_rank_schedule(rank);
    if (value == nullptr || !value->is_sequence() || plan_.ranks == 0) return;
    if (std::ssize(plan_.schedule) == plan_.ranks) return;
    diagnostics_.error(
        value->position,
        fmt::format("'schedule' has {} lists, the plan has {} ranks", plan_.schedule.size(), plan_.ranks),
        "one list a rank, empty for a rank without work");
  }

  void read_rank_schedule(const Value& rank) {
    std::vector<MicroBatchId>& ids = plan_.schedule.emplace_back();
    for (const Value& item : list(&rank, "the schedule of a rank")) {
      const std::size_t most = static_cast<std::size_t>(members_) + most_superfluous;
      require(++scheduled_ <= most, item.position, "micro-batches in the schedule", most);
      if (const auto id = index(item, "micro-batch", plan_.micro_batches.size())) ids.emplace_back(*id);
    }
  }

  Diagnostics& all_;
  Diagnostics diagnostics_;  // those not in all_ yet
  std::int64_t wrong_items_ = 0;
  PlanDocument read_;
  Plan& plan_ = read_.plan;
  struct StatedExchange {
    std::size_t micro_batch;
    KeyExchange exchange;
    Position position;
  };
  std::vector<StatedExchange> exchanges_;
  std::set<SequenceName> names_;
  std::size_t spans_ = 0;      // of all micro-batches
  std::size_t moved_ = 0;      // entries of all micro-batches
  std::int64_t members_ = 0;   // of all groups
  std::size_t scheduled_ = 0;  // of all ranks
  bool too_many_members_ = false;
};

// Reads item by item if the text is JSON, so that plans of any size can be read.
PlanDocument read_items(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  PlanReader reader(diagnostics);
  const TakeItem take = [&](const Value& before, std::string_view key, const Value& item) {
    return reader.take(before, key, item);
  };
  Diagnostics found;
  if (const auto rest = parse_json(file, text, take, found)) {
    diagnostics.append(found);
    return found.empty() ? reader.read(*rest) : PlanDocument{};
  }
  diagnostics = {};  // for text that is not JSON
  const Value document = parse_document(file, text, diagnostics);
  return diagnostics.empty() ? PlanReader(diagnostics).read(document) : PlanDocument{};
}

}  // namespace

std::optional<PlanDocument> read_plan_document(const std::string& file, const std::string& text,
                                               Diagnostics& diagnostics) {
  Diagnostics found;
  std::optional<PlanDocument> read;
  try {
    read = read_items(file, text, found);
  } catch (const GivenUp&) {
    // The problems in `found` say why.
  }
  if (!found.empty()) {
    read.reset();
    if (text.size() <= largest_shown_bytes) found.add_source(file, text);
  }
  diagnostics.append(found);
  return read;
}

std::optional<Plan> read_plan(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  std::optional<PlanDocument> read = read_plan_document(file, text, diagnostics);
  return read ? std::optional(std::move(read->plan)) : std::nullopt;
}

}  // namespace hdpsim
