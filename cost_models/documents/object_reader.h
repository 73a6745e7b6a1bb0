// Typed access to one map of a parsed Document, JSON or YAML, that reports every defect.
//
// A reader of a format makes one ObjectReader per map, names each key it knows, and ends with
// refuse_unknown_keys(). Nothing throws: a missing or wrong value appends a Problem (file,
// line:column and path) and leaves the target as it was, so all defects of a file come out at once.
// Holds pointers into the Document; both must outlive it. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem_list.h"

namespace tessera {

/// Closed interval of allowed integers.
struct Whole {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
constexpr Whole at_least(std::int64_t least) { return {.least = least}; }
inline constexpr Whole kPositive{.least = 1};
inline constexpr Whole kNotNegative{.least = 0};

/// Closed interval of allowed numbers, open at the left where `above` is set.
struct Real {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false;  // `least` itself is refused
};
inline constexpr Real kAboveZero{.least = 0, .above = true};
inline constexpr Real kFromZero{.least = 0};
inline constexpr Real kFraction{.least = 0, .most = 1};

class ObjectReader {
 public:
  /// The root; a Problem is appended when it is not a map.
  ObjectReader(const Document& document, Problems& problems);

  /// `required` reports an absent key, `optional` leaves `out` alone where the key is absent or
  /// null.
  void required(std::string_view key, std::int64_t& out, Whole range = {});
  void required(std::string_view key, int& out, Whole range = {});
  void required(std::string_view key, double& out, Real range = {});
  void required(std::string_view key, bool& out);
  void required(std::string_view key, std::string& out, bool may_be_empty = false);
  void optional(std::string_view key, std::int64_t& out, Whole range = {});
  void optional(std::string_view key, int& out, Whole range = {});
  void optional(std::string_view key, double& out, Real range = {});
  void optional(std::string_view key, bool& out);
  void optional(std::string_view key, std::string& out);
  void optional(std::string_view key, std::optional<std::int64_t>& out, Whole range = {});
  void optional(std::string_view key, std::optional<double>& out, Real range = {});

  /// Enumerators by name_of(); `values` lists those allowed here.
  template <class Enum, std::size_t N>
  void required(std::string_view key, Enum& out, const std::array<Enum, N>& values) {
    if (present(key, true)) choose(key, out, values);
  }
  template <class Enum, std::size_t N>
  void optional(std::string_view key, Enum& out, const std::array<Enum, N>& values) {
    if (present(key, false)) choose(key, out, values);
  }

  /// Lists of scalars; absent leaves `out` empty unless `need`.
  void list(std::string_view key, std::vector<std::string>& out, bool need = true);
  void list(std::string_view key, std::vector<std::int64_t>& out, Whole range = {},
            bool need = true);
  void list(std::string_view key, std::vector<double>& out, Real range = {}, bool need = true);

  /// A map below `key`; nullopt after a Problem, or where it is absent and not needed.
  std::optional<ObjectReader> object(std::string_view key, bool need = true);
  /// The maps of a list below `key`; what is not a map is a Problem and left out.
  std::vector<ObjectReader> objects(std::string_view key, bool need = true);

  /// Raw access; counts as knowing the key. nullptr when absent.
  const Node* find(std::string_view key);
  bool has(std::string_view key) const;
  const std::vector<std::string>& keys() const;

  /// Appends a Problem about the value of `key` (of this map itself where it is absent).
  void refuse(std::string_view key, std::string expected, std::string hint = {});
  void refuse(std::string_view key, std::string found, std::string expected, std::string hint);

  /// Appends a Problem with did-you-mean for every key that no call above has named.
  void refuse_unknown_keys();

  /// Text for Problem::place: "3:5 (/a/b)" in JSON, "3:5 (a.b)" in YAML.
  std::string place(std::string_view key) const;
  const std::string& file() const { return document_->file; }
  /// Where this reader reports: for readers of files that this one names.
  Problems& problems() const { return *problems_; }

 private:
  ObjectReader(const Document* document, Problems* problems, const Node* node, std::string path);

  const Node* present(std::string_view key, bool need);
  void read(std::string_view key, bool need, std::int64_t& out, Whole range);
  void read(std::string_view key, bool need, double& out, Real range);
  void read(std::string_view key, bool need, bool& out);
  void read(std::string_view key, bool need, std::string& out, bool may_be_empty);
  const Node* list_node_of(std::string_view key, bool need);
  std::string path_of(std::string_view key) const;
  std::string place_of(const Node& node, const std::string& path) const;
  bool integer_at(const Node& node, const std::string& path, std::int64_t& out, Whole range);
  bool number_at(const Node& node, const std::string& path, double& out, Real range);
  std::optional<std::size_t> choice(std::string_view key, const std::vector<std::string>& names);

  template <class Enum, std::size_t N>
  void choose(std::string_view key, Enum& out, const std::array<Enum, N>& values) {
    std::vector<std::string> names;
    for (const Enum value : values) names.emplace_back(name_of(value));
    if (const auto index = choice(key, names)) out = values[*index];
  }

  const Document* document_;
  Problems* problems_;
  const Node* node_;  // a map
  std::string path_;  // JSON pointer, or dotted keys
  std::vector<std::string> known_;
};

}  // namespace tessera
