#include "sim/plan/impl/stated_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "sim/base/first_problems.h"
#include "sim/base/text.h"
#include "sim/document/reader.h"
#include "sim/plan/plan_file.h"

namespace hdpsim {
namespace {

constexpr double largest_number = 1073741824.0;  // far above all ranks and sequences of a step

bool is_list_of_lists(const Value& list) {
  return std::any_of(list.items.begin(), list.items.end(), [](const Value& item) { return !item.is_scalar(); });
}

bool are_same(const std::vector<StatedSequence>& a, const std::vector<StatedSequence>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& one, const auto& other) { return one.sequence == other.sequence; });
}

bool meet(const std::vector<StatedSequence>& a, const std::vector<StatedSequence>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
           return one.sequence == other.sequence;
         }) != a.end();
}

std::vector<std::int64_t> run_of(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

class GroupPlacement {
 public:
  GroupPlacement(Plan& plan, std::size_t lists, Diagnostics& diagnostics)
      : plan_(plan), lists_(lists), problems_(diagnostics), rounds_(static_cast<std::size_t>(plan.ranks)) {
    plan_.schedule.resize(rounds_.size());
  }

  // False: there are too many.
  bool place(const StatedGroup& group) {
    if (group.round != round_) next_ = 0;
    round_ = group.round;
    const std::vector<std::int64_t> ranks = ranks_of(group);
    if (ranks.empty()) return true;
    check_round(group, ranks);
    members_ += std::ssize(ranks);
    if (members_ > most_members_of_groups) return false;
    add(group, ranks);
    return true;
  }

  void finish(const Position& step) { problems_.finish(step, "problems of ranks"); }

 private:
  // Empty, with the problem reported, if they cannot be had.
  std::vector<std::int64_t> ranks_of(const StatedGroup& group) {
    if (group.list) {
      const std::int64_t each = plan_.ranks / static_cast<std::int64_t>(lists_);
      return run_of(static_cast<std::int64_t>(*group.list) * each, each);
    }
    if (group.size > plan_.ranks) {
      problems_.error(group.position, fmt::format("a group of {} ranks, the pool has {}", group.size, plan_.ranks));
      return {};
    }
    std::vector<std::int64_t> ranks = group.ranks;
    if (group.size > 0) ranks = run_of(group.first ? *group.first : next_ranks(group.size), group.size);
    if (!are_of_pool(group, ranks)) ranks.clear();
    return ranks;
  }

  std::int64_t next_ranks(std::int64_t size) {
    if (next_ + size > plan_.ranks) next_ = 0;
    return std::exchange(next_, next_ + size);
  }

  bool are_of_pool(const StatedGroup& group, std::vector<std::int64_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
    if (!ranks.empty() && ranks.back() >= plan_.ranks) {
      problems_.error(group.position, fmt::format("there is no rank {}: the pool has {}", ranks.back(), plan_.ranks),
                      "ranks count from 0");
    } else if (twice != ranks.end()) {
      problems_.error(group.position, fmt::format("the group has rank {} twice", *twice));
    } else {
      return true;
    }
    return false;
  }

  void check_round(const StatedGroup& group, const std::vector<std::int64_t>& ranks) {
    if (!group.round) return;
    for (const std::int64_t rank : ranks) {
      if (rounds_[static_cast<std::size_t>(rank)] != group.round) continue;
      return problems_.error(group.position, fmt::format("rank {} is in two groups of one round", rank),
                             "the groups of a round run side by side: give it to one of them, or begin another round");
    }
    for (const std::int64_t rank : ranks) rounds_[static_cast<std::size_t>(rank)] = group.round;
  }

  void add(const StatedGroup& group, const std::vector<std::int64_t>& ranks) {
    const MicroBatchId id(plan_.micro_batches.size());
    MicroBatch& micro_batch = plan_.micro_batches.emplace_back();
    micro_batch.offload = group.offload;
    for (const std::int64_t rank : ranks) {
      micro_batch.group.emplace_back(static_cast<std::size_t>(rank));
      plan_.schedule[static_cast<std::size_t>(rank)].push_back(id);
    }
    for (const StatedSequence& stated : group.sequences) {
      const auto index = static_cast<std::size_t>(stated.sequence);
      if (index >= plan_.sequence_tokens.size()) continue;
      micro_batch.spans.push_back({SequenceId(index), 0, plan_.sequence_tokens[index]});
    }
  }

  Plan& plan_;
  std::size_t lists_;
  FirstProblems problems_;
  std::int64_t next_ = 0;                           // the rank behind the group before
  std::int64_t members_ = 0;                        // ranks in all groups so far
  std::optional<std::size_t> round_;                // that of the group before
  std::vector<std::optional<std::size_t>> rounds_;  // by rank, the last round with it
};

void report_missing(const std::vector<std::size_t>& missing, const Position& step, Diagnostics& diagnostics) {
  if (missing.empty()) return;
  const std::size_t listed = std::min(missing.size(), FirstProblems::most);
  const std::string more = missing.size() > listed ? fmt::format(" and {} more", missing.size() - listed) : "";
  diagnostics.error(step,
                    fmt::format("in no group: sequence{} {}{}", missing.size() == 1 ? "" : "s",
                                joined(std::span(missing).first(listed), ", "), more),
                    "every sequence of the batch is in one group");
}

}  // namespace

