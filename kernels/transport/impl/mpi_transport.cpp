#include "kernels/transport/mpi_transport.h"

#ifdef HDPSIM_MPI

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/transport/impl/describe.h"
#include "kernels/transport/impl/mpi_call.h"
#include "kernels/transport/message_transport.h"

namespace hdpsim::kernels {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int message_tag = 0;
constexpr int notice_tag = 1;
constexpr std::size_t notice_bytes = 512;  // short enough to leave at once, whatever the receiver does
constexpr auto farewell = 2s;              // for the others to report before the job is aborted
constexpr int abort_status = 3;            // the machine refused

// Yields the core to others, who may be the ranks that this one waits for; sleeps after the first thousand rounds.
class Pause {
 public:
  void rest() {
    if (++rounds_ < 1000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(50us);
    }
  }
  void restart() { rounds_ = 0; }

 private:
  int rounds_ = 0;
};

// Waits until all ranks are here or the time is up; `also` runs in between and ends the wait when it returns true.
template <class Also>
bool meet(MPI_Comm communicator, Clock::duration limit, const Also& also) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(communicator, &request) != MPI_SUCCESS) return false;
  const auto deadline = Clock::now() + limit;
  Pause pause;
  for (int met = 0; Clock::now() < deadline; pause.rest()) {
    if (MPI_Test(&request, &met, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (met != 0) return true;
    if (also()) return false;
  }
  return false;
}

// State that outlives a failed transport: the communicator, and the notice to the others.
MPI_Comm abandoned = MPI_COMM_NULL;
// True if rank 0, which reports the results, has finished and no rank has failed: a rank that hangs then has no
// work left.
bool may_succeed = false;
std::array<char, notice_bytes> notice{};
std::vector<MPI_Request> notice_requests;

// Runs at the exit of the process, which has printed its error by now, if there was one.
void abort_job(int status, void* /*unused*/) {
  meet(abandoned, farewell, [] { return false; });
  MPI_Abort(MPI_COMM_WORLD, status == 0 && !may_succeed ? abort_status : status);
}

struct Piece {
  Ticket ticket = 0;
  bool receives = false;
  int peer = 0;
  std::size_t message = 0;  // bytes of the whole message
  int bytes = 0;
};

class MpiTransport final : public MessageTransport {
 public:
  MpiTransport(std::chrono::milliseconds limit, std::size_t largest_piece);
  ~MpiTransport() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override;
  void wait(Ticket ticket) override;
  void progress() override;

 private:
  template <class Data, class Start>
  void start_pieces(const Piece& message, Data* data, const Start& start_piece);
  bool move();
  void finish(std::size_t index, const MPI_Status& status, bool status_has_error);
  void hear();
  void notify(const std::string& text);
  void cancel();
  void abandon();
  [[noreturn]] void fail(const std::string& reason);
  [[nodiscard]] std::string wait_text(const Piece& piece) const;

  const std::chrono::milliseconds limit_;
  const std::size_t largest_piece_;
  const int exceptions_at_start_ = std::uncaught_exceptions();
  bool owns_mpi_ = false;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;

  Ticket next_ticket_ = 1;
  std::map<Ticket, std::size_t> open_;  // pieces under way
  std::vector<MPI_Request> requests_;   // one per piece, as MPI_Testsome requires
  std::vector<Piece> pieces_;
  std::vector<int> finished_;
  std::vector<MPI_Status> statuses_;
  std::optional<std::string> fault_;           // found while moving, thrown by the next wait()
  std::optional<std::string> another_failed_;  // thrown by a wait() without progress
  bool failed_ = false;

  std::array<char, notice_bytes> heard_{};
  MPI_Request notice_ = MPI_REQUEST_NULL;
  bool has_told_ = false;
};

MpiTransport::MpiTransport(std::chrono::milliseconds limit, std::size_t largest_piece)
    : limit_(limit), largest_piece_(std::clamp<std::size_t>(largest_piece, 1, largest_mpi_piece)) {
  owns_mpi_ = start_mpi();
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_rank(communicator_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator_, &size_), "MPI_Comm_size");
  check_mpi(MPI_Irecv(heard_.data(), notice_bytes, MPI_CHAR, MPI_ANY_SOURCE, notice_tag, communicator_, &notice_),
            "MPI_Irecv");
}

