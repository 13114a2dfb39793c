#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/app/command.h"
#include "sim/app/resumable.h"
#include "sim/replay/replay_choice.h"
#include "sim/study/study.h"

namespace hdpsim::app {

/// A study that was read for a replay, and how.
struct ProductionOrder {
  const std::string& file;
  const ReplayChoice& choice;
  const std::vector<std::string>& overrides;
  const std::vector<std::string>& without;
  bool ablate = false;  ///< Run it without each of its mechanisms, too.
  const ResumeOptions& keeping;
  Format format = Format::table;
  std::size_t jobs = 1;
};

/// Runs the plans of a point of a study for the hours that its `production` states, and prints or writes what comes
/// out. Returns the exit code. `study` is as choose() has left it.
int replay_production(const ProductionOrder& order, const Study& study, const StudyPoint& point, Catalog& catalog,
                      const Session& session);

}  // namespace hdpsim::app
