#include "sim/report/figure.h"

#include <utility>

namespace hdpsim {
namespace {

// The schema of the object in which the last part of a path stands; that part is left in `path`. Objects on the way
// that have no figure of their own are made, the outermost one as a part that every row has or not.
FigureJson& object_around(FigureJson& schema, std::string_view& path, bool in_every_row) {
  FigureJson* object = &schema;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const std::string name(path.substr(0, dot));
    path.remove_prefix(dot + 1);
    FigureJson& properties = (*object)["properties"];
    if (!properties.contains(name)) {
      properties[name] = object_shape(false);
      if (in_every_row || object != &schema) (*object)["required"].push_back(name);
    }
    object = &properties[name];
  }
  return *object;
}

}  // namespace

FigureJson object_shape(bool may_be_null) {
  return {{"type", may_be_null ? FigureJson({"object", "null"}) : FigureJson("object")},
          {"properties", FigureJson::object()},
          {"additionalProperties", false},
          {"required", FigureJson::array()}};
}

void put_at(FigureJson& object, std::string_view path, FigureJson value) {
  FigureJson* inner = &object;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    inner = &(*inner)[std::string(path.substr(0, dot))];
    path.remove_prefix(dot + 1);
  }
  (*inner)[std::string(path)] = std::move(value);
}

FigureJson in_order(FigureJson object, const std::vector<std::string>& first) {
  FigureJson ordered = FigureJson::object();
  for (const std::string& name : first) {
    if (object.contains(name)) ordered[name] = std::move(object[name]);
  }
  for (auto& [name, value] : object.items()) {
    if (!ordered.contains(name)) ordered[name] = std::move(value);
  }
  return ordered;
}

FigureJson object_schema(const std::vector<FigurePlace>& places) {
  FigureJson schema = object_shape(false);
  for (const FigurePlace& place : places) {
    std::string_view name = place.path;
    FigureJson& object = object_around(schema, name, place.in_every_row);
    object["properties"][std::string(name)] = place.schema;
    if (place.required && (place.in_every_row || &object != &schema)) object["required"].push_back(name);
  }
  return schema;
}

void write_cell(const FigureJson& value, TableSink& sink) {
  switch (value.type()) {
    case FigureJson::value_t::null:
      return sink.nothing();
    case FigureJson::value_t::boolean:
      return sink.flag(value.get<bool>());
    case FigureJson::value_t::number_integer:
    case FigureJson::value_t::number_unsigned:
      return sink.count(value.get<std::int64_t>());
    case FigureJson::value_t::number_float:
      return sink.number(value.get<double>());
    default:
      return sink.text(value.get_ref<const std::string&>());
  }
}

}  // namespace hdpsim
