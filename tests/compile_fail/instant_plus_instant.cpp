// Two points of time cannot be added; a time can be added to one.
// expect: no match for .operator\+
#include "sim/base/units.h"

using namespace hdpsim;

constexpr Instant start = Instant::at(5_us);

#ifdef MISTAKE
constexpr Instant end = start + start;
#else
constexpr Instant end = start + 5_us;
#endif
