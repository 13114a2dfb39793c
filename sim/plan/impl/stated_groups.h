#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// A sequence of a group, and its position in the file.
struct StatedSequence {
  std::int64_t sequence = 0;
  Position position;
};

/// A group of ranks and what it holds, as a scheduler states it.
struct StatedGroup {
  Position position;
  std::vector<std::int64_t> ranks;    ///< Empty: `size` or `list` says which.
  std::optional<std::int64_t> first;  ///< The first of `size` consecutive ranks; empty: those that are next.
  std::int64_t size = 0;              ///< 0 if there are `ranks` or a `list`, or if neither could be read.
  std::optional<std::size_t> list;    ///< Which list of `by_rank`; its ranks follow from the number of lists.
  std::optional<std::size_t> round;   ///< Groups of a round run side by side.
  std::vector<StatedSequence> sequences;
  double offload = 0;
};

/// The keys that state groups, in the three forms of sim/plan/scheduler_output.h.
[[nodiscard]] const std::vector<std::string>& group_forms();

/// Collects the groups of one step from the items of such a key. Problems of single values are reported.
class GroupReader {
 public:
  explicit GroupReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  /// Reads an item of the list `form`, one of group_forms().
  void read(std::string_view form, const Value& item);
  [[nodiscard]] const std::vector<StatedGroup>& groups() const { return groups_; }
  /// False if a sequence could not be read: which ones are missing is then not known.
  [[nodiscard]] bool knows_sequences() const { return knows_sequences_; }
  /// Items read: rounds and micro-batches, ranks or runs of ranks.
  [[nodiscard]] std::size_t items() const { return items_; }
  /// The ranks of every item of `sample_id_groups`; empty before the first.
  [[nodiscard]] std::optional<std::int64_t> ranks_of_items() const { return ranks_of_items_; }

 private:
  void read_micro_batch(const Value& item);
  void read_group(const Value& item, std::optional<std::size_t> round);
  void read_map(const Value& item, StatedGroup& group);
  void read_row(const Value& item, StatedGroup& group);
  void read_list_of_rank(const Value& item);
  void read_ranks_of_step(const Value& item);
  void join_rank(std::int64_t rank, const Value& held, std::size_t first_of_step);
  void add(StatedGroup group);
  [[nodiscard]] std::optional<std::int64_t> number(const Value& value, std::string_view what, double least);
  [[nodiscard]] std::vector<StatedSequence> sequences_of(const Value& list);

  Diagnostics& diagnostics_;
  std::vector<StatedGroup> groups_;
  std::size_t items_ = 0;
  std::optional<std::int64_t> ranks_of_items_;
  bool knows_sequences_ = true;
};

/// Reports sequences that the batch of the plan does not have, that are in groups twice and that are missing. `step`:
/// the place of the step, for what has no other.
void check_sequences(const std::vector<StatedGroup>& groups, const Plan& plan, const Position& step,
                     Diagnostics& diagnostics);

/// Gives the groups their ranks of the plan's pool and adds micro-batches of them, in their order.
/// `lists`: the number of lists of `by_rank`, if that is the form. Reports ranks that cannot be had; sequences that the
/// batch does not have are skipped.
void place_groups(const std::vector<StatedGroup>& groups, std::size_t lists, Plan& plan, const Position& step,
                  Diagnostics& diagnostics);

}  // namespace hdpsim
