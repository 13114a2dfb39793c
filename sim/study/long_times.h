#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/document/key_table.h"

namespace hdpsim {

// Times of a run of hours to years, in plain seconds: they exceed a Duration.

/// A time above zero (or zero, if that is allowed) up to a thousand years; otherwise empty, with the problem reported.
[[nodiscard]] std::optional<double> read_long_time(const Value& value, std::string_view key, bool may_be_zero,
                                                   Diagnostics& diagnostics);
/// Which times these are.
[[nodiscard]] KeyShape long_time_shape(bool may_be_zero);

/// Declares such a key of `keys`; one that may be zero is zero by default.
template <class T, class Member>
void add_long_time(KeyTable<T>& keys, const std::string& name, bool may_be_zero, Member member, std::string sentence,
                   KeyNotes notes) {
  keys.add({name, long_time_shape(may_be_zero), may_be_zero ? "0 s" : "", std::move(sentence), notes},
           [=](const Value& read, T& target, Diagnostics& diagnostics) {
             if (const auto seconds = read_long_time(read, name, may_be_zero, diagnostics)) member(target) = *seconds;
           });
}

}  // namespace hdpsim
