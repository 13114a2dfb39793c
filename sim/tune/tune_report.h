#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/document/document.h"
#include "sim/study/tune_options.h"
#include "sim/tune/tune.h"

namespace hdpsim {

/// For a person at a terminal: the best candidates, the front, and why others cannot run.
[[nodiscard]] std::string tune_table(const TuneResult& result, const std::optional<Price>& price);

/// One row a candidate, in the order of the ranking; numbers are the shortest that read back as themselves.
[[nodiscard]] std::string tune_csv(const TuneResult& result, const std::optional<Price>& price);

/// Schema `hdpsim.tuning/1`: `study` is the resolved study, `version` that of the program.
[[nodiscard]] std::string tune_json(const TuneResult& result, const std::optional<Price>& price, const Value& study,
                                    std::string_view version);

}  // namespace hdpsim
