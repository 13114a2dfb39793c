// An amount of data gives up its unit only by name.
// expect: cannot convert .*hdpsim::Bytes. to .*int
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
constexpr std::int64_t count = 4_KiB;
#else
constexpr std::int64_t count = (4_KiB).count();
#endif
