#include "sim/python/bindings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/limits.h"

namespace hdpsim::python {
namespace {

namespace py = pybind11;

/// Makes a document of a dictionary, and counts while it does: values of Python can hold themselves.
class StudyReader {
 public:
  Value read(const py::handle& object) {
    count();
    if (object.is_none()) return {};
    if (py::isinstance<py::bool_>(object)) return Value::scalar(object.cast<bool>() ? "true" : "false");
    if (py::isinstance<py::str>(object)) return Value::scalar(text_of(object));
    if (py::isinstance(object, path_)) return Value::scalar(text_of(py::str(object)));
    if (py::isinstance(object, mapping_)) return map_of(object);
    if (py::isinstance(object, real_) || PyIndex_Check(object.ptr()) != 0) return number_of(object);
    if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) return sequence_of(object);
    throw py::type_error(fmt::format("{}: a study has no place for a {}", place(),
                                     py::type::of(object).attr("__name__").cast<std::string>()));
  }

 private:
  void count() {
    const bool too_deep = steps_.size() > static_cast<std::size_t>(deepest_level);
    if (!too_deep && ++values_ <= most_values) return;
    Diagnostics problems;
    report_limit({place(), 0, 0}, too_deep, problems);
    problems.throw_if_any();
  }

  Value inner(py::object step, const py::handle& object) {
    steps_.push_back(std::move(step));
    Value value = read(object);
    steps_.pop_back();
    return value;
  }

  // The keys of a dictionary differ: none is looked for among those before it.
  Value map_of(const py::handle& object) {
    Value map = Value::map();
    for (const py::handle& item : object.attr("items")()) {
      const auto entry = py::reinterpret_borrow<py::tuple>(item);
      if (!py::isinstance<py::str>(entry[0])) {
        throw py::type_error(
            fmt::format("{}: the key {} is not text", place(), py::repr(entry[0]).cast<std::string>()));
      }
      map.entries.push_back({text_of(entry[0], "a key of "), {}, inner(entry[0], entry[1])});
    }
    return map;
  }

  Value sequence_of(const py::handle& object) {
    Value sequence = Value::sequence();
    for (const py::handle& item : object) sequence.items.push_back(inner(py::int_(sequence.items.size()), item));
    return sequence;
  }

  // A text in UTF-8. ValueError with its place (behind `what`) for one of lone surrogates, which has no such form.
  [[nodiscard]] std::string text_of(const py::handle& text, std::string_view what = "") const {
    Py_ssize_t bytes = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &bytes);
    if (utf8 != nullptr) return {utf8, static_cast<std::size_t>(bytes)};
    PyErr_Clear();
    const auto ascii = py::reinterpret_steal<py::object>(PyObject_ASCII(text.ptr()));
    throw py::value_error(fmt::format("{}{}: {} has no form in UTF-8", what, place(), PyUnicode_AsUTF8(ascii.ptr())));
  }

  static Value number_of(const py::handle& object) {
    const bool whole = PyIndex_Check(object.ptr()) != 0;
    const py::object number =
        whole ? py::object(py::int_(py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()))))
              : py::object(py::float_(py::reinterpret_borrow<py::object>(object)));
    return Value::scalar(py::repr(number).cast<std::string>());
  }

  // "study['data']['steps']", of a long way its beginning.
  [[nodiscard]] std::string place() const {
    constexpr std::size_t most_steps = 8;
    std::string text = "study";
    for (std::size_t i = 0; i < std::min(steps_.size(), most_steps); ++i) {
      text += fmt::format("[{}]", py::repr(steps_[i]).cast<std::string>());
    }
    return steps_.size() > most_steps ? text + "..." : text;
  }

  static py::object type_of(const char* module, const char* name) { return py::module_::import(module).attr(name); }

  py::object path_ = type_of("os", "PathLike");
  py::object mapping_ = type_of("collections.abc", "Mapping");
  py::object real_ = type_of("numbers", "Real");
  std::vector<py::object> steps_;  // keys and indices from the study to the value that is read
  int values_ = 0;
};

}  // namespace

std::string study_text(const py::handle& study) {
  return to_yaml(StudyReader().read(study));
}

}  // namespace hdpsim::python
