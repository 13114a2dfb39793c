#include "kernels/ring/shared_mixing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

std::size_t bytes_of(std::size_t floats) {
  return floats * sizeof(float);
}

}  // namespace

std::vector<Document> whole_documents(const ShardedDocuments& documents, std::int64_t first_row) {
  std::vector<Document> whole;
  for (const std::int64_t length : documents.lengths()) {
    whole.push_back({first_row, length});
    first_row += length;
  }
  return whole;
}

std::int64_t mixing_chunks(const ShardedDocuments& documents, int position) {
  if (documents.ranks() == 1) return linear_chunks(whole_documents(documents, 0));
  std::vector<Document> parts;
  for (const Piece& piece : documents.pieces(position)) parts.push_back({piece.local_begin, piece.rows});
  return linear_chunks(parts);
}

SharedMixing::SharedMixing(Backend& backend, Transport& transport)
    : backend_(backend),
      transport_(transport),
      decays_(backend),
      d_decays_(backend),
      ends_(backend),
      starts_(backend),
      all_(backend),
      zeros_(backend) {}

SharedMixing::~SharedMixing() {
  if (!under_way_) return;
  try {
    transport_.wait(ticket_);
  } catch (const std::exception&) {  // The error that ended the pass is the one to report.
  }
}

void SharedMixing::join(const RingPlace& place, std::span<const Document> alone, const LinearHeads& heads,
                        std::vector<float> log_decays) {
  if (under_way_) throw std::logic_error("linear mixing is left with an exchange under way");
  if (backend_.element() != Element::fp32) throw UnsupportedInput("linear mixing needs fp32");
  place_ = place;
  heads_ = heads;
  log_decays_ = std::move(log_decays);
  parts_.assign(static_cast<std::size_t>(place.documents->ranks()), {});
  documents_.clear();
  part_count_ = 0;
  if (is_shared()) {
    for (int position = 0; position < place.documents->ranks(); ++position) take_parts(position);
  } else {
    documents_ = whole_documents(*place.documents, 0);
  }
  own_ = parts_[static_cast<std::size_t>(place.position)];
  documents_.insert(documents_.end(), alone.begin(), alone.end());
  rows_ = 0;
  for (const Document& document : documents_) rows_ = std::max(rows_, document.begin + document.tokens);
  fill_decays();
}

void SharedMixing::take_parts(int position) {
  const std::vector<Piece> pieces = place_.documents->pieces(position);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.rows == 0) continue;
    const int chunk = i % 2 == 0 ? position : 2 * place_.documents->ranks() - 1 - position;
    parts_[static_cast<std::size_t>(position)].push_back(
        {static_cast<std::size_t>(piece.document), chunk, piece.rows, part_count_++});
    if (position == place_.position) documents_.push_back({piece.local_begin, piece.rows});
  }
}

void SharedMixing::fill_decays() {
  const auto rows = static_cast<std::size_t>(rows_);
  auto* const decays = reinterpret_cast<float*>(decays_.reserve(bytes_of(heads() * rows)));
  std::vector<float> row(rows);
  for (std::size_t head = 0; head < heads(); ++head) {
    std::fill(row.begin(), row.end(), log_decays_[head]);
    backend_.upload(decays + head * rows, row.data(), bytes_of(rows));
  }
}

LinearAttentionForward SharedMixing::launch(const MixingForward& op) const {
  return {.heads = heads_,
          .documents = documents_,
          .q = {op.q, op.stride},
          .k = {op.k, op.stride},
          .v = {op.v, op.stride},
          .log_decay = decays_.floats(),
          .decay_stride = rows_,
          .o = {op.o, heads_.heads * heads_.value_dim},
          .chunk_states = op.chunk_states};
}

LinearAttentionBackward SharedMixing::launch(const MixingBackward& op) const {
  return {.heads = heads_,
          .documents = documents_,
          .q = {op.q, op.stride},
          .k = {op.k, op.stride},
          .v = {op.v, op.stride},
          .d_o = {op.d_o, heads_.heads * heads_.value_dim},
          .log_decay = decays_.floats(),
          .decay_stride = rows_,
          .chunk_states = op.chunk_states,
          .d_q = {op.d_q, op.stride},
          .d_k = {op.d_k, op.stride},
          .d_v = {op.d_v, op.stride},
          .d_log_decay = d_decays_.floats()};
}

void SharedMixing::forward(const MixingForward& op) {
  is_backward_ = false;
  LinearAttentionForward all = launch(op);
  if (is_shared()) all.final_states = reserve_ends();
  backend_.run(all);
}