const std::vector<std::string>& group_forms() {
  static const std::vector<std::string> forms = {"micro_batches", "by_rank", "sample_id_groups"};
  return forms;
}

void GroupReader::read(std::string_view form, const Value& item) {
  if (form == "micro_batches") {
    read_micro_batch(item);
  } else if (form == "by_rank") {
    read_list_of_rank(item);
  } else {
    read_ranks_of_step(item);
  }
  ++items_;
}

void GroupReader::read_micro_batch(const Value& item) {
  const bool is_round = item.is_sequence() && (item.items.empty() || !item.items.front().is_scalar());
  if (!is_round) return read_group(item, std::nullopt);
  for (const Value& group : item.items) read_group(group, items_);
}

void GroupReader::read_group(const Value& item, std::optional<std::size_t> round) {
  StatedGroup group;
  group.position = item.position;
  group.round = round;
  if (item.is_map()) {
    read_map(item, group);
  } else {
    read_row(item, group);
  }
  add(std::move(group));
}

void GroupReader::read_map(const Value& item, StatedGroup& group) {
  MapReader reader(item, "a group", diagnostics_);
  const Value* ranks = reader.find("ranks");
  const Value* size = reader.find("size");
  const Value* first = reader.find("first");
  if ((ranks == nullptr) == (size == nullptr) || (first != nullptr && size == nullptr)) {
    reader.error("a group has either 'ranks' or 'size', which may have a 'first'", "write ranks: [0, 1], or size: 2");
  } else if (ranks != nullptr && !ranks->is_sequence()) {
    diagnostics_.error(ranks->position, "the ranks of a group are a list", "write [0, 1]");
  } else if (ranks != nullptr) {
    for (const Value& rank : ranks->items) {
      if (const auto read = number(rank, "a rank", 0)) group.ranks.push_back(*read);
    }
    if (ranks->items.empty()) diagnostics_.error(ranks->position, "the group has no ranks");
  } else {
    group.size = number(*size, "the size of a group", 1).value_or(0);
    if (first != nullptr) group.first = number(*first, "the first rank of a group", 0);
  }
  const Value* sequences = reader.require("sequences");
  knows_sequences_ = knows_sequences_ && sequences != nullptr;
  if (sequences != nullptr) group.sequences = sequences_of(*sequences);
  group.offload = reader.optional_in<double>("offload", {0, 1}).value_or(0);
  reader.finish();
}

// [first, size, [sequences]] or [size, [sequences]].
void GroupReader::read_row(const Value& item, StatedGroup& group) {
  const std::size_t cells = item.items.size();
  if (!item.is_sequence() || cells < 2 || cells > 3 || !item.items.back().is_sequence()) {
    diagnostics_.error(item.position, "a group is a map, [first, size, [sequences]] or [size, [sequences]]",
                       "write {\"ranks\": [0, 1], \"sequences\": [3, 5]}");
    knows_sequences_ = false;
    return;
  }
  if (cells == 3) group.first = number(item.items[0], "the first rank of a group", 0);
  group.size = number(item.items[cells - 2], "the size of a group", 1).value_or(0);
  group.sequences = sequences_of(item.items.back());
}

void GroupReader::read_list_of_rank(const Value& item) {
  if (!item.is_sequence()) {
    diagnostics_.error(item.position, "the micro-batches of a rank are a list", "write [[0, 3], [1]]");
    knows_sequences_ = false;
    return;
  }
  const auto add_one = [&](const Value& sequences) {
    StatedGroup group;
    group.position = sequences.position;
    group.list = items_;
    group.sequences = sequences_of(sequences);
    add(std::move(group));
  };
  if (!is_list_of_lists(item)) return add_one(item);
  for (const Value& micro_batch : item.items) add_one(micro_batch);
}

