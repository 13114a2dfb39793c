#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/plan/plan_file.h"

namespace hdpsim {
namespace {

using Output = std::back_insert_iterator<std::string>;

void write_sequences(const std::vector<std::int64_t>& tokens, Output out) {
  constexpr std::size_t numbers_a_line = 16;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const char* before = i == 0 ? "\n    " : i % numbers_a_line == 0 ? ",\n    " : ", ";
    fmt::format_to(out, "{}{}", before, tokens[i]);
  }
}

void write_group(const std::vector<HdpRank>& group, Output out) {
  for (std::size_t first = 0; first < group.size();) {
    std::size_t last = first;
    while (last + 1 < group.size() && group[last + 1].index() == group[last].index() + 1) ++last;
    fmt::format_to(out, "{}{}", first == 0 ? "" : ",", group[first].index());
    if (last > first) fmt::format_to(out, "-{}", group[last].index());
    first = last + 1;
  }
}

bool is_whole(const Span& span, const Plan& plan) {
  const std::size_t sequence = span.sequence.index();
  return sequence < plan.sequence_tokens.size() && span.begin == 0 && span.tokens == plan.sequence_tokens[sequence];
}

void write_spans(const std::vector<Span>& spans, const Plan& plan, Output out) {
  const char* comma = "";
  for (const Span& span : spans) {
    if (is_whole(span, plan)) {
      fmt::format_to(out, "{}{}", comma, span.sequence.index());
    } else {
      fmt::format_to(out, "{}[{}, {}, {}]", comma, span.sequence.index(), span.begin, span.tokens);
    }
    comma = ", ";
  }
}

void write_local(const MicroBatch& micro_batch, const Plan& plan, Output out) {
  const char* comma = ", \"local\": [";
  for (const LocalSpans& local : micro_batch.local) {
    fmt::format_to(out, "{}{{\"rank\": {}, \"spans\": [", comma, micro_batch.group[local.holder].index());
    write_spans(local.spans, plan, out);
    fmt::format_to(out, "]}}");
    comma = ", ";
  }
  if (!micro_batch.local.empty()) fmt::format_to(out, "]");
}

void write_moved(const MicroBatch& micro_batch, Output out) {
  const char* comma = ", \"moved\": [";
  for (const ServedQueries& queries : micro_batch.moved) {
    fmt::format_to(out, "{}[{}, {}, {}, {}]", comma, queries.span, queries.begin, queries.tokens,
                   micro_batch.group[queries.server].index());
    comma = ", ";
  }
  if (!micro_batch.moved.empty()) fmt::format_to(out, "]");
}

void write_micro_batch(const MicroBatch& micro_batch, const Plan& plan, Output out) {
  fmt::format_to(out, "{{\"group\": \"");
  write_group(micro_batch.group, out);
  fmt::format_to(out, "\", \"spans\": [");
  write_spans(micro_batch.spans, plan, out);
  fmt::format_to(out, "]");
  write_local(micro_batch, plan, out);
  write_moved(micro_batch, out);
  if (micro_batch.cut != TokenCut::per_document) {
    fmt::format_to(out, ", \"cut\": \"{}\"", token_cut_words().at(static_cast<std::size_t>(micro_batch.cut)));
  }
  if (micro_batch.offload != 0) fmt::format_to(out, ", \"offload\": {}", micro_batch.offload);
  if (micro_batch.token_wise) fmt::format_to(out, ", \"token_wise\": true");
  if (micro_batch.continues) fmt::format_to(out, ", \"continues\": true");
  if (micro_batch.repeats_forward) fmt::format_to(out, ", \"repeats_forward\": true");
  if (micro_batch.padding != 0) fmt::format_to(out, ", \"padding\": {}", micro_batch.padding);
  fmt::format_to(out, "}}");
}

void write_ids(const std::vector<MicroBatchId>& ids, Output out) {
  fmt::format_to(out, "[");
  for (std::size_t i = 0; i < ids.size(); ++i) fmt::format_to(out, "{}{}", i == 0 ? "" : ", ", ids[i].index());
  fmt::format_to(out, "]");
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text;
  const Output out(text);
  fmt::format_to(out, "{{\n  \"schema\": \"{}\",\n  \"policy\": {},\n", plan_schema,
                 nlohmann::json(plan.policy).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  fmt::format_to(out, "  \"step\": {},\n  \"ranks\": {},\n", plan.step, plan.ranks);
  fmt::format_to(out, "  \"capacity\": {},\n  \"layers\": {},\n", plan.capacity, plan.layers);
  if (plan.expert_ranks > 1) fmt::format_to(out, "  \"expert_ranks\": {},\n", plan.expert_ranks);
  fmt::format_to(out, "  \"sequences\": [");
  write_sequences(plan.sequence_tokens, out);
  fmt::format_to(out, "],\n  \"micro_batches\": [");
  for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) {
    fmt::format_to(out, "{}\n    ", i == 0 ? "" : ",");
    write_micro_batch(plan.micro_batches[i], plan, out);
  }
  fmt::format_to(out, "],\n  \"schedule\": [");
  for (std::size_t rank = 0; rank < plan.schedule.size(); ++rank) {
    fmt::format_to(out, "{}\n    ", rank == 0 ? "" : ",");
    write_ids(plan.schedule[rank], out);
  }
  fmt::format_to(out, "]\n}}\n");
  return text;
}

}  // namespace hdpsim
