#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sim/document/document.h"

namespace hdpsim {

/// Receives a table cell by cell, row by row. The first row holds the names of the columns.
class TableSink {
 public:
  virtual ~TableSink() = default;
  virtual void text(std::string_view text) = 0;
  virtual void count(std::int64_t count) = 0;
  virtual void number(double number) = 0;
  virtual void flag(bool flag) = 0;
  virtual void value(const Value& value) = 0;  ///< A value of a sweep.
  virtual void nothing() = 0;                  ///< A value that is not known, or was not asked for.
  virtual void end_row() = 0;
};

/// A CSV field (RFC 4180): quoted only if it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

/// The cells that `write` puts into the sink, as CSV: numbers are the shortest that read back exactly.
[[nodiscard]] std::string csv_text(const std::function<void(TableSink&)>& write);

}  // namespace hdpsim
