#include "sim/document/key_table.h"

namespace hdpsim {

KeyText key_text(std::string_view name, KeyShape shape, std::string fallback, std::string_view sentence,
                 const KeyNotes& notes) {
  return {std::string(name), std::move(shape), std::move(fallback), std::string(sentence), notes};
}

void KeyList::add(KeyText text, Read read) {
  texts_.push_back(std::move(text));
  reads_.push_back(std::move(read));
}

template <class T>
void KeyList::add_value(const KeyText& text, Put<T> put) {
  add(text, [put = std::move(put)](const Value& value, void* target, Diagnostics& diagnostics) {
    if (const auto found = hdpsim::read<T>(value, diagnostics)) put(target, *found);
  });
}
template void KeyList::add_value(const KeyText&, Put<bool>);
template void KeyList::add_value(const KeyText&, Put<double>);
template void KeyList::add_value(const KeyText&, Put<std::string>);

template <class T>
void KeyList::add_range(KeyText text, const RangeOf<T>& range, Put<T> put) {
  const auto read = [what = fmt::format("'{}'", text.name), range, put = std::move(put)](
                        const Value& value, void* target, Diagnostics& diagnostics) {
    if (const auto found = read_in<T>(value, what, range, diagnostics)) put(target, *found);
  };
  add(std::move(text), read);
}
template void KeyList::add_range<std::int64_t>(KeyText, const Range&, Put<std::int64_t>);
template void KeyList::add_range<double>(KeyText, const Range&, Put<double>);
template void KeyList::add_range<Duration>(KeyText, const Between<Duration>&, Put<Duration>);
template void KeyList::add_range<Bytes>(KeyText, const Between<Bytes>&, Put<Bytes>);
template void KeyList::add_range<Bandwidth>(KeyText, const Between<Bandwidth>&, Put<Bandwidth>);
template void KeyList::add_range<FlopRate>(KeyText, const Between<FlopRate>&, Put<FlopRate>);

void KeyList::add_word(KeyText text, const std::string& what, Put<std::size_t> put) {
  const auto read = [what, words = text.shape.words, put = std::move(put)](const Value& value, void* target,
                                                                           Diagnostics& diagnostics) {
    if (const auto word = read_choice(value, what, words, diagnostics)) put(target, *word);
  };
  add(std::move(text), read);
}

KeyReading KeyList::read(const Value& value, void* target, Diagnostics& diagnostics, const std::string& what) const {
  MapReader map(value, what, diagnostics);
  KeyReading reading;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const KeyText& text = texts_[i];
    const Value* found = text.notes.required ? map.require(text.name) : map.find(text.name);
    const std::size_t before = diagnostics.count();
    if (found != nullptr) reads_[i](*found, target, diagnostics);
    const bool is_wrong = diagnostics.count() > before;
    if (is_wrong || (found == nullptr && text.notes.required)) reading.add_wrong(text.name);
  }
  map.finish();
  return reading;
}

void KeyList::read_key(std::string_view name, const Value& value, void* target, Diagnostics& diagnostics) const {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (texts_[i].name == name) reads_[i](value, target, diagnostics);
  }
}

}  // namespace hdpsim
