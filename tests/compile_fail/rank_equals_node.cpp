// Ids compare with ids of their own kind only.
// expect: no match for .operator==
#include "sim/base/id.h"

using namespace hdpsim;

#ifdef MISTAKE
constexpr bool same = HdpRank(1) == NodeId(1);
#else
constexpr bool same = NodeId(1) == NodeId(1);
#endif
