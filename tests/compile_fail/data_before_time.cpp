// Data compares with data only.
// expect: no match for .operator<
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
constexpr bool less = 1_MiB < 5_us;
#else
constexpr bool less = 1_MiB < 5_GiB;
#endif
