#pragma once

#include <vector>

#include "sim/study/catalog.h"
#include "sim/study/problems.h"
#include "sim/study/study.h"
#include "sim/study/sweep.h"

namespace hdpsim {

/// Resolves the points of a study, whose plans have been read, and adds them to it. Points that agree in all keys with
/// Decides::world share a world. `advises`: problems of room come with changes of the study that solve them.
void add_points(std::vector<SweepPoint> points, Study& study, Catalog& catalog, Problems& problems, bool advises);

}  // namespace hdpsim
