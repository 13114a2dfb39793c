#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "sim/base/units.h"
#include "sim/document/json.h"

// What journals keep is declared once: a type T has a function
//
//   template <SameAs<T> Self, class Visit>
//   void each_member(Self& self, const Visit& visit) { visit("name", self.name); ... }
//
// from which its text follows in both directions. Times are whole picoseconds, floating-point numbers the shortest that
// read back exactly, an empty optional is null.
namespace hdpsim {

/// T or const T.
template <class Self, class T>
concept SameAs = std::same_as<std::remove_const_t<Self>, T>;

template <class T>
concept Recorded = requires(T& value) {
  each_member(value, [](const char*, auto&) {});
};

inline void to_json(Json& json, Duration time) {
  json = time.picoseconds();
}
inline void from_json(const Json& json, Duration& time) {
  time = Duration::picoseconds(json.get<std::int64_t>());
}
inline void to_json(Json& json, Bytes bytes) {
  json = bytes.count();
}
inline void from_json(const Json& json, Bytes& bytes) {
  bytes = Bytes(json.get<std::int64_t>());
}

template <class Member>
void put_member(Json& json, const Member& member) {
  json = member;
}
template <class Member>
void put_member(Json& json, const std::optional<Member>& member) {
  json = member ? Json(*member) : Json();
}
template <class Member>
void take_member(const Json& json, Member& member) {
  json.get_to(member);
}
template <class Member>
void take_member(const Json& json, std::optional<Member>& member) {
  member.reset();
  if (!json.is_null()) member = json.get<Member>();
}

template <Recorded T>
void to_json(Json& json, const T& value) {
  json = Json::object();
  each_member(value, [&](const char* name, const auto& member) { put_member(json[name], member); });
}
template <Recorded T>
void from_json(const Json& json, T& value) {
  each_member(value, [&](const char* name, auto& member) { take_member(json.at(name), member); });
}

/// The value on one line.
template <class T>
std::string record_text(const T& value) {
  return json_line(Json(value));
}

/// The value of a text; empty if it is of another shape.
template <class T>
std::optional<T> record_of_text(std::string_view text) {
  try {
    return parsed_json(text).get<T>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace hdpsim
