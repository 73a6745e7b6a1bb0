// One value for one key of another tool's configuration, and the three spellings of it.
//
// Plain values and pure functions. Every name that a user chose passes through one of these
// functions before it enters a script or a YAML file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/document.h"

namespace tessera {

struct Setting {
  std::string key;  // dotted
  Node value;       // a scalar or a list of scalars
  std::string comment;
  bool added = false;  // Hydra's "+": a key that the tool's own files do not list
};
using Settings = std::vector<Setting>;

/// The setting of `key`, or nullptr.
const Setting* find(const Settings& settings, std::string_view key);

/// A word of a POSIX shell that stands for exactly `text`: as it is where that is safe, else
/// quoted.
std::string shell_word(std::string_view text);

/// A YAML 1.2 scalar or flow list; strings in double quotes unless they are plain words.
std::string yaml_scalar(const Node& value);
std::string yaml_text(std::string_view text);

/// "key=value" of Hydra's override grammar (hydra-core 1.3), not yet quoted for a shell.
std::string hydra_override(const Setting& setting);

/// Nested YAML of dotted keys in their order, comments behind the values.
std::string nested_yaml(const Settings& settings);

/// Text as comment lines: "# " before each, wrapped at about 96 columns.
std::string comment_lines(std::string_view text, std::string_view prefix = "# ");

}  // namespace tessera
