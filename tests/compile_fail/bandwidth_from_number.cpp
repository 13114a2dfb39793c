// A bandwidth is made from a rate with its unit.
// expect: .*Bandwidth::Bandwidth\(.*\). is private within this context
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
constexpr Bandwidth rate{50};
#else
constexpr Bandwidth rate = Bandwidth::bytes_per_second(50);
#endif
