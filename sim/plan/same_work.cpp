#include "sim/plan/same_work.h"

#include <algorithm>

namespace hdpsim {

bool have_same_work(const MicroBatch& a, const MicroBatch& b) {
  const auto same_span = [](const Span& one, const Span& other) {
    return one.begin == other.begin && one.tokens == other.tokens;
  };
  if (a.group.size() != 1 || b.group.size() != 1 || a.continues || !a.local.empty()) return false;
  if (!std::equal(a.spans.begin(), a.spans.end(), b.spans.begin(), b.spans.end(), same_span)) return false;
  MicroBatch renamed = b;
  renamed.group = a.group;
  renamed.spans = a.spans;
  return renamed == a;
}

}  // namespace hdpsim
