#include "sim/engine/pass_forms.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/impl/pricer.h"

namespace hdpsim {
namespace {

template <class Work>
std::vector<Bytes> bytes_of(const std::vector<Work>& works) {
  std::vector<Bytes> bytes;
  bytes.reserve(works.size());
  for (const Work& work : works) bytes.push_back(work.bytes);
  return bytes;
}

template <class Work>
void set_bytes(std::vector<Work>& works, const std::vector<Bytes>& bytes) {
  HDPSIM_CHECK(works.size() == bytes.size(), "{} messages in a program of {}", bytes.size(), works.size());
  for (std::size_t i = 0; i < works.size(); ++i) works[i].bytes = bytes[i];
}

}  // namespace

void PassForms::begin_step(const std::shared_ptr<const LoweringContext>& context, const Machine& machine) {
  if (context_ == context && machine_ == &machine) return;
  context_ = context;
  machine_ = &machine;
  programs_.clear();
  newest_.clear();
  older_.clear();
}

std::shared_ptr<const PricedProgram> PassForms::price(const PassClass& of, const Program& program, PassId id,
                                                      const std::vector<Hop>& hops) {
  Known* found = find(of);
  if (found == nullptr) {
    if (!is_asked_again(of)) return std::make_shared<PricedProgram>(hdpsim::price(program, id, hops, *machine_));
    found = &lower(of, program, id);
  }
  Known& known = *found;
  if (known.numbers == nullptr) known.numbers = numbers_of(lowered(program, id, known));
  count(known);
  PricedProgram& priced = own(*known.program);
  take(*known.numbers, priced);
  priced.traffic = known.traffic;
  program.attend(id, priced.program);
  price_pass(priced, program.pipeline(), id, hops, *machine_);
  return *known.program;
}

std::optional<SerialPass> PassForms::serial(const PassClass& of, const Program& program, PassId id) {
  Known* found = find(of);
  if (found == nullptr) found = &lower(of, program, id);
  Known& known = *found;
  if (!known.serial) return std::nullopt;
  if (known.is_counted) known.numbers.reset();  // most classes only run on ranks of nominal speed
  count(known);
  MicroBatchProgram& shared = own(*known.program).program;
  program.attend(id, shared);
  SerialPass pass = known.serial->with(shared.attention, *machine_);
  pass.traffic = &known.traffic;
  return pass;
}

PricedProgram& PassForms::own(SharedProgram& program) {
  if (program.use_count() > 1) program = std::make_shared<PricedProgram>(*program);
  return *program;
}

void PassForms::count(Known& known) const {
  if (!std::exchange(known.is_counted, false)) machine_->cost->asked_again(known.asked);
}

PassForms::Known* PassForms::find(const PassClass& of) {
  if (const auto known = newest_.find(of); known != newest_.end()) return &known->second;
  const auto known = older_.find(of);
  return known == older_.end() ? nullptr : &newest_.insert(older_.extract(known)).position->second;
}

bool PassForms::is_asked_again(const PassClass& of) {
  const std::uint64_t hash = PassClassHash()(of);
  return std::exchange(asked_once_[hash % remembered], hash) == hash;
}

PassForms::Known& PassForms::lower(const PassClass& of, const Program& program, PassId id) {
  if (newest_.size() >= generation) {
    older_ = std::move(newest_);
    newest_.clear();
  }
  Known& known = newest_[of];
  PricedProgram priced = lowered(program, id, known);
  if (of.ranks == 1) known.serial = SerialForm::of(priced, *machine_);
  known.numbers = numbers_of(priced);
  known.traffic = priced.traffic;
  known.program = &programs_[of.of_any_tokens()];
  if (*known.program == nullptr) *known.program = std::make_shared<PricedProgram>(std::move(priced));
  return known;
}

PricedProgram PassForms::lowered(const Program& program, PassId id, Known& known) const {
  PricedProgram priced{program.pass(id), {}};
  const WatchedCostModel watched(*machine_->cost);
  price_class(priced, *machine_, watched);
  known.asked = watched.coverage();
  known.is_counted = true;
  return priced;
}

std::unique_ptr<PassForms::Numbers> PassForms::numbers_of(const PricedProgram& priced) {
  auto numbers = std::make_unique<Numbers>(Numbers{.times = {},
                                                   .bytes = priced.program.bytes,
                                                   .collectives = bytes_of(priced.program.collectives),
                                                   .shares = bytes_of(priced.program.shares),
                                                   .evidence = priced.evidence});
  for (const std::vector<Duration>& block : priced.times) {
    numbers->times.insert(numbers->times.end(), block.begin(), block.end());
  }
  return numbers;
}

void PassForms::take(const Numbers& numbers, PricedProgram& priced) {
  auto time = numbers.times.begin();
  for (std::vector<Duration>& block : priced.times) {
    HDPSIM_CHECK(numbers.times.end() - time >= std::ssize(block), "passes of a class have other instructions");
    std::copy_n(time, block.size(), block.begin());
    time += std::ssize(block);
  }
  HDPSIM_CHECK(time == numbers.times.end(), "passes of a class have other instructions");
  HDPSIM_CHECK(priced.program.bytes.size() == numbers.bytes.size(), "passes of a class have other messages");
  priced.program.bytes = numbers.bytes;
  set_bytes(priced.program.collectives, numbers.collectives);
  set_bytes(priced.program.shares, numbers.shares);
  priced.evidence = numbers.evidence;
}

}  // namespace hdpsim
