#include "sim/plan/impl/pool_fit.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "sim/base/division.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/plan/impl/ring_sizing.h"

namespace hdpsim {

const Value& PoolFit::where(std::string_view option) const {
  const Value* found = stated_.find(option);
  return found == nullptr ? stated_ : *found;
}

std::int64_t PoolFit::checked_degree(std::int64_t degree) {
  const Value& cp = where("cp");
  if (degree > context_.ranks) {
    error(cp, fmt::format("'cp' is {}, it must be auto or from 1 to {}", cp.text, context_.ranks), divisors_text());
  } else if (context_.ranks % degree != 0) {
    error(cp, fmt::format("'cp' is {}, which does not divide the pool of {} ranks", degree, context_.ranks),
          divisors_text());
  } else if (degree < least_ranks_for_context(context_.capacity)) {
    error(cp,
          fmt::format("'cp' is {}: {} ranks of {} tokens do not hold a context of {}", degree, degree,
                      count_text(context_.capacity), count_text(context_.context)),
          "use more ranks, or auto");
  }
  return degree;
}

std::int64_t PoolFit::least_degree_that_fits(std::string_view option, const OffloadRule& offload) {
  const std::int64_t most = RingSizing(context_, offload).most_tokens_per_rank();
  for (const std::int64_t held : {context_.capacity, most}) {
    for (const std::int64_t degree : divisors()) {
      if (degree >= least_ranks_for_context(held)) return degree;
    }
  }
  does_not_fit(where(option), most);
  return 1;
}

std::int64_t PoolFit::least_degree_with_room(std::int64_t contexts, std::string_view option) {
  const std::int64_t least = least_degree_that_fits(option);
  for (const std::int64_t degree : divisors()) {
    if (degree >= least && degree * context_.capacity >= contexts * context_.context) return degree;
  }
  return least;
}

std::int64_t PoolFit::degree_of(const std::optional<std::int64_t>& cp) {
  return cp ? checked_degree(*cp) : least_degree_that_fits("cp");
}

std::int64_t PoolFit::least_group(std::int64_t min_cp) {
  if (!std::has_single_bit(static_cast<std::uint64_t>(min_cp)) || min_cp > context_.ranks) {
    error(where("min_cp"),
          fmt::format("'min_cp' is {}, it must be a power of two up to the pool's {} ranks", min_cp, context_.ranks),
          "write 1, or a power of two");
  }
  return min_cp;
}

std::int64_t PoolFit::micro_batch_limit(std::int64_t cp, std::optional<std::int64_t> tokens_of_rank) {
  if (tokens_of_rank.value_or(0) > context_.capacity) {
    error(
        where("max_tokens"),
        fmt::format("'max_tokens' is {}, a rank holds {}", count_text(*tokens_of_rank), count_text(context_.capacity)),
        "use a larger capacity, or leave it out");
  }
  return tokens_of_rank.value_or(context_.capacity) * cp;
}

void PoolFit::require_room() {
  if (least_ranks_for_context(context_.capacity) > context_.ranks) does_not_fit(stated_, context_.capacity);
}

void PoolFit::require_chunks_in_order(const Value& where) {
  if (!context_.runs_chunks_in_order) {
    error(where, "the schedule of the pipeline does not run chunks of a sequence in order",
          "choose schedule: 1f1b, or one stage");
  }
  if (context_.expert_ranks > 1) {
    error(where,
          fmt::format("chunks of a sequence run in order on each rank alone, and expert groups have {} ranks",
                      context_.expert_ranks),
          "choose ep so that the devices of one rank have all experts");
  }
}

void PoolFit::require_servers(const Value& where) {
  if (context_.not_served.empty()) return;
  error(where, fmt::format("ranks cannot attend for each other: {}", context_.not_served),
        "choose another plan for this model and mesh");
}

std::int64_t PoolFit::least_ranks_for_context(std::int64_t tokens_per_rank) const {
  return divided(context_.context, tokens_per_rank);
}

std::vector<std::int64_t> PoolFit::divisors() const {
  std::vector<std::int64_t> found;
  for (std::int64_t divisor = 1; divisor <= context_.ranks; ++divisor) {
    if (context_.ranks % divisor == 0) found.push_back(divisor);
  }
  return found;
}

std::string PoolFit::divisors_text() const {
  return fmt::format("it can be {}", joined(divisors(), ", "));
}

OffloadRule PoolFit::fitting(const OffloadRule& stated) {
  const OffloadRule rule = allowed(stated);
  const std::int64_t most = RingSizing(context_, rule).most_tokens_per_rank();
  if (least_ranks_for_context(most) > context_.ranks) does_not_fit(where("offload"), most);
  return rule;
}

OffloadRule PoolFit::allowed(const OffloadRule& stated) {
  using Mode = OffloadRule::Mode;
  const bool has_host = context_.host_tokens.value_or(0) > 0 && context_.work.offload_per_token > 0;
  if (stated.mode == Mode::none || (stated.mode == Mode::automatic && !has_host)) return {};
  const Value& value = where("offload");
  if (!has_host) {
    error(value, fmt::format("'offload' is {}, but the cluster has no host memory to copy to", value.text),
          "give the nodes host memory, or write none");
  }
  if (stated.mode == Mode::token_wise && !context_.work.again_per_token) {
    error(value, "'offload' is token-wise, but layers with experts are not computed again token by token",
          "write auto, or a ratio such as 0.5");
    return {};
  }
  if (stated.mode == Mode::fixed) require_movable_layers(value);
  return has_host ? stated : OffloadRule{};
}

// `auto` and token-wise offload nothing where nothing can leave.
void PoolFit::require_movable_layers(const Value& value) {
  if (context_.layers > resident_layers) return;
  error(value,
        fmt::format("'offload' is {}, but the activations of {} layers stay on the device, and a pass has {}",
                    value.text, resident_layers, context_.layers),
        "write none, or give a stage more layers");
}

void PoolFit::does_not_fit(const Value& where, std::int64_t tokens_per_rank) {
  error(where,
        fmt::format("a context of {} does not fit: {} ranks of {} tokens hold {}", count_text(context_.context),
                    context_.ranks, count_text(tokens_per_rank), count_text(context_.ranks * tokens_per_rank)),
        "use more ranks, a larger capacity or a shorter context");
}

void PoolFit::error(const Value& where, std::string message, std::string help) {
  diagnostics_.error(where.position, std::move(message), std::move(help));
}

}  // namespace hdpsim
