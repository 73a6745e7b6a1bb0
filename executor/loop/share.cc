#include "executor/loop/share.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void share_sequences(Communicator& world, std::span<const Sequence> mine, SequenceFields fields,
                     Experience& experience) {
  const std::vector<std::byte> packed =
      mine.empty() ? std::vector<std::byte>{} : pack(mine, fields);
  for (const std::vector<std::byte>& block : all_gather_bytes(world, packed)) {
    if (!block.empty()) unpack(block, experience);
  }
}

std::vector<std::string> share_texts(Communicator& world, const std::string& mine) {
  std::vector<std::string> texts;
  for (const std::vector<std::byte>& block : all_gather_bytes(world, bytes_of(mine))) {
    texts.push_back(text_of(block));
  }
  return texts;
}

std::string share_problems(Communicator& world, const Problems& mine) {
  std::string own;
  for (const Problem& problem : mine) own += to_string(problem) + "\n";
  std::set<std::string> all;
  for (const std::string& text : share_texts(world, own)) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) all.insert(line);
  }
  std::string text;
  for (const std::string& line : all) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::map<std::string, double> share_numbers(Communicator& world,
                                            const std::map<std::string, double>& mine) {
  std::string text;
  for (const auto& [name, value] : mine) {
    text.append(name).push_back('\0');
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::map<std::string, double> all;
  for (const std::string& block : share_texts(world, text)) {
    for (size_t at = 0; at < block.size();) {
      const std::string name = block.c_str() + at;
      at += name.size() + 1;
      double value = 0;
      std::memcpy(&value, block.data() + at, sizeof value);
      at += sizeof value;
      const auto [entry, is_new] = all.try_emplace(name, value);
      if (!is_new) entry->second = std::max(entry->second, value);
    }
  }
  return all;
}

Timeline share_spans(Communicator& world, const Timeline& mine) {
  std::ostringstream out;
  for (const Span& span : mine.spans) {
    out << span.start_ns << ' ' << span.end_ns << ' ' << span.rank << ' '
        << static_cast<int>(span.stream) << ' ' << static_cast<int>(span.phase) << ' ' << span.step
        << ' ' << span.bytes << ' ' << span.name << '\n';
  }
  Timeline all{.source = mine.source};
  for (const std::string& block : share_texts(world, out.str())) {
    std::istringstream in(block);
    Span span;
    int stream = 0, phase = 0;
    while (in >> span.start_ns >> span.end_ns >> span.rank >> stream >> phase >> span.step >>
           span.bytes) {
      in.ignore(1);
      std::getline(in, span.name);
      span.stream = static_cast<Stream>(stream);
      span.phase = static_cast<Phase>(phase);
      all.spans.push_back(span);
    }
  }
  sort(all);
  return all;
}

void UnsharedFields::add(SequenceFields fields, bool mine) {
  any_ = true;
  if (mine) mine_ |= fields;
}

void UnsharedFields::share(Communicator& world, Experience& experience) {
  if (!std::exchange(any_, false)) return;
  const SequenceFields mine = std::exchange(mine_, 0);
  share_sequences(world, mine == 0 ? std::span<const Sequence>{} : std::span(experience.sequences),
                  mine, experience);
}

bool any_rank(Communicator& world, bool mine) { return largest_of(world, mine ? 1 : 0) != 0; }

std::int32_t largest_of(Communicator& world, std::int32_t mine) {
  world.all_reduce(&mine, 1, DType::int32, ReduceOp::max);
  return mine;
}

}  // namespace tessera
