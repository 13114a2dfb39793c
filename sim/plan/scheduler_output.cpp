#include "sim/plan/scheduler_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/base/text.h"
#include "sim/document/input_file.h"
#include "sim/document/json_stream.h"
#include "sim/document/limits.h"
#include "sim/document/reader.h"
#include "sim/plan/given_plans.h"
#include "sim/plan/impl/stated_groups.h"
#include "sim/plan/plan_file.h"

namespace hdpsim {
namespace {

// Each rank has lists of its own, so that a number alone must not fill memory.
constexpr double most_listed_ranks = 1048576.0;

bool is_form(std::string_view key) {
  const auto& forms = group_forms();
  return std::find(forms.begin(), forms.end(), key) != forms.end();
}

/// Reads one step: a document, whose long lists are taken item by item.
class StepReader {
 public:
  StepReader(const SchedulerContext& context, std::int64_t step, Diagnostics& diagnostics)
      : context_(context), diagnostics_(diagnostics), groups_(diagnostics) {
    plan_.policy = context.policy;
    plan_.step = step;
  }

  bool take(std::string_view key, const Value& item) {
    if (key == "lengths") {
      read_length(item);
    } else if (is_form(key)) {
      groups_.read(key, item);
    } else {
      return false;
    }
    return true;
  }

  // The plan, which is of use if nothing was reported.
  Plan read(const Value& document) {
    MapReader reader(document, "the step", diagnostics_);
    if (!document.is_map()) return {};
    where_ = document.position;
    plan_.step = reader.optional_in<std::int64_t>("step", {0, most_steps_of_plans}).value_or(plan_.step);
    const Value* lengths = reader.find("lengths");
    if (lengths != nullptr) take_rest("lengths", *lengths);
    const std::string_view form = read_form(reader);
    check_lengths(lengths);
    plan_.ranks = ranks_of(reader, form).value_or(0);
    plan_.capacity = agreed(reader, "capacity", {1, most_tokens_of_plans}, context_.capacity).value_or(0);
    plan_.layers = layers_of(reader);
    if (plan_.capacity == 0 && reader.find("capacity") == nullptr && !context_.is_partial) {
      reader.error("the capacity is not known: the tokens that one rank holds per micro-batch",
                   "state \"capacity\": 8192, or use --capacity or --study");
    }
    find_unread(document);
    if (!form.empty()) place(form);
    return std::move(plan_);
  }

  [[nodiscard]] const std::vector<std::string>& unread() const { return unread_; }

 private:
  void read_length(const Value& item) {
    plan_.sequence_tokens.push_back(
        read_in<std::int64_t>(item, "the length of a sequence", {1, most_tokens_of_plans}, diagnostics_).value_or(1));
  }

  // The items of a list that were not taken: the text was no JSON.
  void take_rest(std::string_view key, const Value& list) {
    if (!list.is_sequence()) {
      diagnostics_.error(list.position, fmt::format("'{}' must be a list, found {}", key, kind_name(list.kind)));
      return;
    }
    for (const Value& item : list.items) (void)take(key, item);
  }

  // The form in which the work is stated; empty, with the problem reported, unless there is exactly one.
  std::string_view read_form(MapReader& reader) {
    std::vector<std::string_view> stated;
    for (const std::string& form : group_forms()) {
      const Value* list = reader.find(form);
      if (list == nullptr) continue;
      stated.push_back(form);
      take_rest(form, *list);
    }
    if (stated.size() == 1) return stated.front();
    if (stated.empty()) {
      reader.error(fmt::format("the step has no groups: '{}'", joined(group_forms(), "', '")),
                   "write \"micro_batches\": [{\"ranks\": [0, 1], \"sequences\": [3, 5]}]");
    } else {
      reader.error(fmt::format("the groups are here in {} forms: '{}'", stated.size(), joined(stated, "', '")),
                   "keep one of them");
    }
    return {};
  }

