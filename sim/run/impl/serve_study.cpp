#include <fmt/format.h>

#include <set>
#include <thread>
#include <utility>

#include "sim/base/check.h"
#include "sim/run/impl/study_letters.h"
#include "sim/run/run_workers.h"

namespace hdpsim {
namespace {

using Kind = StudyLetter::Kind;

class Server {
 public:
  Server(ProcessMail& mail, const Study& study, int number, const std::function<bool()>& stop)
      : mail_(mail), number_(number), stop_(stop), queue_(study, stop, [this](std::int64_t, FinishedRun* finished) {
          if (finished != nullptr) answer(Kind::done, std::move(*finished));
        }) {}

  Served serve(RunWorkers& threads) {
    const std::jthread beside([&] { threads.work(queue_); });
    const Ended ended{queue_};
    while (true) {
      if (stop_()) return Served::stopped;
      if (mail_.is_closed()) return Served::left_alone;
      if (mail_.is_silent(0)) throw MachineError("process 0 is lost; what it has kept, --resume goes on with");
      const std::optional<Letter> letter = mail_.take(look_around);
      if (letter && is_last(*letter)) return Served::finished;
      if (queue_.is_over()) give_up();
    }
  }

 private:
  // Makes the threads end before they are joined, whatever happens.
  struct Ended {
    RunQueue& queue;
    ~Ended() { queue.end(); }
  };

  bool is_last(const Letter& letter) {
    const std::optional<StudyLetter> text = study_letter(letter.text);
    if (!text) throw MachineError("process 0 has sent a damaged letter");
    if (text->study != number_) return false;
    if (text->kind == Kind::run) queue_.put(text->run.run);
    return text->kind == Kind::over;
  }

  // A run has thrown here. Process 0 simulates the remaining ones itself: it meets the same error, or has more memory.
  void give_up() {
    for (const std::size_t run : queue_.unfinished()) {
      if (given_up_.insert(run).second) answer(Kind::failed, {.run = run});
    }
  }

  void answer(Kind kind, FinishedRun run) {
    mail_.post(0, to_text({.kind = kind, .study = number_, .run = std::move(run)}));
  }

  ProcessMail& mail_;
  const int number_;
  const std::function<bool()>& stop_;
  RunQueue queue_;
  std::set<std::size_t> given_up_;
};

}  // namespace

Served serve_study(ProcessMail& mail, const Study& study, std::string_view version, std::size_t jobs,
                   const std::function<bool()>& stop, int number) {
  mail.post(
      0,
      to_text({.kind = Kind::hello, .study = number, .fingerprint = study_fingerprint(study, version), .jobs = jobs}));
  return Server(mail, study, number, stop).serve(*make_thread_workers(study, jobs));
}

}  // namespace hdpsim
