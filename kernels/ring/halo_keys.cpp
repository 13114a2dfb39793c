#include "kernels/ring/halo_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

// The ranks of a zigzag by the chunks of a document: chunk c is the first piece of rank c, or the second of the last
// rank but c - N.
struct Chunk {
  int owner;
  std::size_t half;
};

Chunk chunk_at(int chunk, int ranks) {
  return chunk < ranks ? Chunk{chunk, 0} : Chunk{2 * ranks - 1 - chunk, 1};
}

int chunk_of(int position, std::size_t half, int ranks) {
  return half == 0 ? position : 2 * ranks - 1 - position;
}

std::size_t row_count(const std::vector<HaloRows>& ranges) {
  std::int64_t rows = 0;
  for (const HaloRows& range : ranges) rows += range.rows;
  return static_cast<std::size_t>(rows);
}

std::vector<std::vector<Piece>> pieces_of_all(const ShardedDocuments& documents) {
  std::vector<std::vector<Piece>> pieces;
  pieces.reserve(static_cast<std::size_t>(documents.ranks()));
  for (int position = 0; position < documents.ranks(); ++position) pieces.push_back(documents.pieces(position));
  return pieces;
}

}  // namespace

Halo halo_of(const std::vector<std::vector<Piece>>& pieces, int position, std::int64_t window) {
  const int ranks = static_cast<int>(pieces.size());
  const std::vector<Piece>& own = pieces[static_cast<std::size_t>(position)];
  Halo halo;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Piece& piece = own[i];
    const std::int64_t first = std::max<std::int64_t>(0, piece.begin - (window - 1));
    const std::int64_t keys = piece.begin - first;
    if (piece.rows == 0 || keys == 0) continue;
    std::vector<HaloRows> before;  // from the last chunk to the first
    for (int c = chunk_of(position, i % 2, ranks) - 1; c >= 0; --c) {
      const Chunk chunk = chunk_at(c, ranks);
      const Piece& there = pieces[static_cast<std::size_t>(chunk.owner)][i - i % 2 + chunk.half];
      const std::int64_t begin = std::max(first, there.begin);
      const std::int64_t rows = there.begin + there.rows - begin;
      if (rows > 0)
        before.push_back({chunk.owner, there.local_begin + begin - there.begin, halo.rows + begin - first, rows});
      if (there.begin <= first) break;
    }
    halo.needed.insert(halo.needed.end(), before.rbegin(), before.rend());
    const std::int64_t queries = std::min(piece.rows, window - 1);
    halo.blocks.push_back({.query_begin = piece.local_begin,
                           .queries = queries,
                           .key_begin = halo.rows,
                           .keys = keys,
                           .mask = Mask::causal,
                           .window = window,
                           .lead = queries});
    halo.rows += keys;
  }
  return halo;
}

HaloKeys::HaloKeys(Backend& backend, Transport& transport)
    : backend_(backend),
      transport_(transport),
      sent_(backend),
      received_(backend),
      keys_(backend),
      d_keys_(backend),
      delta_(backend) {}

HaloKeys::~HaloKeys() {
  if (!under_way_) return;
  try {
    transport_.wait(ticket_);
  } catch (const std::exception&) {  // The error that ended the pass is the one to report.
  }
}

void HaloKeys::join(const RingPlace& place, const AttentionHeads& heads, std::int64_t window) {
  if (under_way_) throw std::logic_error("a halo is left with an exchange under way");
  if (backend_.element() != Element::fp32) throw UnsupportedInput("windows over several ranks need fp32");
  place_ = place;
  heads_ = heads;
  rows_ = place.documents->rows(place.position);
  const std::vector<std::vector<Piece>> pieces = pieces_of_all(*place.documents);
  own_.clear();
  for (const Piece& piece : pieces[static_cast<std::size_t>(place.position)]) {
    if (piece.rows == 0) continue;
    own_.push_back({.query_begin = piece.local_begin,
                    .queries = piece.rows,
                    .key_begin = piece.local_begin,
                    .keys = piece.rows,
                    .mask = Mask::causal,
                    .window = window});
  }
  find_peers(pieces, window);
}

void HaloKeys::find_peers(const std::vector<std::vector<Piece>>& pieces, std::int64_t window) {
  const auto of_owner = [](const Halo& halo, int owner) {
    std::vector<HaloRows> rows;
    std::copy_if(halo.needed.begin(), halo.needed.end(), std::back_inserter(rows),
                 [&](const HaloRows& needed) { return needed.owner == owner; });
    return rows;
  };
  std::size_t wanted = 0;
  std::size_t needed = 0;
  const auto message = [](std::vector<HaloRows> rows, std::size_t& all) {
    const std::size_t count = row_count(rows);
    return Message{std::move(rows), std::exchange(all, all + count), count};
  };
  halo_ = halo_of(pieces, place_.position, window);
  of_own_ = of_owner(halo_, place_.position);
  peers_.clear();
  for (int position = 0; position < place_.documents->ranks(); ++position) {
    if (position == place_.position) continue;
    Peer peer{.rank = (*place_.members)[static_cast<std::size_t>(position)],
              .wanted = message(of_owner(halo_of(pieces, position, window), place_.position), wanted),
              .needed = message(of_owner(halo_, position), needed)};
    if (peer.wanted.count + peer.needed.count > 0) peers_.push_back(std::move(peer));
  }
  most_ = std::max(wanted, needed);
}

