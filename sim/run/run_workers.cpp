#include "sim/run/run_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/run/impl/study_letters.h"
#include "sim/run/joined_threads.h"

namespace hdpsim {
namespace {

using Kind = StudyLetter::Kind;

/// The world of the point at which a thread works; made anew when the point needs another one than the point before.
class ThreadWorld {
 public:
  World& at(const StudyPoint& point) {
    if (world_ == nullptr || number_ != point.world) {
      world_.reset();
      world_ = point.make_world();
      number_ = point.world;
    }
    return *world_;
  }

 private:
  std::unique_ptr<World> world_;
  std::size_t number_ = 0;
};

class ThreadWorkers final : public RunWorkers {
 public:
  ThreadWorkers(const Study& study, const ThreadOptions& options) : study_(study), options_(options) {}

  void work(RunQueue& queue) override {
    JoinedThreads others;
    for (std::size_t i = 1; i < options_.jobs; ++i) others.begin([&] { work_alone(queue); });
    work_alone(queue);
  }

 private:
  void work_alone(RunQueue& queue) const {
    try {
      ThreadWorld world;
      while (const std::optional<StepTask> task = queue.next_step()) simulate(*task, world, queue);
    } catch (...) {
      queue.fail(std::current_exception());
    }
  }

  void simulate(const StepTask& task, ThreadWorld& thread_world, RunQueue& queue) const {
    World& world = thread_world.at(study_.points[task.run / study_.plans.size()]);
    const NetworkModel& network = *world.machine().network;
    if (options_.known != nullptr) {
      if (const auto known = options_.known->find(task.run, task.step)) {
        return queue.add(task, known->step, known->coverage, network);
      }
    }
    try {
      KnownStep made = simulated(task, world);
      if (options_.known != nullptr) options_.known->keep(task.run, made);
      queue.add(task, std::move(made.step), made.coverage, network);
    } catch (const PlanRefused& refused) {
      queue.refuse(task, refused.refusal());
    }
  }

  [[nodiscard]] KnownStep simulated(const StepTask& task, World& world) const {
    const std::size_t plans = study_.plans.size();
    StepRequest wanted{.memory_ranks = study_.output.memory_ranks};
    if (options_.watcher != nullptr) {
      wanted.see = [&](const Program& program, const Timeline& timeline) {
        options_.watcher->see(task, program, timeline, world.machine());
      };
    }
    SimulatedStep step = simulate_step(study_.points[task.run / plans], task.run % plans, task.step, world, wanted);
    return {std::move(step), world.take_coverage()};
  }

  const Study& study_;
  const ThreadOptions options_;
};

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

class Server {
 public:
  Server(ProcessMail& mail, const Study& study, int number, const std::function<bool()>& stop)
      : mail_(mail), number_(number), stop_(stop), queue_(study, stop, [this](std::int64_t, FinishedRun* finished) {
          if (finished != nullptr) answer(Kind::done, std::move(*finished));
        }) {}

  Served serve(RunWorkers& threads) {
    JoinedThreads beside;
    beside.begin([&] { threads.work(queue_); });
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

std::unique_ptr<RunWorkers> make_thread_workers(const Study& study, const ThreadOptions& options) {
  return std::make_unique<ThreadWorkers>(study, options);
}

std::unique_ptr<RunWorkers> make_process_workers(ProcessMail& mail, const Study& study, std::string_view version,
                                                 int number) {
  return std::make_unique<ProcessWorkers>(mail, study, version, number);
}

Served serve_study(ProcessMail& mail, const Study& study, std::string_view version, std::size_t jobs,
                   const std::function<bool()>& stop, int number) {
  mail.post(
      0,
      to_text({.kind = Kind::hello, .study = number, .fingerprint = study_fingerprint(study, version), .jobs = jobs}));
  return Server(mail, study, number, stop).serve(*make_thread_workers(study, {.jobs = jobs}));
}

}  // namespace hdpsim
