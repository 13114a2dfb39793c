#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/held_pieces.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/updates.h"
#include "sim/python/bindings.h"
#include "sim/python/plan.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

// Numbers as the bytes of an array of 64-bit integers, which NumPy reads without a copy.
py::bytearray array_of(const std::vector<std::int64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)};
}

py::list indices_of(const std::vector<HdpRank>& group) {
  py::list ranks;
  for (const HdpRank rank : group) ranks.append(rank.index());
  return ranks;
}

py::list list_of(const std::vector<Span>& spans) {
  py::list all;
  for (const Span& span : spans) all.append(py::make_tuple(span.sequence.index(), span.begin, span.tokens));
  return all;
}

/// A micro-batch of a plan, which it keeps, with the cut of its tokens.
class PlanMicroBatch {
 public:
  PlanMicroBatch(SharedPlan document, std::size_t index)
      : document_(std::move(document)), micro_batch_(document_->plan.micro_batches.at(index)), held_(micro_batch_) {}

  [[nodiscard]] const MicroBatch& get() const { return micro_batch_; }

  [[nodiscard]] py::dict facts() const {
    using namespace py::literals;  // NOLINT
    py::list local;
    for (const LocalSpans& own : micro_batch_.local) {
      local.append(py::make_tuple(micro_batch_.group[own.holder].index(), list_of(own.spans)));
    }
    py::list moved;
    for (const ServedQueries& queries : micro_batch_.moved) {
      moved.append(
          py::make_tuple(queries.span, queries.begin, queries.tokens, micro_batch_.group[queries.server].index()));
    }
    const auto exchange = exchange_in(*document_, micro_batch_);
    return py::dict(
        "group"_a = py::tuple(indices_of(micro_batch_.group)), "spans"_a = py::tuple(list_of(micro_batch_.spans)),
        "local"_a = py::tuple(local), "cut"_a = token_cut_words().at(static_cast<std::size_t>(micro_batch_.cut)),
        "moved"_a = py::tuple(moved),
        "exchange"_a = exchange ? std::optional(std::string(exchange_word(*exchange))) : std::nullopt,
        "offload"_a = micro_batch_.offload, "token_wise"_a = micro_batch_.token_wise,
        "continues"_a = micro_batch_.continues, "repeats_forward"_a = micro_batch_.repeats_forward,
        "padding"_a = micro_batch_.padding, "padded"_a = micro_batch_.padded, "update"_a = micro_batch_.update);
  }

  /// Sequence, begin and end of every span: those that the group shares, then local ones by rising holder.
  [[nodiscard]] py::bytearray spans() const {
    std::vector<std::int64_t> numbers;
    for_each_span(micro_batch_, [&](const Span& span) {
      const auto sequence = static_cast<std::int64_t>(span.sequence.index());
      numbers.insert(numbers.end(), {sequence, span.begin, span.begin + span.tokens});
    });
    return array_of(numbers);
  }

  /// Span, begin and end of the pieces that a member holds of what the group shares; tokens count from the begin of the
  /// sequence.
  [[nodiscard]] py::bytearray pieces(std::size_t member) const {
    std::vector<std::int64_t> numbers;
    for (const CutPiece& piece : joined(held_.of(member))) {
      const std::int64_t first = micro_batch_.spans[piece.document].begin;
      numbers.insert(numbers.end(),
                     {static_cast<std::int64_t>(piece.document), first + piece.begin, first + piece.end()});
    }
    return array_of(numbers);
  }

  /// The same of the spans that a member holds alone.
  [[nodiscard]] py::bytearray local(std::size_t member) const {
    std::vector<std::int64_t> numbers;
    auto index = std::ssize(micro_batch_.spans);
    for (const LocalSpans& own : micro_batch_.local) {
      for (const Span& span : own.spans) {
        if (own.holder == member) numbers.insert(numbers.end(), {index, span.begin, span.begin + span.tokens});
        ++index;
      }
    }
    return array_of(numbers);
  }

  /// Span, begin in the sequence, tokens, holder and server of the queries that move.
  [[nodiscard]] py::bytearray moved() const {
    std::vector<std::int64_t> numbers;
    for (const HeldQueries& held : moved_by_holder(micro_batch_)) {
      const ServedQueries& queries = held.queries;
      numbers.insert(
          numbers.end(),
          {static_cast<std::int64_t>(queries.span), micro_batch_.spans[queries.span].begin + queries.begin,
           queries.tokens, static_cast<std::int64_t>(held.holder), static_cast<std::int64_t>(queries.server)});
    }
    return array_of(numbers);
  }

 private:
  SharedPlan document_;
  const MicroBatch& micro_batch_;
  HeldPieces held_;
};

