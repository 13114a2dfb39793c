// Data over a bandwidth is a time; data over a time is not defined.
// expect: no match for .operator/
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
auto wire() {
  return 8_MiB / 5_us;
}
#else
auto wire() {
  return 8_MiB / 50_GBps;
}
#endif
