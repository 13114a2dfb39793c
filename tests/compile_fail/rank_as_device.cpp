// An HDP rank is no device: a placement says which devices it has.
// expect: could not convert .rank. from .*HdpRankTag.* to .*DeviceTag
#include "sim/base/id.h"

using namespace hdpsim;

void run_on(DeviceId device);

#ifdef MISTAKE
void run(HdpRank rank) {
  run_on(rank);
}
#else
void run(DeviceId device) {
  run_on(device);
}
#endif
