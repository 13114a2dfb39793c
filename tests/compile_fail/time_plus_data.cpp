// Times add up with times only.
// expect: no match for .operator\+
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
const auto sum = 5_us + 3_MiB;
#else
const auto sum = 5_us + 3_ms;
#endif
