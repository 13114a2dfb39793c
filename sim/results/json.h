#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/document.h"

namespace hdpsim {

/// The whole result, schema `hdpsim.result/1`: `study` is the resolved study, `version` that of the program.
[[nodiscard]] std::string result_json(const Value& study, std::string_view version, const std::vector<Run>& runs);

/// Its JSON schema: configs/schemas/result.schema.json.
[[nodiscard]] std::string result_schema();

}  // namespace hdpsim
