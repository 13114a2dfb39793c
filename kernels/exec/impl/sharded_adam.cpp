#include "kernels/exec/impl/sharded_adam.h"

#include <algorithm>
#include <span>

namespace hdpsim::kernels::exec {
namespace {

std::size_t bytes_of(std::int64_t floats) {
  return static_cast<std::size_t>(floats) * sizeof(float);
}

}  // namespace

ShardedAdam::ShardedAdam(Backend& backend, Transport& transport, const ParameterLayout& layout,
                         const TrainingOptions& options)
    : backend_(backend),
      transport_(transport),
      options_(options.adam),
      parameters_(layout.count()),
      share_((layout.count() + transport.size() - 1) / transport.size()) {
  gradient_ = backend.allocate(bytes_of(share_));
  master_ = backend.allocate(bytes_of(share_));
  first_moment_ = backend.allocate(bytes_of(share_));
  second_moment_ = backend.allocate(bytes_of(share_));
  std::vector<float> start(static_cast<std::size_t>(share_));
  layout.initial_values(options.seed, share_ * transport.rank(), start);
  backend.upload(master_.get(), start.data(), bytes_of(share_));
  backend.fill_bytes(first_moment_.get(), 0, bytes_of(share_));
  backend.fill_bytes(second_moment_.get(), 0, bytes_of(share_));
}

void ShardedAdam::reduce(const float* gradients) {
  transport_.reduce_scatter(gradients, static_cast<float*>(gradient_.get()), static_cast<std::size_t>(share_));
}

void ShardedAdam::update(float* parameters) {
  backend_.run(Adam{.count = share_,
                    .step = ++updates_,
                    .rate = options_.rate,
                    .beta1 = options_.beta1,
                    .beta2 = options_.beta2,
                    .epsilon = options_.epsilon,
                    .decay = options_.decay,
                    .master = static_cast<float*>(master_.get()),
                    .gradient = gradient(),
                    .m = static_cast<float*>(first_moment_.get()),
                    .v = static_cast<float*>(second_moment_.get()),
                    .parameter = own_share(parameters)});
}

std::array<float*, 3> ShardedAdam::state() const {
  return {static_cast<float*>(master_.get()), static_cast<float*>(first_moment_.get()),
          static_cast<float*>(second_moment_.get())};
}

void ShardedAdam::save(CheckpointWriter* writer) {
  std::vector<float> share(static_cast<std::size_t>(share_));
  for (const float* const tensor : state()) {
    backend_.download(share.data(), tensor, bytes_of(share_));
    send_or_write(share, writer);
  }
}

// Rank 0 writes its share, then in their order those that the others send, less what lies behind the last parameter.
void ShardedAdam::send_or_write(std::vector<float>& share, CheckpointWriter* writer) {
  if (transport_.rank() != 0) {
    const Send send{0, share.data(), bytes_of(share_)};
    return transport_.wait(transport_.start({&send, 1}, {}));
  }
  for (int rank = 0; rank < transport_.size(); ++rank) {
    const Receive receive{rank, share.data(), bytes_of(share_)};
    if (rank > 0) transport_.wait(transport_.start({}, {&receive, 1}));
    const std::int64_t there = std::clamp<std::int64_t>(parameters_ - rank * share_, 0, share_);
    writer->write(std::span(share).first(static_cast<std::size_t>(there)));
  }
}

void ShardedAdam::load(CheckpointReader& reader, float* parameters) {
  std::vector<float> share(static_cast<std::size_t>(share_));
  const std::array<float*, 3> tensors = state();
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    reader.read(tensor, share_ * transport_.rank(), share);
    backend_.upload(tensors[tensor], share.data(), bytes_of(share_));
  }
  updates_ = reader.title().updates;
  backend_.copy(own_share(parameters), master_.get(), bytes_of(share_));
  gather(parameters);
}

void ShardedAdam::gather(float* parameters) {
  transport_.all_gather(own_share(parameters), parameters, bytes_of(share_));
}

}  // namespace hdpsim::kernels::exec
