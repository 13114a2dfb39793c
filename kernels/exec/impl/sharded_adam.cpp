#include "kernels/exec/impl/sharded_adam.h"

#include <algorithm>
#include <span>

#include "kernels/exec/impl/float_bytes.h"

namespace hdpsim::kernels::exec {

ShardedAdam::ShardedAdam(Backend& backend, Transport& transport, const ParameterLayout& layout,
                         const TrainingOptions& options)
    : backend_(backend),
      transport_(transport),
      options_(options.adam),
      layout_(layout),
      share_(share_of(layout, transport)) {
  gradient_ = backend.allocate(float_bytes(share_));
  master_ = backend.allocate(float_bytes(share_));
  first_moment_ = backend.allocate(float_bytes(share_));
  second_moment_ = backend.allocate(float_bytes(share_));
  std::vector<float> start(static_cast<std::size_t>(share_));
  layout.initial_values(options.seed, share_ * transport.rank(), start);
  backend.upload(master_.get(), start.data(), float_bytes(share_));
  backend.fill_bytes(first_moment_.get(), 0, float_bytes(share_));
  backend.fill_bytes(second_moment_.get(), 0, float_bytes(share_));
}

void ShardedAdam::reduce(const float* gradients) {
  transport_.reduce_scatter(gradients, static_cast<float*>(gradient_.get()), static_cast<std::size_t>(share_));
}

void ShardedAdam::update(void* parameters) {
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

void ShardedAdam::load(CheckpointReader& reader, void* parameters) {
  std::vector<float> share(static_cast<std::size_t>(share_));
  const std::array<float*, 3> tensors = state();
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const std::int64_t begin = share_ * transport_.rank();
    std::fill(share.begin(), share.end(), 0.0F);
    for (const ParameterLayout::Stretch& stretch : layout_.stretches(begin, share_)) {
      const auto place = static_cast<std::size_t>(stretch.begin - begin);
      reader.read(tensor, stretch.in_whole, std::span(share).subspan(place, static_cast<std::size_t>(stretch.count)));
    }
    backend_.upload(tensors[tensor], share.data(), float_bytes(share_));
  }
  updates_ = reader.title().updates;
  backend_.run(Cast{.count = share_, .from = master_.get(), .to = own_share(parameters)});
  gather(parameters);
}

void ShardedAdam::gather(void* parameters) {
  transport_.all_gather(own_share(parameters), parameters, share_bytes());
}

}  // namespace hdpsim::kernels::exec
