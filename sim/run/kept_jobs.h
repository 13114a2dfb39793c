#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "sim/document/journal.h"
#include "sim/document/record.h"
#include "sim/run/ordered_work.h"

namespace hdpsim {

/// run_in_order() for jobs whose results a journal keeps as records (sim/document/record.h): those that are there are
/// not done again. `key(number)` identifies a job within the journal. `take(number, result, is_new)` gets all results
/// in ascending order; a new one is in the journal before.
template <class Key, class MakeWorker, class Take>
bool run_kept(const OrderedWork& work, Journal& journal, const Key& key, const MakeWorker& make_worker,
              const Take& take) {
  using Worker = std::invoke_result_t<MakeWorker>;
  using Result = std::invoke_result_t<Worker, std::int64_t>;
  struct Done {
    Result result;
    bool is_new;
  };
  const auto make = [&] {
    return [&, worker = std::optional<Worker>()](std::int64_t number) mutable -> Done {
      if (const auto text = journal.kept(key(number))) {
        if (auto result = record_of_text<Result>(*text)) return {std::move(*result), false};
      }
      if (!worker) worker.emplace(make_worker());
      return {(*worker)(number), true};
    };
  };
  return run_in_order(work, make, [&](std::int64_t number, Done&& done) {
    if (done.is_new) journal.add(key(number), record_text(done.result));
    take(number, std::move(done.result), done.is_new);
  });
}

}  // namespace hdpsim
