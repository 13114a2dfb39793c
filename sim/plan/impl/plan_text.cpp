#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/plan/plan_file.h"

namespace hdpsim {
namespace {

void write_sequences(const std::vector<std::int64_t>& tokens, std::string& text) {
  constexpr std::size_t numbers_a_line = 16;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const char* before = i == 0 ? "\n    " : i % numbers_a_line == 0 ? ",\n    " : ", ";
    append(text, "{}{}", before, tokens[i]);
  }
}

void write_group(const std::vector<HdpRank>& group, std::string& text) {
  for (std::size_t first = 0; first < group.size();) {
    std::size_t last = first;
    while (last + 1 < group.size() && group[last + 1].index() == group[last].index() + 1) ++last;
    append(text, "{}{}", first == 0 ? "" : ",", group[first].index());
    if (last > first) append(text, "-{}", group[last].index());
    first = last + 1;
  }
}

bool is_whole(const Span& span, const Plan& plan) {
  const std::size_t sequence = span.sequence.index();
  return sequence < plan.sequence_tokens.size() && span.begin == 0 && span.tokens == plan.sequence_tokens[sequence];
}

void write_spans(const std::vector<Span>& spans, const Plan& plan, std::string& text) {
  const char* comma = "";
  for (const Span& span : spans) {
    if (is_whole(span, plan)) {
      append(text, "{}{}", comma, span.sequence.index());
    } else {
      append(text, "{}[{}, {}, {}]", comma, span.sequence.index(), span.begin, span.tokens);
    }
    comma = ", ";
  }
}

void write_local(const MicroBatch& micro_batch, const Plan& plan, std::string& text) {
  const char* comma = ", \"local\": [";
  for (const LocalSpans& local : micro_batch.local) {
    append(text, "{}{{\"rank\": {}, \"spans\": [", comma, micro_batch.group[local.holder].index());
    write_spans(local.spans, plan, text);
    append(text, "]}}");
    comma = ", ";
  }
  if (!micro_batch.local.empty()) append(text, "]");
}

void write_moved(const MicroBatch& micro_batch, std::string& text) {
  const char* comma = ", \"moved\": [";
  for (const ServedQueries& queries : micro_batch.moved) {
    append(text, "{}[{}, {}, {}, {}]", comma, queries.span, queries.begin, queries.tokens,
           micro_batch.group[queries.server].index());
    comma = ", ";
  }
  if (!micro_batch.moved.empty()) append(text, "]");
}

void write_micro_batch(const MicroBatch& micro_batch, const PlanDocument& document, std::string& text) {
  const Plan& plan = document.plan;
  append(text, "{{\"group\": \"");
  write_group(micro_batch.group, text);
  append(text, "\", \"spans\": [");
  write_spans(micro_batch.spans, plan, text);
  append(text, "]");
  write_local(micro_batch, plan, text);
  write_moved(micro_batch, text);
  if (micro_batch.cut != TokenCut::per_document) {
    append(text, ", \"cut\": \"{}\"", token_cut_words().at(static_cast<std::size_t>(micro_batch.cut)));
  }
  if (const auto own = own_exchange(micro_batch); own && own != document.mesh.exchange) {
    append(text, ", \"exchange\": \"{}\"", exchange_word(*own));
  }
  if (micro_batch.offload != 0) append(text, ", \"offload\": {}", micro_batch.offload);
  if (micro_batch.token_wise) append(text, ", \"token_wise\": true");
  if (micro_batch.continues) append(text, ", \"continues\": true");
  if (micro_batch.repeats_forward) append(text, ", \"repeats_forward\": true");
  if (micro_batch.padding != 0) append(text, ", \"padding\": {}", micro_batch.padding);
  if (micro_batch.padded) append(text, ", \"padded\": true");
  if (micro_batch.update != 0) append(text, ", \"update\": {}", micro_batch.update);
  append(text, "}}");
}

void write_schedule(const std::vector<MicroBatchId>& ids, std::string& text) {
  append(text, "[");
  for (std::size_t i = 0; i < ids.size(); ++i) append(text, "{}{}", i == 0 ? "" : ", ", ids[i].index());
  append(text, "]");
}

void write_names(const std::vector<SequenceName>& names, std::string& text) {
  constexpr std::size_t names_a_line = 16;
  append(text, "  \"ids\": [");
  for (std::size_t i = 0; i < names.size(); ++i) {
    append(text, "{}", i == 0 ? "\n    " : i % names_a_line == 0 ? ",\n    " : ", ");
    if (const auto* number = std::get_if<std::int64_t>(&names[i])) {
      append(text, "{}", *number);
    } else {
      append(text, "{}", json_string(std::get<std::string>(names[i])));
    }
  }
  append(text, "],\n");
}

void write_head(const PlanDocument& document, std::string& text) {
  const Plan& plan = document.plan;
  const PlanMesh& mesh = document.mesh;
  append(text, "{{\n  \"schema\": \"{}\",\n", plan_schema);
  if (const auto& origin = document.made_by) {
    append(text, "  \"made_by\": {{\"version\": {}, \"study\": {}, \"hash\": {}}},\n", json_string(origin->version),
           json_string(origin->study), json_string(origin->hash));
  }
  append(text, "  \"policy\": {},\n  \"step\": {},\n  \"ranks\": {},\n", json_string(plan.policy), plan.step,
         plan.ranks);
  if (mesh.tp > 1) append(text, "  \"tp\": {},\n", mesh.tp);
  if (mesh.pp > 1) append(text, "  \"pp\": {},\n", mesh.pp);
  if (mesh.placement != usual_placement) append(text, "  \"placement\": {},\n", json_string(mesh.placement));
  append(text, "  \"capacity\": {},\n  \"layers\": {},\n", plan.capacity, plan.layers);
  if (mesh.model_layers > 0) append(text, "  \"model_layers\": {},\n", mesh.model_layers);
  if (plan.expert_ranks > 1) append(text, "  \"expert_ranks\": {},\n", plan.expert_ranks);
  if (mesh.exchange) append(text, "  \"exchange\": \"{}\",\n", exchange_word(*mesh.exchange));
  append(text, "  \"waves\": {},\n", runs_in_waves(plan));
}

}  // namespace

std::string plan_text(const PlanDocument& document) {
  const Plan& plan = document.plan;
  std::string text;
  write_head(document, text);
  append(text, "  \"sequences\": [");
  write_sequences(plan.sequence_tokens, text);
  append(text, "],\n");
  if (!document.ids.empty()) write_names(document.ids, text);
  append(text, "  \"micro_batches\": [");
  for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) {
    append(text, "{}\n    ", i == 0 ? "" : ",");
    write_micro_batch(plan.micro_batches[i], document, text);
  }
  append(text, "],\n  \"schedule\": [");
  for (std::size_t rank = 0; rank < plan.schedule.size(); ++rank) {
    append(text, "{}\n    ", rank == 0 ? "" : ",");
    write_schedule(plan.schedule[rank], text);
  }
  append(text, "]\n}}\n");
  return text;
}

std::string plan_text(const Plan& plan) {
  return plan_text(PlanDocument{.plan = plan});
}

}  // namespace hdpsim