MpiTransport::~MpiTransport() {
  const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
  if (failed_ || unwinding || !open_.empty()) {
    abandon();
    return;
  }
  // MPI_Finalize waits for the others for ever; this waits as long as wait() does.
  const auto another_failed = [this] {
    hear();
    return another_failed_.has_value();
  };
  if (!meet(communicator_, limit_, another_failed)) {
    may_succeed = rank_ == 0 && !another_failed_;
    abandon();
    return;
  }
  cancel();
  MPI_Comm_free(&communicator_);
  if (owns_mpi_) MPI_Finalize();
}

// Leaves MPI as it is, because the state of the others is not known. The job is aborted when this process exits.
void MpiTransport::abandon() {
  notify(fmt::format("rank {} has left after an error", rank_));
  cancel();
  if (abandoned != MPI_COMM_NULL) return;
  abandoned = communicator_;
  if (on_exit(abort_job, nullptr) != 0) MPI_Abort(MPI_COMM_WORLD, abort_status);
}

template <class Data, class Start>
void MpiTransport::start_pieces(const Piece& message, Data* data, const Start& start_piece) {
  std::size_t begin = 0;
  do {
    Piece piece = message;
    piece.bytes = static_cast<int>(std::min(largest_piece_, message.message - begin));
    pieces_.push_back(piece);
    ++open_[message.ticket];
    start_piece(data + begin, piece.bytes, &requests_.emplace_back(MPI_REQUEST_NULL));
    begin += static_cast<std::size_t>(piece.bytes);
  } while (begin < message.message);
}

Ticket MpiTransport::start(std::span<const Send> sends, std::span<const Receive> receives) {
  for (const Send& send : sends) require_message("to", send.peer, size_, send.data, send.bytes);
  for (const Receive& receive : receives) require_message("from", receive.peer, size_, receive.data, receive.bytes);
  if (failed_) throw DeviceError(fmt::format("rank {} has left after an error", rank_));
  const Ticket ticket = next_ticket_++;
  open_[ticket] = 0;
  // Receives first: a message whose receive is posted needs no buffer on the way.
  for (const Receive& receive : receives) {
    const Piece message{.ticket = ticket, .receives = true, .peer = receive.peer, .message = receive.bytes};
    start_pieces(message, static_cast<std::byte*>(receive.data), [&](void* data, int bytes, MPI_Request* request) {
      check_mpi(MPI_Irecv(data, bytes, MPI_BYTE, receive.peer, message_tag, communicator_, request), "MPI_Irecv");
    });
  }
  for (const Send& send : sends) {
    const Piece message{.ticket = ticket, .receives = false, .peer = send.peer, .message = send.bytes};
    start_pieces(
        message, static_cast<const std::byte*>(send.data), [&](const void* data, int bytes, MPI_Request* request) {
          check_mpi(MPI_Isend(data, bytes, MPI_BYTE, send.peer, message_tag, communicator_, request), "MPI_Isend");
        });
  }
  return ticket;
}

void MpiTransport::finish(std::size_t index, const MPI_Status& status, bool status_has_error) {
  const Piece& piece = pieces_[index];
  --open_.at(piece.ticket);
  if (fault_) return;
  if (status_has_error && status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(status.MPI_ERROR, text.data(), &length);
    fault_ = fmt::format("{}: {}", wait_text(piece), text.data());
  } else if (piece.receives) {
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes != piece.bytes) {
      fault_ = fmt::format("rank {} sends {} where rank {} expects {}", piece.peer,
                           bytes_text(static_cast<std::size_t>(bytes)), rank_,
                           bytes_text(static_cast<std::size_t>(piece.bytes)));
    }
  }
}

