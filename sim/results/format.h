#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/document.h"
#include "sim/run/advice.h"
#include "sim/trace/description.h"
#include "sim/trace/length_fit.h"

namespace hdpsim {

/// Formats of printed results: for people, for spreadsheets, for programs.
enum class Format { table, csv, json };

/// The result of a study; `resolved` and `version` are only for JSON, advice only for people.
[[nodiscard]] std::string formatted(const std::vector<Run>& runs, const Value& resolved, std::string_view version,
                                    Format format, const RunAdvice& advice = {});
[[nodiscard]] std::string formatted(const Description& description, Format format);
[[nodiscard]] std::string formatted(const LengthFit& fit, Format format);

}  // namespace hdpsim
