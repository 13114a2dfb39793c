#include "sim/results/figure_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/document/json.h"

namespace hdpsim {
namespace {

FigureText in_part(const PartText& part, const FigureText& own) {
  FigureText text = own;
  if (!own.column.empty()) text.column = fmt::format(fmt::runtime(part.columns), own.column);
  if (!own.path.empty() && !part.path.empty()) text.path = fmt::format("{}.{}", part.path, own.path);
  if (own.unit.empty()) text.unit = part.unit;
  text.sentence = fmt::format(fmt::runtime(part.sentences), own.sentence);
  return text;
}

}  // namespace

void FigureList::add_part(const PartText& text, const FigureList& figures, const Part& part_of, bool is_always_there,
                          Missing missing) {
  const bool may_be_left_out = !is_always_there && missing == Missing::left_out;
  const bool in_every_row = is_always_there || missing != Missing::blank;
  const Where is_there = [part_of](const void* row) { return part_of(row) != nullptr; };
  if (!text.path.empty()) {
    Entry object{.text = {.path = text.path, .sentence = text.object},
                 .schema = object_shape(!is_always_there && !may_be_left_out),
                 .value = [is_there](const void* row) { return is_there(row) ? Json::object() : Json(); },
                 .is_required = !may_be_left_out,
                 .has_column = false,
                 .is_object = true};
    if (may_be_left_out) object.where = is_there;
    add(std::move(object));
  }
  for (const Entry& each : figures.entries_) {
    Entry entry = each;
    entry.text = in_part(text, each.text);
    for (FigureText& item : entry.items) item = in_part(text, item);
    entry.value = [part_of, inner = each.value](const void* row) { return inner(part_of(row)); };
    const auto holds = [part_of](const Where& inner) {
      return [part_of, inner](const void* row) {
        const void* part = part_of(row);
        return part != nullptr && (!inner || inner(part));
      };
    };
    entry.where = holds(each.where);
    if (each.in_json) entry.in_json = holds(each.in_json);
    entry.has_column = each.has_column && !may_be_left_out;
    entry.in_every_row = in_every_row && each.in_every_row;
    add(std::move(entry));
  }
}

std::vector<std::size_t> FigureList::columns_of(const std::vector<const void*>& rows) const {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.text.column.empty()) continue;
    if (entry.has_column || std::any_of(rows.begin(), rows.end(), entry.where)) columns.push_back(i);
  }
  return columns;
}

void FigureList::write_names(const std::vector<std::size_t>& columns, TableSink& sink) const {
  for (const std::size_t column : columns) sink.text(entries_[column].text.column);
}

void FigureList::write_cells(const void* row, const std::vector<std::size_t>& columns, TableSink& sink) const {
  for (const std::size_t column : columns) {
    const Entry& entry = entries_[column];
    write_cell(entry.is_in(row) ? entry.value(row) : Json(), sink);
  }
}

Json FigureList::json(const void* row) const {
  Json json = Json::object();
  for (const Entry& entry : entries_) {
    if (entry.is_in_json(row)) put_at(json, entry.text.path, entry.value(row));
  }
  return json_order_.empty() ? json : in_order(std::move(json), json_order_);
}

Json FigureList::schema() const {
  std::vector<FigurePlace> places;
  for (const Entry& entry : entries_) {
    if (entry.text.path.empty()) continue;
    Json schema = Json::object();
    if (!entry.text.sentence.empty()) schema["description"] = entry.text.sentence;
    schema.update(entry.schema);
    places.push_back({entry.text.path, std::move(schema), entry.is_required, entry.in_every_row});
  }
  return object_schema(places);
}

std::vector<std::string> FigureList::names_unless_blank() const {
  std::vector<std::string> names;
  std::vector<std::string> left_out;
  for (const Entry& entry : entries_) {
    const std::string& path = entry.text.path;
    const std::string name = path.substr(0, path.find('.'));
    if (entry.in_every_row || name.empty()) continue;
    if (path == name && !entry.is_required) left_out.push_back(name);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::find(left_out.begin(), left_out.end(), name) != left_out.end();
  });
  return names;
}

std::vector<FigureText> FigureList::texts() const {
  std::vector<FigureText> texts;
  for (const Entry& entry : entries_) {
    if (!entry.is_object) texts.push_back(entry.text);
    texts.insert(texts.end(), entry.items.begin(), entry.items.end());
  }
  return texts;
}

}  // namespace hdpsim
