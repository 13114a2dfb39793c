#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/profiler/kernel_class.h"
#include "sim/profiler/operation_shape.h"
#include "sim/profiler/profiler_readers.h"
#include "sim/profiler/recording.h"

namespace hdpsim {

/// The unit of a trace's times, in seconds.
inline constexpr double us = 1e-6;

/// InputError at an event if a trace has so many of its kind already that no memory is left for it.
void require_room(std::size_t count, const ProfilerEvent& event);

/// A collective or message, as a trace names it.
struct NamedMessage {
  std::optional<MessageKind> kind;
  std::int64_t ranks = 0;  ///< 0: unknown.
  std::int64_t bytes = 0;  ///< As TracedMessage counts them; 0: unknown.
  std::string group;       ///< Name and ranks of the process group.
  std::string group_ranks;
  friend auto operator<=>(const NamedMessage&, const NamedMessage&) = default;
};

/// One kernel, copy or fill of a device. Times are in microseconds of the trace.
struct RankKernel {
  double begin = 0;
  double end = 0;
  std::int64_t external_id = -1;
  std::int64_t correlation = -1;
  std::int32_t stream = 0;
  std::uint32_t name = 0;     ///< In RankTrace::names.
  std::uint32_t message = 0;  ///< In RankTrace::messages, of collectives.
  std::int64_t bytes = 0;     ///< Of copies.
};

/// The name of a kernel and what it says.
struct RankName {
  std::string text;
  KernelKind kind;
};

/// A call of the host that launches kernels, or waits.
struct RankCall {
  double begin = 0;
  double end = 0;
  std::int64_t thread = 0;
  std::int64_t correlation = -1;
  enum class Kind : std::uint8_t { launch, graph, wait } kind = Kind::launch;
};

/// What counts of one trace, event by event.
class RankTrace {
 public:
  void add(ProfilerEvent& event);

  std::vector<RankKernel> kernels;
  std::vector<RankName> names;
  std::vector<NamedMessage> messages = {{}};                      ///< The first: nothing is known.
  std::vector<OperationShape> shapes = {{}};                      ///< Different ones; the first: none.
  std::unordered_map<std::int64_t, std::uint32_t> shape_of_id;    ///< By external id.
  std::unordered_map<std::int64_t, std::uint32_t> message_of_id;  ///< The same of operations that communicate.
  std::vector<RankCall> calls;
  std::vector<double> steps_s;
  std::int64_t inputs = 0;

 private:
  void add_kernel(ProfilerEvent& event);
  void add_operation(ProfilerEvent& event);
  void add_call(const ProfilerEvent& event);
  [[nodiscard]] std::uint32_t name_of(ProfilerEvent& event, KernelKind kind);
  void keep_text(std::size_t bytes, const ProfilerEvent& event);
  [[nodiscard]] std::uint32_t message_of(const ProfilerEvent& event);

  std::size_t text_bytes_ = 0;
  std::int64_t device_ = -1;
  std::unordered_map<std::string, std::uint32_t> name_index_;
  std::map<NamedMessage, std::uint32_t> message_index_;
  std::map<OperationShape, std::uint32_t> shape_index_;
};

/// The times of the messages of one kind in one process group: one list for each trace that has them, in the order of
/// the trace.
using MessagesOfGroups = std::map<std::pair<TracedMessage, std::string>, std::vector<std::vector<float>>>;

/// Adds what one trace says to the recording; its messages also to `groups`. Sorts the kernels and calls of the trace.
void analyse(RankTrace& trace, const std::string& file, std::int64_t gpus_per_node, Recording& recording,
             MessagesOfGroups& groups);

/// Whether messages among these ranks ("[0, 1, 2, 3]", "[0, 1, ..., 31]") stay within a node. Empty: unknown.
[[nodiscard]] std::optional<LinkKind> link_among(const std::string& group_ranks, std::int64_t ranks,
                                                 std::int64_t gpus_per_node);

}  // namespace hdpsim
