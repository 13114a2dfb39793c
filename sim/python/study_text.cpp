#include "sim/python/study_text.h"

#include <fmt/format.h>

#include "sim/document/document.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

Value value_of(const py::handle& object, const std::string& path);

bool has_type(const py::handle& object, const char* module, const char* name) {
  return py::isinstance(object, py::module_::import(module).attr(name));
}

Value map_of(const py::handle& object, const std::string& path) {
  Value map = Value::map();
  for (const py::handle& item : object.attr("items")()) {
    const auto entry = py::reinterpret_borrow<py::tuple>(item);
    if (!py::isinstance<py::str>(entry[0])) {
      throw py::type_error(fmt::format("{}: the key {} is not text", path, py::repr(entry[0]).cast<std::string>()));
    }
    const auto key = entry[0].cast<std::string>();
    map.set(key, value_of(entry[1], fmt::format("{}[{}]", path, py::repr(entry[0]).cast<std::string>())));
  }
  return map;
}

Value sequence_of(const py::handle& object, const std::string& path) {
  Value sequence = Value::sequence();
  for (const py::handle& item : object) {
    sequence.items.push_back(value_of(item, fmt::format("{}[{}]", path, sequence.items.size())));
  }
  return sequence;
}

Value number_of(const py::handle& object) {
  const bool whole = PyIndex_Check(object.ptr()) != 0;
  const py::object number = whole
                                ? py::object(py::int_(py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()))))
                                : py::object(py::float_(py::reinterpret_borrow<py::object>(object)));
  return Value::scalar(py::repr(number).cast<std::string>());
}

Value value_of(const py::handle& object, const std::string& path) {
  if (object.is_none()) return {};
  if (py::isinstance<py::bool_>(object)) return Value::scalar(object.cast<bool>() ? "true" : "false");
  if (py::isinstance<py::str>(object)) return Value::scalar(object.cast<std::string>());
  if (has_type(object, "os", "PathLike")) return Value::scalar(py::str(object).cast<std::string>());
  if (has_type(object, "collections.abc", "Mapping")) return map_of(object, path);
  if (has_type(object, "numbers", "Real") || PyIndex_Check(object.ptr()) != 0) return number_of(object);
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) return sequence_of(object, path);
  throw py::type_error(fmt::format("{}: a study has no place for a {}", path,
                                   py::type::of(object).attr("__name__").cast<std::string>()));
}

}  // namespace

std::string study_text(const py::handle& study) {
  return to_yaml(value_of(study, "study"));
}

}  // namespace hdpsim::python
