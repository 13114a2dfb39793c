#include "sim/validate/impl/case_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/division.h"
#include "sim/base/quantity_limits.h"
#include "sim/base/text.h"
#include "sim/document/reader.h"
#include "sim/document/values.h"
#include "sim/study/override.h"

namespace hdpsim {
namespace {

constexpr Range lengths{1, limits::most_tokens_of_sequence};
constexpr Range sequences{1, 1e6};
constexpr Range degrees{1, 32768};  // the product of four fits into 64 bits
constexpr Range amounts{1, 1e15};

class CaseReader {
 public:
  CaseReader(const SetTable& table, const Value& row, Value study, Diagnostics& diagnostics)
      : table_(table), row_(row), diagnostics_(diagnostics) {
    case_.study = std::move(study);
    (void)move_keys(case_.study, diagnostics_);
  }

  ValidationCase read() {
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      const Value& cell = row_.items[i];
      if (!cell.is_null()) take(table_.columns[i], cell);
    }
    case_.job = fmt::format("job {}", joined(job_, " "));
    const bool is_fixed = std::any_of(table_.columns.begin(), table_.columns.end(), [&](const Column& column) {
      return column.path.empty() && cell(column.name) != nullptr && !column.figure && column.name != "case";
    });
    if (is_fixed || cell("sequence") != nullptr) fixed_lengths();
    interleave();
    if (case_.name.empty()) case_.name = words_.empty() ? "the case" : joined(words_, " ");
    if (!table_.to_measure.empty()) case_.published = table_.to_measure;
    if (case_.published.empty()) complain(row_.position, "nothing was published of this case");
    return std::move(case_);
  }

 private:
  void take(const Column& column, const Value& cell) {
    if (column.figure) return figure(column, cell);
    if (column.name == "case") {
      case_.name = cell.text;
      return;
    }
    if (!table_.constant.contains(column.name)) words_.push_back(word(column.name, cell));
    if (!column.path.empty()) set_path(case_.study, column.path, cell, diagnostics_);
    if (column.name == "gpus_per_node" && !has_column("cluster.node.nics.count")) {
      set_path(case_.study, "cluster.node.nics.count", cell, diagnostics_);
    }
    if (!column.of_plan) job_.push_back(word(column.name, cell));
    if (column.name != "global_batch" && column.path != tokens_path) line_.push_back(word(column.name, cell));
  }

  void figure(const Column& column, const Value& cell) {
    const auto value = read_figure(*column.figure, column.name, cell, diagnostics_);
    case_.published.push_back({*column.figure, column.plan, value.value_or(1)});
  }

  // A job of sequences of one length: turns its batch into packs of one micro-batch each, and its degrees into a mesh.
  void fixed_lengths() {
    const std::int64_t sequence = stated("data.lengths.fixed", lengths, 0);
    const std::int64_t global_batch =
        cell("global_batch") != nullptr ? count("global_batch", sequences, 0) : parts_of(tokens_path, sequence, 0);
    if (sequence == 0 || global_batch == 0) {
      const bool is_stated = find("data.lengths.fixed") != nullptr && batch_cell() != nullptr;
      if (!is_stated) complain(row_.position, "a job of sequences of one length needs 'sequence' and 'global_batch'");
      return;
    }
    const std::int64_t micro_batch = has_column("data.context") && cell("micro_batch") == nullptr
                                         ? parts_of("data.context", sequence, 1)
                                         : count("micro_batch", sequences, 1);
    const std::int64_t tp = stated("mesh.tp", degrees, 1);
    const std::int64_t pp = stated("mesh.pp", degrees, 1);
    const std::int64_t cp = count("cp", degrees, 1);
    const std::int64_t dp = replicas(tp * pp, cp);
    if (global_batch % (micro_batch * dp) != 0) {
      complain(batch_cell()->position,
               fmt::format("{} sequences are no multiple of {} = {} a micro-batch x {} replicas", global_batch,
                           micro_batch * dp, micro_batch, dp),
               "every replica trains the same number of whole micro-batches");
    }
    const std::int64_t gpus = tp * pp * dp * cp;
    if (has_column("cluster.gpus") && stated("cluster.gpus", amounts, gpus) != gpus) {
      complain(find("cluster.gpus")->position,
               fmt::format("this mesh has {} GPUs = {} tp x {} pp x {} dp x {} cp", gpus, tp, pp, dp, cp));
    }
    const std::int64_t context = sequence * micro_batch;
    put("data.lengths.fixed", sequence, "sequence");
    put("data.context", context, "sequence");
    put(tokens_path, sequence * global_batch, "global_batch");
    put("data.steps", 1, "sequence");
    put("mesh.tp", tp, "tp");
    put("mesh.pp", pp, "pp");
    put("mesh.hdp", dp * cp, "dp");
    if (!has_column("mesh.capacity")) put("mesh.capacity", divided(context, cp), "sequence");
    put("cluster.gpus", gpus, "dp");
    case_.job += fmt::format(" gpus {}", gpus);
    case_.line = joined(line_, " ");
    case_.micro_batches = static_cast<double>(global_batch) / static_cast<double>(dp * micro_batch);
  }

