#include "planner/interop/files/setting.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>

#include "cost_models/documents/printed.h"

namespace tessera {
namespace {

bool made_of(std::string_view text, std::string_view extra) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return (c < 128 && std::isalnum(c) != 0) || extra.find(static_cast<char>(c)) != extra.npos;
  });
}

// Words that YAML 1.1 (PyYAML) or 1.2 or Hydra read as something other than a string.
bool is_word_of_its_own(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kWords{"null", "true", "false", "yes", "no",
                                                           "on",   "off",  "y",     "n",   "nan",
                                                           "inf",  ".nan", ".inf",  "~"};
  const std::string small = lower_case(text);
  return std::find(kWords.begin(), kWords.end(), small) != kWords.end();
}

// Digits that read back as the same double, always with a fraction or an exponent.
std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  // PyYAML reads 1e-06 as a string; YAML 1.1 wants a fraction before the exponent.
  const auto exponent = text.find('e');
  if (exponent != text.npos && text.find('.') == text.npos) text.insert(exponent, ".0");
  return text;
}

std::string scalar_text(const Node& value) {
  switch (value.kind) {
    case Node::Kind::boolean:
      return value.boolean ? "true" : "false";
    case Node::Kind::integer:
      return std::to_string(value.integer);
    case Node::Kind::number:
      return number_text(value.number);
    case Node::Kind::null:
      return "null";
    default:
      return value.text;
  }
}

std::string hydra_string(const std::string& text) {
  const bool starts = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 ||
                                        text[0] == '/' || text[0] == '_');
  if (starts && made_of(text, "_-./") && !is_word_of_its_own(text)) return text;
  // Quoted values: a backslash escapes the quote, and a backslash only where it stands before one
  // or at the end.
  std::string quoted = "'";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      std::size_t end = text.find_first_not_of('\\', i);
      if (end == text.npos) end = text.size();
      const bool doubled = end == text.size() || text[end] == '\'';
      quoted.append((end - i) * (doubled ? 2 : 1), '\\');
      i = end - 1;
      continue;
    }
    if (text[i] == '\'') quoted += '\\';
    quoted += text[i];
  }
  return quoted + "'";
}

std::string hydra_value(const Node& value) {
  if (value.is(Node::Kind::string)) return hydra_string(value.text);
  if (!value.is(Node::Kind::list)) return scalar_text(value);
  std::string text = "[";
  for (const Node& item : value.items) text += (text.size() > 1 ? "," : "") + hydra_value(item);
  return text + "]";
}

struct Tree {
  std::vector<std::string> order;
  std::map<std::string, Tree> children;
  const Setting* leaf = nullptr;
};

void write(const Tree& tree, std::size_t depth, std::string& out) {
  for (const std::string& name : tree.order) {
    const Tree& child = tree.children.at(name);
    out.append(2 * depth, ' ');
    out += yaml_text(name) + ":";
    if (child.leaf == nullptr) {
      out += "\n";
      write(child, depth + 1, out);
      continue;
    }
    out += " " + yaml_scalar(child.leaf->value);
    if (!child.leaf->comment.empty()) out += "  # " + child.leaf->comment;
    out += "\n";
  }
}

}  // namespace

const Setting* find(const Settings& settings, std::string_view key) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& setting) { return setting.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

std::string shell_word(std::string_view text) {
  if (made_of(text, "_-./:=@%+,")) return std::string(text);
  // Single quotes where nothing inside looks like a mistake to shellcheck, else double quotes.
  if (text.find_first_of("'$`\\") == text.npos) return "'" + std::string(text) + "'";
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '$' || c == '`' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string yaml_text(std::string_view text) {
  const bool starts = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 ||
                                        text[0] == '/' || text[0] == '_');
  if (starts && made_of(text, "_-./") && !is_word_of_its_own(text)) return std::string(text);
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      quoted += kHex[byte >> 4U];
      quoted += kHex[byte & 15U];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string yaml_scalar(const Node& value) {
  if (value.is(Node::Kind::string)) return yaml_text(value.text);
  if (!value.is(Node::Kind::list)) return scalar_text(value);
  std::string text = "[";
  for (const Node& item : value.items) text += (text.size() > 1 ? ", " : "") + yaml_scalar(item);
  return text + "]";
}

std::string hydra_override(const Setting& setting) {
  return (setting.added ? "+" : "") + setting.key + "=" + hydra_value(setting.value);
}

std::string nested_yaml(const Settings& settings) {
  Tree root;
  for (const Setting& setting : settings) {
    Tree* at = &root;
    std::size_t begin = 0;
    while (true) {
      const std::size_t dot = setting.key.find('.', begin);
      const std::string name = setting.key.substr(begin, dot - begin);
      if (!at->children.contains(name)) at->order.push_back(name);
      at = &at->children[name];
      if (dot == std::string::npos) break;
      begin = dot + 1;
    }
    at->leaf = &setting;
  }
  std::string out;
  write(root, 0, out);
  return out;
}

std::string comment_lines(std::string_view text, std::string_view prefix) {
  std::string out, line;
  const auto flush = [&] {
    out += std::string(prefix) + line + "\n";
    line.clear();
  };
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find_first_of(" \n\r", begin);
    if (end == text.npos) end = text.size();
    const std::string_view word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + word.size() + 1 > 94) flush();
    if (!word.empty()) line += (line.empty() ? "" : " ") + std::string(word);
    begin = end + 1;
  }
  if (!line.empty()) flush();
  return out;
}

}  // namespace tessera