void SharedMixing::finish(const MixingForward& op) {
  if (!is_shared()) return;
  LinearAttentionForward all = launch(op);
  all.initial = joined_states();
  backend_.run(all);
}

// Gradients are added to.
void SharedMixing::backward(const MixingBackward& op) {
  is_backward_ = true;
  const auto rows = static_cast<std::size_t>(rows_);
  const std::size_t keys = static_cast<std::size_t>(heads_.key_heads * heads_.key_dim);
  const std::size_t values = static_cast<std::size_t>(heads_.heads * heads_.value_dim);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = row * static_cast<std::size_t>(op.stride);
    backend_.fill_bytes(op.d_q + at, 0, bytes_of(keys));
    backend_.fill_bytes(op.d_k + at, 0, bytes_of(keys));
    backend_.fill_bytes(op.d_v + at, 0, bytes_of(values));
  }
  backend_.fill_bytes(d_decays_.reserve(bytes_of(heads() * rows)), 0, bytes_of(heads() * rows));
  LinearAttentionBackward all = launch(op);
  if (is_shared()) all.d_initial = reserve_ends();
  backend_.run(all);
}

// What later parts add to the gradients of keys and values: those of outputs are there already.
void SharedMixing::finish(const MixingBackward& op) {
  if (!is_shared()) return;
  const std::size_t outputs = static_cast<std::size_t>(rows_ * heads_.heads * heads_.value_dim);
  backend_.fill_bytes(zeros_.reserve(bytes_of(outputs)), 0, bytes_of(outputs));
  LinearAttentionBackward rest = launch(op);
  rest.d_o.data = zeros_.data();
  rest.d_final = joined_states();
  backend_.run(rest);
}

float* SharedMixing::reserve_ends() {
  return reinterpret_cast<float*>(ends_.reserve(bytes_of(numbers(documents_.size()))));
}

void SharedMixing::exchange() {
  if (under_way_) throw std::logic_error("an exchange of states starts before the one before it has ended");
  auto* const all = reinterpret_cast<float*>(all_.reserve(bytes_of(numbers(part_count_))));
  if (!own_.empty()) backend_.copy(all + numbers(own_.front().state), ends_.data(), bytes_of(numbers(own_.size())));
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (std::size_t position = 0; position < parts_.size(); ++position) {
    if (std::cmp_equal(position, place_.position)) continue;
    const int rank = (*place_.members)[position];
    const std::vector<Part>& theirs = parts_[position];
    if (!own_.empty()) sends.push_back({rank, all + numbers(own_.front().state), bytes_of(numbers(own_.size()))});
    if (!theirs.empty()) {
      receives.push_back({rank, all + numbers(theirs.front().state), bytes_of(numbers(theirs.size()))});
    }
  }
  ticket_ = transport_.start(sends, receives);
  under_way_ = true;
}

void SharedMixing::wait() {
  if (!std::exchange(under_way_, false)) return;
  try {
    transport_.wait(ticket_);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("linear mixing {}, states of ranks {}: {}", is_backward_ ? "backward" : "forward",
                                  fmt::join(*place_.members, " "), error.what()));
  }
}

// Of a document the parts in the order in which states go on: S = exp(decay rows) S + that of the part.
const float* SharedMixing::joined_states() {
  auto* const joined = reinterpret_cast<float*>(starts_.reserve(bytes_of(numbers(documents_.size()))));
  backend_.fill_bytes(joined, 0, bytes_of(numbers(documents_.size())));
  std::map<std::size_t, std::vector<Part>> by_document;
  for (const std::vector<Part>& of_rank : parts_) {
    for (const Part& part : of_rank) by_document[part.document].push_back(part);
  }
  for (auto& [document, parts] : by_document) {
    std::sort(parts.begin(), parts.end(),
              [&](const Part& a, const Part& b) { return is_backward_ ? a.chunk > b.chunk : a.chunk < b.chunk; });
  }
  for (std::size_t i = 0; i < own_.size(); ++i) {
    for (const Part& part : by_document.at(own_[i].document)) {
      if (part.chunk == own_[i].chunk) break;
      add_state(joined + numbers(i), part);
    }
  }
  return joined;
}

void SharedMixing::add_state(float* sum, const Part& part) const {
  const float* const states = all_.floats() + numbers(part.state);
  for (std::size_t head = 0; head < heads(); ++head) {
    const float kept = std::exp(log_decays_[head] * static_cast<float>(part.rows));
    for (std::size_t i = head * state_size(); i < (head + 1) * state_size(); ++i) sum[i] = kept * sum[i] + states[i];
  }
}

}  // namespace hdpsim::kernels