  // A study knows the batch, which may be stated again.
  void check_lengths(const Value* stated) {
    if (!context_.batch) {
      if (stated != nullptr) return;
      knows_batch_ = false;
      if (context_.is_partial) return;
      diagnostics_.error(where_, "the step has no 'lengths': the tokens of every sequence of its batch",
                         "state them, or name the study with --study");
      return;
    }
    if (plan_.step >= context_.steps.value_or(plan_.step + 1)) {
      diagnostics_.error(
          where_, fmt::format("there is no step {}: the study has {}, counted from 0", plan_.step, *context_.steps),
          "state 'step', or use --step for the first one");
      knows_batch_ = false;
      return;
    }
    const Batch batch = context_.batch(plan_.step);
    if (stated == nullptr) {
      for (const Sequence& sequence : batch.sequences) plan_.sequence_tokens.push_back(sequence.tokens);
    } else if (const auto difference = difference_of_batches(plan_, batch)) {
      diagnostics_.error(stated->position,
                         fmt::format("this is not the batch of step {} of the study: {}", plan_.step, *difference),
                         "leave 'lengths' out: the study knows them");
    }
  }

  // A number that the text may state and the context may know; they must agree.
  std::optional<std::int64_t> agreed(MapReader& reader, std::string_view key, const Range& range,
                                     const std::optional<std::int64_t>& known) {
    const auto stated = reader.optional_in<std::int64_t>(key, range);
    if (stated && known && *stated != *known) {
      diagnostics_.error(reader.find(key)->position,
                         fmt::format("'{}' is {} here, and {} by the options or the study", key, *stated, *known),
                         "leave it out in one place");
    }
    return stated ? stated : known;
  }

  // Lists of ranks say themselves how many there are.
  std::optional<std::int64_t> ranks_of(MapReader& reader, std::string_view form) {
    std::optional<std::int64_t> ranks = agreed(reader, "ranks", {1, most_listed_ranks}, context_.ranks);
    if (reader.find("ranks") != nullptr && !ranks) return std::nullopt;
    if (form == "sample_id_groups" && groups_.ranks_of_items()) {
      const std::int64_t listed = *groups_.ranks_of_items();
      if (ranks.value_or(listed) != listed) {
        reader.error(fmt::format("the micro-batches have {} ranks, the pool has {}", listed, *ranks));
      }
      return std::min(listed, ranks.value_or(listed));
    }
    if (form == "by_rank" && !ranks) return static_cast<std::int64_t>(groups_.items());
    if (!ranks && !form.empty() && !context_.is_partial) {
      reader.error("the number of HDP ranks is not known", "state \"ranks\": 8, or use --ranks or --study");
    }
    return ranks;
  }

  std::int64_t layers_of(MapReader& reader) {
    const auto layers = agreed(reader, "layers", {1, most_layers_of_plans}, context_.layers);
    const auto& groups = groups_.groups();
    const auto offloads =
        std::find_if(groups.begin(), groups.end(), [](const auto& group) { return group.offload > 0; });
    if (!layers && offloads != groups.end() && !context_.is_partial) {
      diagnostics_.error(offloads->position, "this group offloads, but the layers of a pass of a rank are not known",
                         "state \"layers\": 32, or use --layers or --study");
    }
    return layers.value_or(1);
  }

  void find_unread(const Value& document) {
    for (const Value::Entry& entry : document.entries) {
      const std::string& key = entry.key;
      const bool is_read =
          key == "step" || key == "lengths" || key == "ranks" || key == "capacity" || key == "layers" || is_form(key);
      if (!is_read) unread_.push_back(key);
    }
  }

  void place(std::string_view form) {
    if (knows_batch_ && groups_.knows_sequences()) check_sequences(groups_.groups(), plan_, where_, diagnostics_);
    if (plan_.ranks == 0) return;
    const std::size_t lists = form == "by_rank" ? groups_.items() : 0;
    if (lists > 0 && plan_.ranks % static_cast<std::int64_t>(lists) != 0) {
      diagnostics_.error(where_, fmt::format("'by_rank' has {} lists, the pool has {} ranks", lists, plan_.ranks),
                         "state a list for every rank, or for every run of ranks that share their sequences");
      return;
    }
    place_groups(groups_.groups(), lists, plan_, where_, diagnostics_);
  }

  const SchedulerContext& context_;
  Diagnostics& diagnostics_;
  GroupReader groups_;
  Plan plan_;
  Position where_;
  bool knows_batch_ = true;
  std::vector<std::string> unread_;
};

/// Reads the steps of one text.
class OutputReader {
 public:
  OutputReader(const std::string& file, const SchedulerContext& context) : file_(file), context_(context) {
    output_.next_step = context.first_step;
  }

