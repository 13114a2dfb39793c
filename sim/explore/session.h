#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/journal.h"
#include "sim/explore/http_server.h"
#include "sim/explore/session_lines.h"
#include "sim/run/known_steps.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Work of which only one piece is done at a time. Those who wait leave when nobody wants their work any more: of many
/// questions that a moving slider asks while a long step is simulated, the last one alone is answered.
class OneAtATime {
 public:
  /// A turn, which ends with the object. Waits for it; false if it was given up.
  class Turn {
   public:
    Turn(OneAtATime& work, const std::function<bool()>& give_up) : work_(work), has_(work.begin(give_up)) {}
    ~Turn() {
      if (has_) work_.end();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return has_; }

   private:
    OneAtATime& work_;
    const bool has_;
  };

 private:
  bool begin(const std::function<bool()>& give_up) {
    std::unique_lock lock(mutex_);
    while (taken_ && !give_up()) changed_.wait_for(lock, std::chrono::milliseconds(10));
    if (taken_ || give_up()) return false;
    return taken_ = true;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    taken_ = false;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool taken_ = false;
};

/// What a session is about, and where it keeps what it needs.
struct ExploreOptions {
  std::string study;                ///< The path of the study that settings change; its sweep is ignored.
  std::filesystem::path data{};     ///< The folder of shipped files, as of Catalog.
  std::filesystem::path scratch{};  ///< A folder of its own, for files that were dropped and for finished runs.
  std::string version{};
  std::size_t jobs = 1;  ///< Threads.
};

/// Answers the questions of pages about one study with the results of run_study(), which are those of `hdpsim study`.
/// Every function may be called from any thread.
class ExploreSession final : public HttpService {
 public:
  /// Reads the study. InputError with every problem.
  explicit ExploreSession(ExploreOptions options);

  [[nodiscard]] std::string page(std::string_view nonce) override;
  [[nodiscard]] std::string take_lengths(const std::string& name, const std::string& bytes) override;
  /// Lines of JSON, in this order:
  ///   {"kind": "problems", ...}    what is wrong with the settings; nothing follows
  ///   {"kind": "study", ...}       the study as YAML; nothing follows
  ///   {"kind": "answer", ...}      what `hdpsim study --format json` prints of the first step alone, then of an
  ///                                eighth of many steps, at most 64 ...
  ///   {"kind": "progress", ...}    ... how far the work is ...
  ///   {"kind": "answer", ...}      ... and of all steps; first without the best static mesh if that is searched for
  ///   {"kind": "report", ...}      the report page
  ///   {"kind": "failed", ...}      the machine has refused, or the program has a bug; nothing follows
  /// Simulates no further step once the stream is closed.
  void answer(const std::string& question, AnswerStream& stream) override;

 private:
  [[nodiscard]] Study read(const std::vector<std::string>& settings);
  void answer(const Question& question, AnswerStream& stream);
  /// The study of a question, once its first lines are sent. Empty if nobody reads them.
  [[nodiscard]] std::optional<Study> begun(const Question& question, KnownSteps& known, AnswerStream& stream);
  /// Sends the answer of the first part of many steps. False if nobody reads it.
  [[nodiscard]] bool send_part(Study& study, KnownSteps& known, AnswerStream& stream) const;
  /// Adds to `notes` what the command prints in addition to its figures. Empty if nobody reads the answer.
  [[nodiscard]] std::optional<std::vector<Run>> all_steps(const Study& study, const Question& question,
                                                          KnownSteps& known, std::vector<std::string>& notes,
                                                          AnswerStream& stream);
  /// False if nobody reads the answer.
  [[nodiscard]] bool compare_with_tuned(const Study& study, const Question& question, AnswerStream& stream,
                                        std::vector<Run>& runs);
  [[nodiscard]] Value changed(const std::vector<std::string>& settings) const;

  const ExploreOptions options_;
  const std::string text_;  ///< Of the study, as it was when the session began.
  Journal journal_;         ///< Of runs and baselines, for the same question again.
  OneAtATime first_steps_;  ///< Of questions that are read, with the first step ...
  OneAtATime all_steps_;    ///< ... and of those of which all steps are simulated.
  std::mutex mutex_;        ///< Guards the members below.
  Catalog catalog_;
  std::size_t files_ = 0;  ///< That were dropped.
};

}  // namespace hdpsim
