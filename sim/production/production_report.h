#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/output_folder.h"
#include "sim/document/document.h"
#include "sim/production/production.h"

namespace hdpsim {

/// For a person at a terminal: what the hours of each plan were spent on, what came out, what happened, and what each
/// mechanism costs.
[[nodiscard]] std::string production_table(const ProductionResult& result);
/// The same as a page.
[[nodiscard]] std::string production_page(const ProductionResult& result);
/// A row for each plan, with and without each mechanism.
[[nodiscard]] std::string production_csv(const ProductionResult& result);
/// Schema `hdpsim.production/1`; `study` is the resolved study, `version` that of the program.
[[nodiscard]] std::string production_json(const ProductionResult& result, const Value& study, std::string_view version);

/// Writes all of these, study.yaml and events.csv. MachineError if a file cannot be written.
void write_production(OutputFolder& folder, const ProductionResult& result, const Value& study,
                      std::string_view version);
/// Names of these files.
[[nodiscard]] std::vector<std::string> production_file_names();

}  // namespace hdpsim