void GroupReader::read_ranks_of_step(const Value& item) {
  if (!item.is_sequence()) {
    diagnostics_.error(item.position, "a micro-batch has a list of sequences for every rank",
                       "write [[0], [0], [1, 2]]");
    knows_sequences_ = false;
    return;
  }
  const std::int64_t ranks = std::ssize(item.items);
  if (ranks_of_items_.value_or(ranks) != ranks) {
    diagnostics_.error(item.position,
                       fmt::format("this micro-batch has {} ranks, the first one {}", ranks, *ranks_of_items_),
                       "state an empty list for a rank without work");
  }
  if (!ranks_of_items_) ranks_of_items_ = ranks;
  const std::size_t first = groups_.size();
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    join_rank(rank, item.items[static_cast<std::size_t>(rank)], first);
  }
}

// Groups are runs of neighbours in all of Megatron-LM's plans, so that the last group is the likely one.
void GroupReader::join_rank(std::int64_t rank, const Value& held, std::size_t first_of_step) {
  std::vector<StatedSequence> sequences = sequences_of(held);
  if (sequences.empty()) return;
  if (groups_.size() > first_of_step) {
    StatedGroup& last = groups_.back();
    if (are_same(last.sequences, sequences)) return last.ranks.push_back(rank);
    if (meet(last.sequences, sequences)) {
      diagnostics_.error(
          held.position,
          fmt::format("rank {} has some sequences of rank {}, but not the same ones", rank, last.ranks.back()),
          "the ranks of a group hold parts of the same sequences");
      knows_sequences_ = false;
      return;
    }
  }
  StatedGroup group;
  group.position = held.position;
  group.ranks = {rank};
  group.round = items_;
  group.sequences = std::move(sequences);
  add(std::move(group));
}

void GroupReader::add(StatedGroup group) {
  if (!group.sequences.empty()) groups_.push_back(std::move(group));
}

std::optional<std::int64_t> GroupReader::number(const Value& value, std::string_view what, double least) {
  return read_in<std::int64_t>(value, what, {least, largest_number}, diagnostics_);
}

std::vector<StatedSequence> GroupReader::sequences_of(const Value& list) {
  std::vector<StatedSequence> sequences;
  if (!list.is_sequence()) {
    diagnostics_.error(list.position,
                       fmt::format("the sequences of a group are a list, found {}", kind_name(list.kind)),
                       "write [3, 5]: places in 'lengths', from 0");
    knows_sequences_ = false;
    return sequences;
  }
  sequences.reserve(list.items.size());
  for (const Value& item : list.items) {
    const auto sequence = number(item, "a sequence", 0);
    knows_sequences_ = knows_sequences_ && sequence.has_value();
    if (sequence) sequences.push_back({*sequence, item.position});
  }
  return sequences;
}

void check_sequences(const std::vector<StatedGroup>& groups, const Plan& plan, const Position& step,
                     Diagnostics& diagnostics) {
  const std::size_t count = plan.sequence_tokens.size();
  std::vector<const StatedSequence*> seen(count);
  FirstProblems unknown(diagnostics);
  FirstProblems twice(diagnostics);
  for (const StatedGroup& group : groups) {
    for (const StatedSequence& stated : group.sequences) {
      const auto index = static_cast<std::size_t>(stated.sequence);
      if (index >= count) {
        unknown.error(stated.position, fmt::format("there is no sequence {}: the batch has {}", index, count),
                      "sequences are named by their place in 'lengths', from 0");
      } else if (seen[index] == nullptr) {
        seen[index] = &stated;
      } else {
        const Position& first = seen[index]->position;
        twice.error(stated.position, fmt::format("sequence {} is here a second time", index),
                    fmt::format("it is at line {}, column {} already", first.line, first.column));
      }
    }
  }
  unknown.finish(step, "sequences that the batch does not have");
  twice.finish(step, "sequences that are there twice");
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < count; ++i) {
    if (seen[i] == nullptr) missing.push_back(i);
  }
  report_missing(missing, step, diagnostics);
}

void place_groups(const std::vector<StatedGroup>& groups, std::size_t lists, Plan& plan, const Position& step,
                  Diagnostics& diagnostics) {
  GroupPlacement placement(plan, lists, diagnostics);
  const auto excess =
      std::find_if(groups.begin(), groups.end(), [&](const StatedGroup& group) { return !placement.place(group); });
  if (excess != groups.end()) {
    diagnostics.error(excess->position, "too many ranks in the groups of one step",
                      fmt::format("at most {} in all", most_members_of_groups));
  }
  placement.finish(step);
}

}  // namespace hdpsim
