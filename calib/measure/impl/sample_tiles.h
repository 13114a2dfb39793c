#pragma once

#include <cstdint>

#include "calib/fit/samples.h"

namespace hdpsim::calib {

/// Chooses the tiles, by which a kernel rounds sizes up, of kernels that do not tell them: those of the circumstances,
/// usual ones, or none (one row, one column), whichever has the least held-out error. Attention and products are chosen
/// apart. Requires what fit_profile() requires.
void choose_tiles(Samples& samples, std::uint64_t seed);

}  // namespace hdpsim::calib
