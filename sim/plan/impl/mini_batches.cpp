#include "sim/plan/impl/mini_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/division.h"
#include "sim/document/document.h"
#include "sim/plan/impl/pool_fit.h"

namespace hdpsim {
namespace {

SequenceList part_of(const SequenceList& items, std::size_t first, std::size_t count) {
  const auto begin = items.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

UpdateRule::UpdateRule(std::string policy, PoolFit& pool, const MiniBatchOptions& options, std::string items)
    : policy_(std::move(policy)),
      items_(std::move(items)),
      position_(pool.where("mini_batch").position),
      mini_batch_(options.mini_batch),
      updates_(static_cast<std::size_t>(options.updates.value_or(1))) {
  if (!options.mini_batch || !options.updates) return;
  pool.error(pool.where("updates"), "'updates' and 'mini_batch' both say how the batch is divided",
             "state one of them");
}

std::vector<SequenceList> UpdateRule::runs(const SequenceList& items, std::size_t parts) const {
  if (!mini_batch_) return even_runs(items, updates_);
  const auto mini = static_cast<std::size_t>(*mini_batch_);
  if (mini % parts != 0) {
    refuse(fmt::format("a mini-batch of {} does not divide among {} replicas", mini, parts),
           fmt::format("make it a multiple of {}, or state 'updates'", parts));
  }
  const std::size_t size = mini / parts;
  if (items.size() % size != 0) {
    const std::string whose = parts == 1 ? "the batch" : "a replica";
    refuse(fmt::format("{} has {} {}, which are no mini-batches of {}", whose, items.size(), items_, size),
           "state 'updates' for batches of any number");
  }
  std::vector<SequenceList> runs;
  for (std::size_t first = 0; first < items.size(); first += size) runs.push_back(part_of(items, first, size));
  return runs;
}

void UpdateRule::refuse(const std::string& message, const std::string& help) const {
  throw InputError(position_, fmt::format("{}: {}", policy_, message), help);
}

std::vector<SequenceList> even_runs(const SequenceList& items, std::size_t runs) {
  std::vector<SequenceList> parts;
  std::size_t first = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    const std::size_t count = items.size() / runs + (i < items.size() % runs ? 1 : 0);
    parts.push_back(part_of(items, first, count));
    first += count;
  }
  return parts;
}

std::optional<PaddedBatch> padded_batch(const Batch& batch, SequenceList sequences, std::size_t replicas,
                                        const PaddingRule& rule, std::int64_t& too_wide) {
  const auto tokens = [&](std::size_t sequence) { return batch.sequences[sequence].tokens; };
  std::stable_sort(sequences.begin(), sequences.end(),
                   [&](std::size_t a, std::size_t b) { return tokens(a) < tokens(b); });
  PaddedBatch made{std::vector<SequenceList>(replicas), {}};
  for (std::size_t i = 0; i < sequences.size(); ++i) made.replicas[i % replicas].push_back(sequences[i]);
  for (std::size_t place = 0; place * replicas < sequences.size(); ++place) {
    const std::size_t longest = std::min(sequences.size(), (place + 1) * replicas) - 1;
    std::int64_t width = rounded_up(tokens(sequences[longest]), rule.rounded_to);
    if (rule.widest > 0) width = std::min(width, rule.widest);
    if (width > rule.room) {
      too_wide = width;
      return std::nullopt;
    }
    PaddedRows* open = made.micro_batches.empty() ? nullptr : &made.micro_batches.back();
    if (open != nullptr && (static_cast<std::int64_t>(open->count) + 1) * std::max(open->width, width) <= rule.room) {
      ++open->count;
      open->width = std::max(open->width, width);
    } else {
      made.micro_batches.push_back({place, 1, width});
    }
  }
  return made;
}

bool halve_padded(std::vector<PaddedRows>& micro_batches, std::size_t count) {
  const auto tokens = [](const PaddedRows& rows) { return static_cast<std::int64_t>(rows.count) * rows.width; };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    if (micro_batches[i].count > 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tokens(micro_batches[a]) > tokens(micro_batches[b]); });
  const std::size_t missing = count - micro_batches.size();
  if (order.size() < missing) return false;
  for (std::size_t i = 0; i < missing; ++i) {
    PaddedRows& first = micro_batches[order[i]];
    PaddedRows second = first;
    first.count /= 2;
    second.first += first.count;
    second.count -= first.count;
    micro_batches.push_back(second);
  }
  std::sort(micro_batches.begin(), micro_batches.end(),
            [](const PaddedRows& a, const PaddedRows& b) { return a.first < b.first; });
  return true;
}

void add_padded_rows(PlanBuilder& builder, const PaddedBatch& batch, const PaddedRows& rows, std::size_t replica,
                     std::int64_t cp) {
  const SequenceList& own = batch.replicas[replica];
  SizedList sized;
  for (std::size_t i = rows.first; i < std::min(own.size(), rows.first + rows.count); ++i) {
    sized.push_back({static_cast<std::uint32_t>(own[i]), static_cast<std::uint32_t>(rows.width)});
  }
  if (!sized.empty()) builder.add_padded(replica * static_cast<std::size_t>(cp), {cp}, sized);
}

}  // namespace hdpsim
