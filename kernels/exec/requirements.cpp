#include "kernels/exec/requirements.h"

#include <fmt/format.h>

#include <string>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::exec {

bool same_shape(const Transformer& a, const Transformer& b) {
  return a.layers == b.layers && a.hidden == b.hidden && a.heads == b.heads && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim && a.ffn_hidden == b.ffn_hidden && a.vocabulary == b.vocabulary &&
         a.tied_embeddings == b.tied_embeddings;
}

void require_executable(const Plan& plan, const Transformer& model, const TokenSource& tokens, std::int64_t ranks) {
  const auto refuse = [](const std::string& reason) { throw UnsupportedInput(reason); };
  if (plan.ranks != ranks) refuse(fmt::format("the plan is for {} ranks, but there are {}", plan.ranks, ranks));
  if (plan.layers != model.layers) {
    refuse(fmt::format("the plan is for a model of {} layers, '{}' has {}", plan.layers, model.name, model.layers));
  }
  if (tokens.vocabulary() > model.vocabulary) {
    refuse(fmt::format("the data have a vocabulary of {}, '{}' has one of {}", tokens.vocabulary(), model.name,
                       model.vocabulary));
  }
}

}  // namespace hdpsim::kernels::exec
