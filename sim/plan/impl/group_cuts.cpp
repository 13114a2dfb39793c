#include "sim/plan/impl/group_cuts.h"

#include <algorithm>

namespace hdpsim {

std::int64_t PartDealing::begin(std::int64_t part) const {
  const std::int64_t straight = std::clamp<std::int64_t>(part - first_, 0, remainder_);
  const std::int64_t wrapped = std::clamp<std::int64_t>(first_ + remainder_ - parts_, 0, std::min(part, first_));
  return part * each_ + straight + wrapped;
}

Pack::Pack(const std::vector<std::int64_t>& lengths) : begins_{0} {
  begins_.reserve(lengths.size() + 1);
  for (const std::int64_t length : lengths) begins_.push_back(begins_.back() + length);
}

std::vector<CutPiece> Pack::pieces(std::int64_t begin, std::int64_t end) const {
  std::vector<CutPiece> pieces;
  const std::int64_t last = std::min(end, tokens());
  // Empty documents begin where the next one does.
  auto document = std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1;
  while (begin < last) {
    const auto index = static_cast<std::size_t>(document);
    const std::int64_t tokens = std::min(last, begins_[index + 1]) - begin;
    if (tokens > 0) pieces.push_back({index, begin - begins_[index], tokens});
    begin += tokens;
    ++document;
  }
  return pieces;
}

}  // namespace hdpsim
