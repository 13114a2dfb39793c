#include "sim/profiler/operator_class.h"

#include <algorithm>
#include <array>

namespace hdpsim {
namespace {

constexpr auto transfers_names = std::to_array<std::string_view>({"gloo:", "nccl:", "mpi:", "ucc:"});
constexpr auto messages_names =
    std::to_array<std::string_view>({"c10d::", "c10d_functional::", "_c10d_functional::", "record_param_comms"});
constexpr auto frames_names = std::to_array<std::string_view>({"autograd::", "torch::autograd::"});
constexpr auto attention_names = std::to_array<std::string_view>(
    {"scaled_dot_product", "flash_attention", "flash_attn", "efficient_attention", "flex_attention"});
constexpr auto products_names = std::to_array<std::string_view>(
    {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::matmul", "aten::linear",
     "aten::mv", "aten::addmv", "aten::dot", "aten::_scaled_mm", "aten::_grouped_mm", "aten::_addmm_activation",
     "mkldnn::_linear_pointwise"});

template <class Names>
bool begins_with_any(std::string_view name, const Names& names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view begin) { return name.starts_with(begin); });
}

template <class Names>
bool holds_any(std::string_view name, const Names& names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view part) { return name.find(part) != name.npos; });
}

}  // namespace

OperatorClass operator_class(std::string_view name) {
  if (begins_with_any(name, transfers_names)) return OperatorClass::transfer;
  if (begins_with_any(name, messages_names)) return OperatorClass::message;
  if (begins_with_any(name, frames_names) || name.find("::") == std::string_view::npos) return OperatorClass::frame;
  if (holds_any(name, attention_names))
    return name.find("backward") == name.npos ? OperatorClass::attention_forward : OperatorClass::attention_backward;
  // In place (aten::addmm_) as well.
  const std::string_view plain = name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
  return std::find(products_names.begin(), products_names.end(), plain) != products_names.end()
             ? OperatorClass::product
             : OperatorClass::memory_bound;
}

}  // namespace hdpsim
