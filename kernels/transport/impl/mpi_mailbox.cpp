#include "kernels/transport/mailbox.h"

#include "kernels/spec/error.h"

#ifdef HDPSIM_MPI

#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/transport/impl/mpi_call.h"

namespace hdpsim::kernels {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// Below the size that every transport of MPI sends without asking the receiver first: 4 KiB in Open MPI's shared
// memory.
constexpr std::size_t piece_bytes = 2048;
constexpr std::size_t most_under_way = 64;  // pieces to one rank; further ones wait here
constexpr int most_in_a_round = 256;        // pieces received before others are sent
constexpr auto idle = 500us;                // time between checks while nothing arrives
constexpr auto farewell = 1s;               // for the last pieces to leave
constexpr auto end_of_job = 10s;            // for rank 0 to end it

// The kind of a piece, as its tag. Pieces of one rank arrive in the order in which they left.
enum Tag {
  more = 1,  // a piece of a text
  last,      // the last piece of a text
  beat,      // the sender lives
  bye,       // to rank 0: the sender wants to leave
  closed,    // from rank 0, which wants to leave
  end_mpi,   // from rank 0: all are alive, MPI may end
  abandon    // from rank 0: leave MPI as it is
};

struct Piece {
  Tag tag = beat;
  std::string data;
};

// Runs at the exit of rank 0, which has finished while another rank hangs or has died: the job gets its exit
// code, and no rank waits for the other.
void end_job(int status, void* /*unused*/) {
  MPI_Abort(MPI_COMM_WORLD, status);
}

// Runs at the exit of the others. A rank that simply exits makes mpirun end the job in failure, before rank 0 can end
// it.
void await_end(int status, void* /*unused*/) {
  if (status == 0) std::this_thread::sleep_for(end_of_job);
}

/// What this rank knows of another one.
struct Peer {
  std::deque<Piece> outgoing;
  std::deque<std::pair<MPI_Request, Piece>> under_way;
  Clock::time_point sent;
  Clock::time_point heard;
  std::string partial;  // the text that is arriving
  bool has_left = false;
};

class MpiMailbox final : public Mailbox {
 public:
  explicit MpiMailbox(std::chrono::milliseconds patience)
      : patience_(patience), interval_(std::min<Clock::duration>(1s, patience / 8)) {
    start_mpi();
    check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
    check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
    peers_.resize(static_cast<std::size_t>(size_));
    looked_ = Clock::now();
    for (Peer& peer : peers_) peer.sent = peer.heard = looked_;
    postman_ = std::thread([this] { carry(); });
  }

