#include "sim/python/bindings.h"

#include <algorithm>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity_text.h"
#include "sim/document/values.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// Collects cells by column.
class Columns final : public TableSink {
 public:
  void text(std::string_view text) override {
    if (in_header_) {
      names_.append(text);
      columns_.emplace_back();
    } else {
      add(py::str(text.data(), text.size()));
    }
  }
  void count(std::int64_t count) override { add(py::int_(count)); }
  void number(double number) override { add(py::float_(number)); }
  void flag(bool flag) override { add(py::bool_(flag)); }
  void value(const Value& value) override {
    const Parsed<std::int64_t> count = parse_count(value.text);
    if (value.is_scalar() && !value.quoted && count.value) return this->count(*count.value);
    text(line_of(value));
  }
  void nothing() override { add(py::none()); }
  void end_row() override {
    in_header_ = false;
    next_ = 0;
  }

  [[nodiscard]] py::dict take() const {
    py::dict table;
    for (std::size_t i = 0; i < columns_.size(); ++i) table[names_[i]] = columns_[i];
    return table;
  }

 private:
  void add(const py::object& cell) { columns_.at(next_++).append(cell); }

  py::list names_;
  std::vector<py::list> columns_;
  std::size_t next_ = 0;  // column of the next cell
  bool in_header_ = true;
};

}  // namespace

py::dict columns_of(const std::function<void(TableSink&)>& write) {
  Columns columns;
  write(columns);
  return columns.take();
}

std::size_t table_named(const std::string& name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw py::value_error("a result has no table '" + name + "'; " + suggestion(name, names));
}

}  // namespace hdpsim::python
