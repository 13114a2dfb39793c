// Work is done at a rate of arithmetic, not of data.
// expect: no match for .operator/
#include "sim/base/units.h"

using namespace hdpsim;

#ifdef MISTAKE
auto busy() {
  return Flops(1e12) / 300_GBps;
}
#else
auto busy() {
  return Flops(1e12) / 300_TFLOPs;
}
#endif