  void read_step(const std::string& text, int lines_before) {
    Diagnostics of_step;
    StepReader reader(context_, output_.next_step, of_step);
    const TakeItem take = [&](const Value&, std::string_view key, const Value& item) { return reader.take(key, item); };
    std::optional<Value> document = parse_json(file_, text, take, of_step);
    if (!document) {
      // It is no JSON: what was read of it is forgotten.
      Diagnostics again;
      StepReader from_start(context_, output_.next_step, again);
      const Value whole = parse_document(file_, text, again);
      Plan plan = again.empty() ? from_start.read(whole) : Plan{};
      return keep(std::move(plan), from_start.unread(), again, lines_before);
    }
    Plan plan = document->is_null() ? Plan{} : reader.read(*document);  // refused as a whole, which has been reported
    keep(std::move(plan), reader.unread(), of_step, lines_before);
  }

  [[nodiscard]] bool gives_up() const { return wrong_ >= limits_of_problems; }
  SchedulerPlans take() { return std::move(output_); }
  Diagnostics& found() { return found_; }

 private:
  static constexpr std::size_t limits_of_problems = static_cast<std::size_t>(most_problems);

  void keep(Plan plan, const std::vector<std::string>& unread, const Diagnostics& problems, int lines_before) {
    if (!problems.empty()) plan.step = output_.next_step;  // it may be of no step at all
    output_.next_step = plan.step + 1;
    for (Diagnostic problem : problems.sorted()) {
      if (problem.position.line > 0) problem.position.line += lines_before;
      found_.add(std::move(problem));
      ++wrong_;
    }
    const auto [other, is_new] = lines_of_steps_.try_emplace(plan.step, lines_before + 1);
    if (!is_new && problems.empty()) {
      found_.error({file_, lines_before + 1, 1}, fmt::format("step {} is here a second time", plan.step),
                   fmt::format("it is at line {} already", other->second));
    }
    for (const std::string& key : unread) {
      if (std::find(output_.unread.begin(), output_.unread.end(), key) == output_.unread.end()) {
        output_.unread.push_back(key);
      }
    }
    output_.plans.push_back(std::move(plan));
  }

  const std::string& file_;
  const SchedulerContext& context_;
  Diagnostics found_;
  std::size_t wrong_ = 0;
  std::map<std::int64_t, int> lines_of_steps_;
  SchedulerPlans output_;
};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

void read_lines(const std::string& text, OutputReader& reader) {
  int lines = 0;
  for (std::size_t begin = 0; begin < text.size() && !reader.gives_up(); ++lines) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!is_blank(line)) reader.read_step(line, lines);
    begin = end + 1;
  }
}

}  // namespace

bool has_step_a_line(const std::string& path) {
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

bool holds_scheduler_step(const Value& document) {
  const auto& forms = group_forms();
  return std::any_of(forms.begin(), forms.end(), [&](const auto& form) { return document.find(form) != nullptr; });
}

bool holds_scheduler_steps(const std::string& path) {
  LineReader lines(path);
  if (!lines.next_filled('\0')) return false;
  Diagnostics ignored;
  const TakeItem take_all = [](const Value&, std::string_view, const Value&) { return true; };
  const std::optional<Value> step = parse_json(path, std::string(lines.text()), take_all, ignored);
  return step && holds_scheduler_step(*step);
}

SchedulerPlans read_scheduler_output(const std::string& file, const std::string& text, bool is_lines,
                                     const SchedulerContext& context, Diagnostics& diagnostics) {
  OutputReader reader(file, context);
  if (is_lines) {
    read_lines(text, reader);
  } else {
    reader.read_step(text, 0);
  }
  SchedulerPlans output = reader.take();
  Diagnostics& found = reader.found();
  if (output.plans.empty()) found.error({file, 0, 0}, "there is no step in this file", "state one step a line");
  if (found.empty()) return output;
  if (text.size() <= largest_shown_bytes) found.add_source(file, text);
  diagnostics.append(found);
  return {{}, std::move(output.unread), output.next_step};
}

}  // namespace hdpsim
