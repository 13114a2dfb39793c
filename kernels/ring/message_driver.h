#pragma once

#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Moves a transport's messages between tiles of attention (Backend::set_progress_hook), for as long as it lives. Both
/// outlive it.
class MessageDriver {
 public:
  MessageDriver(Backend& backend, Transport& transport) : backend_(backend) {
    backend_.set_progress_hook([&transport] { transport.progress(); });
  }
  MessageDriver(const MessageDriver&) = delete;
  MessageDriver& operator=(const MessageDriver&) = delete;
  ~MessageDriver() { backend_.set_progress_hook({}); }

 private:
  Backend& backend_;
};

}  // namespace hdpsim::kernels