void HaloKeys::begin(const RingForward& op) {
  is_backward_ = false;
  forward_ = op;
  exchanges_ = launches_ = 0;
}

void HaloKeys::begin(const RingBackward& op) {
  is_backward_ = true;
  backward_ = op;
  exchanges_ = launches_ = 0;
}

// Keys come from those who have them, and their gradients go back.
void HaloKeys::exchange() {
  if (under_way_) throw std::logic_error("an exchange of a halo starts before the one before it has ended");
  const bool gradients = exchanges_++ > 0;
  (void)received_.reserve(most_ * row_bytes());
  pack(gradients);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (const Peer& peer : peers_) {
    const Message& out = gradients ? peer.needed : peer.wanted;
    const Message& in = gradients ? peer.wanted : peer.needed;
    if (out.count > 0) sends.push_back({peer.rank, sent_.data() + out.first * row_bytes(), out.count * row_bytes()});
    if (in.count > 0)
      receives.push_back({peer.rank, received_.data() + in.first * row_bytes(), in.count * row_bytes()});
  }
  ticket_ = transport_.start(sends, receives);
  under_way_ = true;
}

void HaloKeys::pack(bool gradients) {
  std::byte* to = sent_.reserve(most_ * row_bytes());
  const auto* const keys = static_cast<const std::byte*>(is_backward_ ? backward_.kv : forward_.kv);
  for (const Peer& peer : peers_) {
    for (const HaloRows& range : (gradients ? peer.needed : peer.wanted).ranges) {
      const std::byte* const from = gradients ? d_keys_.data() + at(range.halo) : keys + at(range.held);
      backend_.copy(to, from, at(range.rows));
      to += at(range.rows);
    }
  }
}

void HaloKeys::wait() {
  if (!std::exchange(under_way_, false)) return;
  try {
    transport_.wait(ticket_);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("windowed attention {}, exchange {}, ring of ranks {}: {}",
                                  is_backward_ ? "backward" : "forward", exchanges_, fmt::join(*place_.members, " "),
                                  error.what()));
  }
  exchanges_ == 1 ? take_keys() : add_gradients();
}

void HaloKeys::take_keys() {
  std::byte* const halo = keys_.reserve(at(halo_.rows));
  for (const Peer& peer : peers_) {
    const std::byte* from = received_.data() + peer.needed.first * row_bytes();
    for (const HaloRows& range : peer.needed.ranges) {
      backend_.copy(halo + at(range.halo), from, at(range.rows));
      from += at(range.rows);
    }
  }
}

void HaloKeys::add_gradients() {
  for (const Peer& peer : peers_) {
    const std::byte* from = received_.data() + peer.wanted.first * row_bytes();
    for (const HaloRows& range : peer.wanted.ranges) {
      add(range.held, from, range.rows);
      from += at(range.rows);
    }
  }
}

void HaloKeys::add(std::int64_t row, const std::byte* rows, std::int64_t count) {
  float* const sum = backward_.d_kv + row * kv_width(heads_);
  backend_.run(Add{.count = count * kv_width(heads_), .a = sum, .b = rows, .y = sum, .fp32 = true});
}

void HaloKeys::attend() {
  launches_++ == 0 ? attend_own() : attend_halo();
}

void HaloKeys::attend_own() {
  if (is_backward_) {
    (void)delta_.reserve(static_cast<std::size_t>(rows_ * heads_.heads) * sizeof(float));
    begin_backward(backend_, heads_, rows_, backward_, delta_.floats());
    backend_.fill_bytes(backward_.d_kv, 0, at(rows_));
  }
  if (own_.empty()) return;
  if (!is_backward_) {
    AttentionForward launched = forward_launch(launch(own_), forward_, forward_.kv);
    launched.sinks = forward_.sinks;
    return backend_.run(launched);
  }
  AttentionBackward launched = backward_launch(launch(own_), backward_, backward_.kv, backward_.d_kv, delta_.floats());
  launched.sinks = backward_.sinks;
  launched.d_sinks = backward_.d_sinks;
  backend_.run(launched);
}

void HaloKeys::attend_halo() {
  if (halo_.rows == 0) return;
  std::byte* const halo = keys_.reserve(at(halo_.rows));
  const auto* const own = static_cast<const std::byte*>(is_backward_ ? backward_.kv : forward_.kv);
  for (const HaloRows& range : of_own_) {
    backend_.copy(halo + at(range.halo), own + at(range.held), at(range.rows));
  }
  if (!is_backward_) {
    AttentionForward launched = forward_launch(launch(halo_.blocks), forward_, halo);
    launched.accumulate = true;
    return backend_.run(launched);
  }
  std::byte* const d_halo = d_keys_.reserve(at(halo_.rows));
  backend_.fill_bytes(d_halo, 0, at(halo_.rows));
  backend_.run(backward_launch(launch(halo_.blocks), backward_, halo, d_keys_.floats(), delta_.floats()));
  for (const HaloRows& range : of_own_) add(range.held, d_halo + at(range.halo), range.rows);
}

}  // namespace hdpsim::kernels
