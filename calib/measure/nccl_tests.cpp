#include "calib/measure/nccl_tests.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>

#include "calib/measure/impl/nccl_tests_readers.h"
#include "sim/document/limits.h"

namespace hdpsim::calib {
namespace {

constexpr std::size_t largest_output = 16'000'000;  // bytes: some thousand runs

}  // namespace

std::optional<MessageKind> nccl_tests_kind(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, MessageKind>, 8> words = {
      {{"all_reduce", MessageKind::all_reduce},
       {"all_gather", MessageKind::all_gather},
       {"reduce_scatter", MessageKind::reduce_scatter},
       {"alltoall", MessageKind::all_to_all},
       {"all_to_all", MessageKind::all_to_all},
       {"sendrecv", MessageKind::send_recv},
       {"send_recv", MessageKind::send_recv},
       {"allreduce", MessageKind::all_reduce}}};
  const std::string stem = std::filesystem::path(name).stem().string();
  for (const auto& [word, kind] : words) {
    const bool begins = std::string_view(stem).starts_with(word);
    // alltoallv sends parts of different sizes, which is another collective.
    if (begins && !stem.starts_with("alltoallv")) return kind;
  }
  return std::nullopt;
}

bool check_nccl_tests_run(const NcclTestsRun& run, const Position& position, Diagnostics& diagnostics) {
  if (run.timings.empty()) {
    diagnostics.error(position, "this run has no row that can be used");
  } else if (run.ranks == 0) {
    diagnostics.error(position, "the output does not say how many ranks took part", "keep the lines '#  Rank  0 ...'");
  } else if (run.ranks == 1) {
    diagnostics.error(position, "a single rank copies within its own memory, which says nothing about a link");
  } else {
    return true;
  }
  return false;
}

void state_kind(NcclTestsRun& run, MessageKind kind) {
  run.kind = kind;
  for (MessageTiming& timing : run.timings) {
    timing.kind = kind;
    timing.link = run.link;
    timing.ranks = run.ranks;
  }
}

std::vector<NcclTestsRun> parse_nccl_tests(const std::string& file, const std::string& text, Diagnostics& diagnostics,
                                           const NcclTestsAsked& asked) {
  diagnostics.add_source(file, text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  const auto of_file = nccl_tests_kind(file);
  const RunUnsaid otherwise{of_file ? of_file : nccl_tests_kind(asked.collective), asked.ranks};
  return is_json ? read_nccl_tests_json(file, text, otherwise, diagnostics)
                 : read_nccl_tests_text(file, text, otherwise, diagnostics);
}

std::vector<NcclTestsRun> read_nccl_tests(const std::string& path, Diagnostics& diagnostics,
                                          const NcclTestsAsked& asked) {
  const std::optional<std::string> text = read_text_file(path, largest_output, diagnostics);
  return text ? parse_nccl_tests(path, *text, diagnostics, asked) : std::vector<NcclTestsRun>{};
}

}  // namespace hdpsim::calib