SharedPlan checked(std::optional<PlanDocument> document, const Diagnostics& diagnostics) {
  diagnostics.throw_if_any();
  return std::make_shared<const PlanDocument>(std::move(*document));
}

SharedPlan parse(const std::string& name, const std::string& text) {
  const py::gil_scoped_release no_gil;
  Diagnostics diagnostics;
  return checked(sound_document(name, text, diagnostics), diagnostics);
}

SharedPlan read(const std::string& path) {
  const py::gil_scoped_release no_gil;
  Diagnostics diagnostics;
  return checked(load_sound_document(path, diagnostics), diagnostics);
}

std::vector<std::size_t> schedule(const SharedPlan& document, std::size_t rank) {
  std::vector<std::size_t> ids;
  for (const MicroBatchId id : document->plan.schedule.at(rank)) ids.push_back(id.index());
  return ids;
}

}  // namespace

void bind_plan(py::module_& module) {
  py::class_<PlanMicroBatch>(module, "PlanMicroBatch")
      .def_property_readonly("facts", &PlanMicroBatch::facts)
      .def("place",
           [](const PlanMicroBatch& on, std::size_t rank) -> std::optional<std::size_t> {
             const std::vector<HdpRank>& group = on.get().group;
             const auto found = std::find(group.begin(), group.end(), HdpRank(rank));
             return found == group.end() ? std::nullopt : std::optional<std::size_t>(found - group.begin());
           })
      .def_property_readonly("earlier_keys", [](const PlanMicroBatch& on) { return on.get().earlier_keys(); })
      .def("spans", &PlanMicroBatch::spans)
      .def("pieces", &PlanMicroBatch::pieces, py::arg("member"))
      .def("local", &PlanMicroBatch::local, py::arg("member"))
      .def("moved", &PlanMicroBatch::moved);

  // Held through a holder class, since pybind11's own pointers are not to constants.
  py::class_<PlanHandle>(module, "Plan")
      .def_static("parse",
                  [](const std::string& name, const std::string& text) { return PlanHandle{parse(name, text)}; })
      .def_static("read", [](const std::string& path) { return PlanHandle{read(path)}; })
      .def("json",
           [](const PlanHandle& plan) {
             const py::gil_scoped_release no_gil;
             return plan_text(*plan.document);
           })
      .def_property_readonly("policy", [](const PlanHandle& plan) { return plan->plan.policy; })
      .def_property_readonly("step", [](const PlanHandle& plan) { return plan->plan.step; })
      .def_property_readonly("ranks", [](const PlanHandle& plan) { return plan->plan.ranks; })
      .def_property_readonly("capacity", [](const PlanHandle& plan) { return plan->plan.capacity; })
      .def_property_readonly("layers", [](const PlanHandle& plan) { return plan->plan.layers; })
      .def_property_readonly("expert_ranks", [](const PlanHandle& plan) { return plan->plan.expert_ranks; })
      .def_property_readonly("lengths", [](const PlanHandle& plan) { return plan->plan.sequence_tokens; })
      .def_property_readonly("ids", [](const PlanHandle& plan) { return plan->ids; })
      .def_property_readonly("tp", [](const PlanHandle& plan) { return plan->mesh.tp; })
      .def_property_readonly("pp", [](const PlanHandle& plan) { return plan->mesh.pp; })
      .def_property_readonly("placement", [](const PlanHandle& plan) { return plan->mesh.placement; })
      .def_property_readonly("model_layers", [](const PlanHandle& plan) { return plan->mesh.model_layers; })
      .def_property_readonly("exchange",
                             [](const PlanHandle& plan) {
                               const auto exchange = plan->mesh.exchange;
                               return exchange ? std::optional(std::string(exchange_word(*exchange))) : std::nullopt;
                             })
      .def_property_readonly("made_by",
                             [](const PlanHandle& plan) -> std::optional<std::vector<std::string>> {
                               if (!plan->made_by) return std::nullopt;
                               return std::vector{plan->made_by->version, plan->made_by->study, plan->made_by->hash};
                             })
      .def_property_readonly("waves", [](const PlanHandle& plan) { return runs_in_waves(plan->plan); })
      .def_property_readonly("update_count", [](const PlanHandle& plan) { return update_count(plan->plan); })
      .def_property_readonly("micro_batch_count",
                             [](const PlanHandle& plan) { return plan->plan.micro_batches.size(); })
      .def(
          "micro_batch", [](const PlanHandle& plan, std::size_t index) { return PlanMicroBatch(plan.document, index); },
          py::arg("index"))
      .def(
          "schedule", [](const PlanHandle& plan, std::size_t rank) { return schedule(plan.document, rank); },
          py::arg("rank"));
}

}  // namespace hdpsim::python
