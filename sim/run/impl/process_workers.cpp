#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/run/impl/study_letters.h"
#include "sim/run/run_workers.h"

namespace hdpsim {
namespace {

using Kind = StudyLetter::Kind;

/// What process 0 knows of another process.
struct Member {
  bool is_known = false;           // it has said hello
  std::size_t jobs = 0;            // runs at a time; 0 until then, and after one that failed
  std::vector<std::size_t> hands;  // runs that it is to simulate
};

class ProcessWorkers final : public RunWorkers {
 public:
  ProcessWorkers(ProcessMail& mail, const Study& study, std::string_view version, int number)
      : mail_(mail),
        number_(number),
        fingerprint_(study_fingerprint(study, version)),
        members_(static_cast<std::size_t>(mail.size())) {}

  void work(RunQueue& queue) override {
    try {
      while (!queue.is_over() || (queue.is_complete() && awaits_hello())) {
        hand_out(queue);
        if (const std::optional<Letter> letter = mail_.take(look_around)) read(*letter, queue);
        give_up_the_silent(queue);
      }
    } catch (...) {
      queue.fail(std::current_exception());
    }
    for (int process = 1; process < mail_.size(); ++process) {
      mail_.post(process, to_text({.kind = Kind::over, .study = number_}));
    }
  }

 private:
  [[nodiscard]] Member& member(int process) { return members_.at(static_cast<std::size_t>(process)); }

  // One run per thread and, as long as there are plenty, one more, so that no thread waits for the mail.
  void hand_out(RunQueue& queue) {
    std::size_t threads = 0;
    for (const Member& one : members_) threads += one.jobs;
    const std::size_t more = queue.waiting() > 4 * threads ? 1 : 0;
    for (int process = 1; process < mail_.size(); ++process) {
      Member& one = member(process);
      while (one.jobs > 0 && !mail_.is_silent(process) && one.hands.size() < one.jobs + more) {
        const std::optional<std::size_t> run = queue.next_run();
        if (!run) return;
        one.hands.push_back(*run);
        mail_.post(process, to_text({.kind = Kind::run, .study = number_, .run = {.run = *run}}));
      }
    }
  }

  void read(const Letter& letter, RunQueue& queue) {
    std::optional<StudyLetter> text = study_letter(letter.text);
    if (!text) throw MachineError(fmt::format("process {} has sent a damaged letter", letter.from));
    if (text->study != number_) return;  // a letter of a study that is over
    Member& one = member(letter.from);
    if (text->kind == Kind::hello) return greet(letter.from, *text);
    std::erase(one.hands, text->run.run);
    if (text->kind == Kind::done) queue.finish(std::move(text->run));
    if (text->kind == Kind::failed) {
      one.jobs = 0;
      queue.keep(text->run.run);
    }
  }

  void greet(int process, const StudyLetter& hello) {
    if (hello.fingerprint != fingerprint_) {
      throw InputError(fmt::format("process {} has read another study than process 0, or is another version", process),
                       "all processes of mpirun or srun share one study; several studies need a command each");
    }
    member(process).is_known = true;
    member(process).jobs = hello.jobs;
  }

  // A process that comes when all is done may still have read another study.
  [[nodiscard]] bool awaits_hello() {
    for (int process = 1; process < mail_.size(); ++process) {
      if (!member(process).is_known && !mail_.is_silent(process)) return true;
    }
    return false;
  }

  void give_up_the_silent(RunQueue& queue) {
    for (int process = 1; process < mail_.size(); ++process) {
      Member& one = member(process);
      if (one.hands.empty() || !mail_.is_silent(process)) continue;
      for (const std::size_t run : std::exchange(one.hands, {})) queue.give_back(run);
    }
  }

  ProcessMail& mail_;
  const int number_;
  const std::uint64_t fingerprint_;
  std::vector<Member> members_;  // by number; the first is this process
};

}  // namespace

std::unique_ptr<RunWorkers> make_process_workers(ProcessMail& mail, const Study& study, std::string_view version,
                                                 int number) {
  return std::make_unique<ProcessWorkers>(mail, study, version, number);
}

}  // namespace hdpsim