// Lets MPI work and processes finished requests; true if there were any.
bool MpiTransport::move() {
  hear();
  if (requests_.empty()) return false;
  finished_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check_mpi(code, "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return false;
  const auto ended = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < ended; ++i) {
    finish(static_cast<std::size_t>(finished_[i]), statuses_[i], code == MPI_ERR_IN_STATUS);
  }
  // Closes gaps from the end, so that the remaining indices stay valid.
  std::sort(finished_.begin(), finished_.begin() + count, std::greater<>());
  for (std::size_t i = 0; i < ended; ++i) {
    const auto gap = static_cast<std::size_t>(finished_[i]);
    requests_[gap] = requests_.back();
    pieces_[gap] = pieces_.back();
    requests_.pop_back();
    pieces_.pop_back();
  }
  return true;
}

void MpiTransport::progress() {
  if (requests_.empty() || failed_ || fault_) return;
  try {
    move();
  } catch (const DeviceError& error) {  // progress() runs inside kernels; wait() is the place to throw
    fault_ = error.what();
  }
}

void MpiTransport::wait(Ticket ticket) {
  if (failed_) throw DeviceError(fmt::format("rank {} has left after an error", rank_));
  const auto under_way = open_.find(ticket);
  if (under_way == open_.end()) {
    throw UnsupportedInput(fmt::format("rank {} waits for exchange {}, which is not under way", rank_, ticket));
  }
  auto moved = Clock::now();
  Pause pause;
  while (under_way->second > 0 && !fault_) {
    if (move()) {
      moved = Clock::now();
      pause.restart();
    } else if (another_failed_) {  // last, because earlier messages of the failed rank still count
      fault_ = another_failed_;
    } else if (Clock::now() >= moved + limit_) {
      fault_ = fmt::format("nothing has moved for {:g} s", std::chrono::duration<double>(limit_).count());
    } else {
      pause.rest();
    }
  }
  if (fault_) {
    const auto waited =
        std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.ticket == ticket; });
    fail(waited == pieces_.end() ? *fault_ : fmt::format("{}; {}", *fault_, wait_text(*waited)));
  }
  open_.erase(under_way);
}

void MpiTransport::fail(const std::string& reason) {
  failed_ = true;
  notify(reason);
  cancel();
  throw DeviceError(reason);
}

// Receives the notice of another rank that it has failed.
void MpiTransport::hear() {
  int heard = 0;
  if (notice_ == MPI_REQUEST_NULL) return;
  if (MPI_Test(&notice_, &heard, MPI_STATUS_IGNORE) != MPI_SUCCESS || heard == 0) return;
  another_failed_ = fmt::format("another rank has failed: {}", heard_.data());
}

void MpiTransport::notify(const std::string& text) {
  if (has_told_) return;
  has_told_ = true;
  notice.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), notice_bytes - 1), notice.begin());
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    // No rank waits for these, because the peer may no longer listen.
    MPI_Isend(notice.data(), notice_bytes, MPI_CHAR, peer, notice_tag, communicator_,
              &notice_requests.emplace_back(MPI_REQUEST_NULL));
  }
}

// Cancels the receives, whose memory may be freed next.
void MpiTransport::cancel() {
  std::vector<MPI_Request*> receives = {&notice_};
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (pieces_[i].receives) receives.push_back(&requests_[i]);
  }
  for (MPI_Request* const receive : receives) {
    if (*receive != MPI_REQUEST_NULL) MPI_Cancel(receive);
  }
  const auto deadline = Clock::now() + 200ms;  // those that a peer has begun to fill end soon or never
  Pause pause;
  for (MPI_Request* const receive : receives) {
    for (int ended = 0; ended == 0 && Clock::now() < deadline; pause.rest()) {
      if (MPI_Test(receive, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    }
  }
  requests_.clear();
  pieces_.clear();
}

std::string MpiTransport::wait_text(const Piece& piece) const {
  return piece.receives ? receive_text(rank_, piece.message, piece.peer) : send_text(rank_, piece.message, piece.peer);
}

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(std::chrono::milliseconds limit, std::size_t largest_piece) {
  return std::make_unique<MpiTransport>(limit, largest_piece);
}

}  // namespace hdpsim::kernels

#else

namespace hdpsim::kernels {

std::unique_ptr<Transport> make_mpi_transport(std::chrono::milliseconds /*limit*/, std::size_t /*largest_piece*/) {
  throw DeviceError("this program was built without MPI: install libopenmpi-dev and build again");
}

}  // namespace hdpsim::kernels

#endif
