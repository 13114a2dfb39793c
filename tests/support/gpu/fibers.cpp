// Checked longjmp reports a jump to another stack as an error.
#undef _FORTIFY_SOURCE

#include "tests/support/gpu/fibers.h"

#include <setjmp.h>  // _setjmp: without the signal mask, which would cost a system call a switch
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace hdpsim::emulator {

struct Fiber::State {
  std::vector<unsigned char> stack;
  ucontext_t context = {};  // only used to start: afterwards setjmp and longjmp switch
  jmp_buf inside = {};
  jmp_buf outside = {};
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
  bool started = false;
  bool ended = true;
  const void* outer_stack = nullptr;
  std::size_t outer_bytes = 0;
};

namespace {

void* running_state = nullptr;

#if defined(__SANITIZE_ADDRESS__)
void announce_switch(const void* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(nullptr, stack, bytes);
}
void switched(const void** from, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(nullptr, from, bytes);
}
#else
void announce_switch(const void* /*stack*/, std::size_t /*bytes*/) {}
void switched(const void** /*from*/, std::size_t* /*bytes*/) {}
#endif

}  // namespace

Fiber::Fiber(std::size_t stack_bytes) : state_(std::make_unique<State>()) {
  state_->stack.resize(stack_bytes);
}
Fiber::Fiber(Fiber&&) noexcept = default;
Fiber& Fiber::operator=(Fiber&&) noexcept = default;
Fiber::~Fiber() = default;

void Fiber::start(void (*body)(void*), void* argument) {
  state_->body = body;
  state_->argument = argument;
  state_->started = false;
  state_->ended = false;
}

bool Fiber::resume() {
  State& state = *state_;
  running_state = &state;
  if (_setjmp(state.outside) == 0) {
    announce_switch(state.stack.data(), state.stack.size());
    if (state.started) {
      _longjmp(state.inside, 1);
    }
    state.started = true;
    getcontext(&state.context);
    state.context.uc_stack.ss_sp = state.stack.data();
    state.context.uc_stack.ss_size = state.stack.size();
    state.context.uc_link = nullptr;
    void (*const entry)() = [] {
      State& self = *static_cast<State*>(running_state);
      switched(&self.outer_stack, &self.outer_bytes);
      self.body(self.argument);
      self.ended = true;
      announce_switch(self.outer_stack, self.outer_bytes);
      _longjmp(self.outside, 1);
    };
    makecontext(&state.context, entry, 0);
    setcontext(&state.context);
  }
  switched(nullptr, nullptr);
  return !state_->ended;
}

void Fiber::suspend() {
  State& state = *static_cast<State*>(running_state);
  if (_setjmp(state.inside) == 0) {
    announce_switch(state.outer_stack, state.outer_bytes);
    _longjmp(state.outside, 1);
  }
  switched(&state.outer_stack, &state.outer_bytes);
}

}  // namespace hdpsim::emulator
