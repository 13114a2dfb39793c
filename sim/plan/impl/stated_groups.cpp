#include "sim/plan/impl/stated_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/document/reader.h"

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

}  // namespace hdpsim