  ~MpiMailbox() override {
    leaving_ = true;
    postman_.join();
    if (may_end_mpi_) {
      MPI_Comm_free(&communicator_);
      MPI_Finalize();
    } else if (verdict_ == abandon) {
      (void)on_exit(rank_ == 0 ? end_job : await_end, nullptr);
    }
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void post(int to, std::string text) override {
    const std::lock_guard lock(mutex_);
    std::deque<Piece>& outgoing = peer(to).outgoing;
    std::size_t begin = 0;
    for (; text.size() - begin > piece_bytes; begin += piece_bytes) {
      outgoing.push_back({more, text.substr(begin, piece_bytes)});
    }
    outgoing.push_back({last, text.substr(begin)});
    posted_.notify_one();
  }

  [[nodiscard]] std::optional<Mail> take(std::chrono::milliseconds wait) override {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, wait, [this] { return !inbox_.empty() || closed_ || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    if (inbox_.empty()) return std::nullopt;
    Mail mail = std::move(inbox_.front());
    inbox_.pop_front();
    return mail;
  }

  [[nodiscard]] bool is_silent(int rank) const override {
    const std::lock_guard lock(mutex_);
    return silent(peers_.at(static_cast<std::size_t>(rank)));
  }

  [[nodiscard]] bool is_closed() const override {
    const std::lock_guard lock(mutex_);
    return closed_ && inbox_.empty();
  }

 private:
  [[nodiscard]] Peer& peer(int rank) { return peers_.at(static_cast<std::size_t>(rank)); }
  // Measured at the last check of MPI: while this process itself is stopped, it hears nothing.
  [[nodiscard]] bool silent(const Peer& peer) const { return peer.has_left || looked_ - peer.heard > patience_; }
  template <class Do>
  void for_each_peer(const Do& work) {
    const int end = rank_ == 0 ? size_ : std::min(size_, 1);
    for (int other = rank_ == 0 ? 1 : 0; other < end; ++other) work(other, peer(other));
  }

  void carry();
  bool send_some();
  bool receive_some();
  void receive(const MPI_Status& status);
  void take_in(int from, Tag tag, std::string&& data);
  bool may_leave();
  bool may_leave_first();

  const Clock::duration patience_;
  const Clock::duration interval_;  // between beats
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::atomic<bool> leaving_ = false;
  bool may_end_mpi_ = false;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable arrived_;
  std::condition_variable posted_;
  std::vector<Peer> peers_;
  std::deque<Mail> inbox_;
  Clock::time_point looked_;
  bool closed_ = false;
  bool has_said_bye_ = false;
  std::optional<Tag> verdict_;  // end_mpi or abandon
  Clock::time_point judged_;
  std::exception_ptr failure_;
  std::thread postman_;
};

// The only thread that calls MPI between the constructor and the destructor. It leaves the processor to computing
// threads: it checks for messages twice a millisecond, and at once when there is something to send.
void MpiMailbox::carry() {
  std::unique_lock lock(mutex_);
  try {
    while (!leaving_ || !may_leave()) {
      bool moved = receive_some();
      looked_ = Clock::now();
      moved = send_some() || moved;
      posted_.wait_for(lock, moved ? 0us : idle);
    }
  } catch (...) {
    failure_ = std::current_exception();
    arrived_.notify_all();
  }
}

// True if anything has moved. Messages that a dead rank does not receive stay under way, and later ones for it stay
// here.
bool MpiMailbox::send_some() {
  bool moved = false;
  for_each_peer([&](int rank, Peer& peer) {
    for (int done = 1; !peer.under_way.empty();) {
      check_mpi(MPI_Test(&peer.under_way.front().first, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done == 0) break;
      peer.under_way.pop_front();
      moved = true;
    }
    const bool is_quiet = peer.under_way.empty() && peer.outgoing.empty();
    if (is_quiet && looked_ - peer.sent >= interval_) peer.outgoing.push_back({beat, {}});
    while (!peer.outgoing.empty() && peer.under_way.size() < most_under_way) {
      auto& [request, piece] = peer.under_way.emplace_back(MPI_REQUEST_NULL, std::move(peer.outgoing.front()));
      peer.outgoing.pop_front();
      check_mpi(MPI_Isend(piece.data.data(), static_cast<int>(piece.data.size()), MPI_BYTE, rank, piece.tag,
                          communicator_, &request),
                "MPI_Isend");
      peer.sent = looked_;
      moved = moved || piece.tag != beat;
    }
  });
  return moved;
}

bool MpiMailbox::receive_some() {
  for (int count = 0; count < most_in_a_round; ++count) {
    int is_there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &is_there, &status), "MPI_Iprobe");
    if (is_there == 0) return count > 0;
    receive(status);
  }
  return true;
}

void MpiMailbox::receive(const MPI_Status& status) {
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  std::string data(static_cast<std::size_t>(bytes), '\0');
  check_mpi(MPI_Recv(data.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, communicator_, MPI_STATUS_IGNORE),
            "MPI_Recv");
  take_in(status.MPI_SOURCE, static_cast<Tag>(status.MPI_TAG), std::move(data));
}

void MpiMailbox::take_in(int from, Tag tag, std::string&& data) {
  Peer& sender = peer(from);
  sender.heard = Clock::now();
  switch (tag) {
    case more:
      sender.partial += data;
      return;
    case last:
      inbox_.push_back({from, std::exchange(sender.partial, {}) + data});
      break;
    case beat:
      return;
    case bye:
      sender.has_left = true;
      return;
    case closed:
      closed_ = true;
      break;
    case end_mpi:
    case abandon:
      verdict_ = tag;
      break;
  }
  arrived_.notify_all();
}

// Called repeatedly once this rank wants to leave.
bool MpiMailbox::may_leave() {
  if (rank_ == 0) return may_leave_first();
  if (!std::exchange(has_said_bye_, true)) peer(0).outgoing.push_back({bye, {}});
  may_end_mpi_ = verdict_ == end_mpi;
  return verdict_.has_value() || silent(peer(0));
}

// On rank 0: notifies all ranks, which then have left or are silent; then reports to all whether MPI may end.
bool MpiMailbox::may_leave_first() {
  if (!std::exchange(closed_, true)) {
    for_each_peer([](int, Peer& peer) { peer.outgoing.push_back({closed, {}}); });
  }
  bool all_are_here = true;
  bool all_are_settled = true;
  bool all_is_sent = true;
  for_each_peer([&](int, Peer& peer) {
    all_are_here = all_are_here && peer.has_left;
    all_are_settled = all_are_settled && silent(peer);
    all_is_sent = all_is_sent && peer.outgoing.empty() && peer.under_way.empty();
  });
  if (!all_are_settled) return false;
  if (!verdict_) {
    verdict_ = all_are_here ? end_mpi : abandon;
    judged_ = looked_;
    for_each_peer([&](int, Peer& peer) { peer.outgoing.push_back({*verdict_, {}}); });
    return false;
  }
  may_end_mpi_ = verdict_ == end_mpi;
  return all_is_sent || looked_ - judged_ > farewell;
}

}  // namespace

std::unique_ptr<Mailbox> make_mpi_mailbox(std::chrono::milliseconds patience) {
  return std::make_unique<MpiMailbox>(patience);
}

}  // namespace hdpsim::kernels

#else

namespace hdpsim::kernels {

std::unique_ptr<Mailbox> make_mpi_mailbox(std::chrono::milliseconds /*patience*/) {
  throw DeviceError("this program was built without MPI: install libopenmpi-dev and build again");
}

}  // namespace hdpsim::kernels

#endif