  std::int64_t replicas(std::int64_t devices, std::int64_t cp) {
    if (cell("dp") != nullptr) return count("dp", degrees, 1);
    if (find("mesh.hdp") != nullptr) return parts_of("mesh.hdp", cp, 1);
    return parts_of("cluster.gpus", devices * cp, 1);
  }

  // Virtual stages are Megatron's interleaved schedule unless the set names another.
  void interleave() {
    const Value* chunks = find("mesh.virtual_stages");
    if (chunks == nullptr || chunks->text == "1" || find("mesh.schedule") != nullptr) return;
    set_path(case_.study, "mesh.schedule", Value::scalar("interleaved", chunks->position), diagnostics_);
  }

  [[nodiscard]] const Value* cell(std::string_view name) const {
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      if (table_.columns[i].name == name && !row_.items[i].is_null()) return &row_.items[i];
    }
    return nullptr;
  }

  [[nodiscard]] bool has_column(std::string_view path) const { return cell(path) != nullptr; }

  // What states the batch.
  [[nodiscard]] const Value* batch_cell() const {
    const Value* own = cell("global_batch");
    return own != nullptr ? own : find(tokens_path);
  }

  // The value that the set states at a path, in a cell or for all cases.
  [[nodiscard]] const Value* find(std::string_view path) const {
    const Value* at = &case_.study;
    while (at != nullptr && !path.empty()) {
      const auto dot = path.find('.');
      at = at->is_map() ? at->find(path.substr(0, dot)) : nullptr;
      path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    }
    return at == nullptr || at->is_null() ? nullptr : at;
  }

  std::int64_t count(std::string_view name, Range range, std::int64_t fallback) {
    const Value* found = cell(name);
    if (found == nullptr) return fallback;
    return read_in<std::int64_t>(*found, fmt::format("'{}'", name), range, diagnostics_).value_or(fallback);
  }

  std::int64_t stated(std::string_view path, Range range, std::int64_t fallback) {
    const Value* found = find(path);
    if (found == nullptr) return fallback;
    const auto is_of = [&](const Column& column) { return column.path == path; };
    const auto column = std::find_if(table_.columns.begin(), table_.columns.end(), is_of);
    const std::string name(column == table_.columns.end() ? std::string(path) : column->name);
    return read_in<std::int64_t>(*found, fmt::format("'{}'", name), range, diagnostics_).value_or(fallback);
  }

  // How many parts of this size the value at a path has.
  std::int64_t parts_of(std::string_view path, std::int64_t part, std::int64_t fallback) {
    if (part == 0) return fallback;
    const std::int64_t whole = stated(path, amounts, part * fallback);
    if (whole % part == 0) return whole / part;
    complain(find(path)->position, fmt::format("'{}' is {}, which is no multiple of {}", path, whole, part));
    return fallback;
  }

  // Puts a value at the position of its cell `from`, or where the set states it, so that problems with it point there.
  void put(std::string_view path, std::int64_t value, std::string_view from) {
    const Value* source = cell(from) != nullptr ? cell(from) : find(path);
    const Position position = source == nullptr ? row_.position : source->position;
    set_path(case_.study, std::string(path), Value::scalar(std::to_string(value), position), diagnostics_);
  }

  // Reports what would not be said if all columns were known.
  void complain(const Position& position, std::string message, std::string help = {}) {
    if (table_.is_known) diagnostics_.error(position, std::move(message), std::move(help));
  }

  static std::string word(const std::string& column, const Value& cell) {
    if (column == "model") return cell.text;
    return fmt::format("{} {}", column.substr(column.rfind('.') + 1), line_of(cell));
  }

  static constexpr char tokens_path[] = "data.tokens_per_step";

  const SetTable& table_;
  const Value& row_;
  Diagnostics& diagnostics_;
  std::vector<std::string> words_;
  std::vector<std::string> job_;
  std::vector<std::string> line_;
  ValidationCase case_;
};

}  // namespace

ValidationCase read_case(const SetTable& table, const Value& row, Value study, Diagnostics& diagnostics) {
  return CaseReader(table, row, std::move(study), diagnostics).read();
}

}  // namespace hdpsim
