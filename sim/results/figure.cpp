#include "sim/results/figure.h"

#include <utility>

#include "sim/document/json.h"

namespace hdpsim {
namespace {

// The schema of the object in which the last part of a path stands; that part is left in `path`. Objects on the way
// that have no figure of their own are made, the outermost one as a part that every row has or not.
Json& object_around(Json& schema, std::string_view& path, bool in_every_row) {
  Json* object = &schema;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const std::string name(path.substr(0, dot));
    path.remove_prefix(dot + 1);
    Json& properties = (*object)["properties"];
    if (!properties.contains(name)) {
      properties[name] = object_shape(false);
      if (in_every_row || object != &schema) (*object)["required"].push_back(name);
    }
    object = &properties[name];
  }
  return *object;
}

}  // namespace

Json object_shape(bool may_be_null) {
  return {{"type", may_be_null ? Json({"object", "null"}) : Json("object")},
          {"properties", Json::object()},
          {"additionalProperties", false},
          {"required", Json::array()}};
}

void put_at(Json& object, std::string_view path, Json value) {
  Json* inner = &object;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    inner = &(*inner)[std::string(path.substr(0, dot))];
    path.remove_prefix(dot + 1);
  }
  (*inner)[std::string(path)] = std::move(value);
}

Json in_order(Json object, const std::vector<std::string>& first) {
  Json ordered = Json::object();
  for (const std::string& name : first) {
    if (object.contains(name)) ordered[name] = std::move(object[name]);
  }
  for (auto& [name, value] : object.items()) {
    if (!ordered.contains(name)) ordered[name] = std::move(value);
  }
  return ordered;
}

Json object_schema(const std::vector<FigurePlace>& places) {
  Json schema = object_shape(false);
  for (const FigurePlace& place : places) {
    std::string_view name = place.path;
    Json& object = object_around(schema, name, place.in_every_row);
    object["properties"][std::string(name)] = place.schema;
    if (place.required && (place.in_every_row || &object != &schema)) object["required"].push_back(name);
  }
  return schema;
}

void write_cell(const Json& value, TableSink& sink) {
  switch (value.type()) {
    case Json::value_t::null:
      return sink.nothing();
    case Json::value_t::boolean:
      return sink.flag(value.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return sink.count(value.get<std::int64_t>());
    case Json::value_t::number_float:
      return sink.number(value.get<double>());
    default:
      return sink.text(value.get_ref<const std::string&>());
  }
}

}  // namespace hdpsim
