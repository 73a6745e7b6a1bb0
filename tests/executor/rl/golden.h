// Reads verl's golden vectors (tests/golden/README.md) and compares with them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/rl/rows.h"

namespace tessera::golden {

using Json = nlohmann::json;
using Matrix = std::vector<std::vector<double>>;

inline std::string folder() {
  const char* given = std::getenv("TESSERA_GOLDEN_DIR");
  return given != nullptr ? given : std::string(TESSERA_SOURCE_DIR) + "/tests/golden";
}

/// Names of the files that tests of this program have read.
inline std::set<std::string>& families_read() {
  static std::set<std::string> names;
  return names;
}

inline Json load(const std::string& name) {
  const std::string path = folder();
  families_read().insert(name);
  std::ifstream in(path + "/" + name + ".json");
  EXPECT_TRUE(in.good()) << path << "/" << name << ".json";
  return in.good() ? Json::parse(in) : Json{{"cases", Json::array()}};
}

inline Array flatten(const Json& matrix) {
  Array values;
  for (const auto& row : matrix) {
    for (const auto& x : row) values.push_back(x.get<double>());
  }
  return values;
}

/// The padded batch: every row as wide as the file's, padding masked.
inline Rows padded_rows(const Json& mask) {
  Rows rows;
  for (const auto& row : mask) {
    rows.begin.push_back(rows.begin.back() + static_cast<std::int64_t>(row.size()));
    for (const auto& x : row) rows.mask.push_back(x.get<double>() != 0 ? 1 : 0);
  }
  return rows;
}

/// The batch as the executor holds it: rows end with their last valid token. `kept` lists the
/// entries of the padded batch that remain.
struct Trimmed {
  Rows rows;
  std::vector<std::size_t> kept;

  Array of(const Array& padded) const {
    Array values;
    for (const std::size_t i : kept) values.push_back(padded[i]);
    return values;
  }
};

inline Trimmed trim(const Rows& padded) {
  Trimmed trimmed;
  trimmed.rows.padded_width = padded.width();
  for (std::int64_t row = 0; row < padded.count(); ++row) {
    std::int64_t end = padded.begin[row + 1];
    while (end > padded.begin[row] && !padded.valid(end - 1)) --end;
    for (std::int64_t i = padded.begin[row]; i < end; ++i) {
      trimmed.kept.push_back(static_cast<std::size_t>(i));
      trimmed.rows.mask.push_back(padded.valid(i) ? 1 : 0);
    }
    trimmed.rows.begin.push_back(static_cast<std::int64_t>(trimmed.kept.size()));
  }
  return trimmed;
}

struct Tolerance {
  double rtol, atol;
  explicit Tolerance(const Json& file)
      : rtol(file["tolerance"]["rtol"].get<double>()),
        atol(file["tolerance"]["atol"].get<double>()) {}
  double around(double want) const { return atol + rtol * std::abs(want); }
};

inline void expect_scalar(double got, double want, const Tolerance& tolerance,
                          const std::string& what) {
  EXPECT_NEAR(got, want, tolerance.around(want)) << what;
}

/// Where `rows` is given, only its valid entries are compared.
inline void expect_array(const Array& got, const Array& want, const Tolerance& tolerance,
                         const std::string& what, const Rows* rows = nullptr) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (rows != nullptr && !rows->valid(static_cast<std::int64_t>(i))) continue;
    EXPECT_NEAR(got[i], want[i], tolerance.around(want[i])) << what << " entry " << i;
  }
}

/// Every metric that verl reports. Names without a folder get `prefix`, as verl's trainer does.
inline void expect_metrics(const Metrics& got, const Json& want, const Tolerance& tolerance,
                           const std::string& prefix, const std::string& what) {
  EXPECT_EQ(got.size(), want.size()) << what;
  for (const auto& [key, value] : want.items()) {
    const std::string name = key.find('/') == std::string::npos ? prefix + key : key;
    ASSERT_TRUE(got.contains(name)) << what << " " << name;
    expect_scalar(got.at(name), value.get<double>(), tolerance, what + " " + name);
  }
}

template <class T>
std::optional<T> optional(const Json& options, const char* key) {
  if (!options.contains(key) || options[key].is_null()) return std::nullopt;
  return options[key].get<T>();
}

}  // namespace tessera::golden
