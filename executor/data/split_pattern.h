// The regular expression that cuts text into words before byte-pair merging.
//
// Hugging Face's tokenizers match with Oniguruma; here PCRE2 in Unicode mode, with \s spelled out
// as the White_Space property (PCRE2's own \s also holds U+180E), and with the general categories
// of Unicode 16, as tokenizers 0.23 has them, whatever PCRE2's tables are. Immutable once compiled;
// find() may be called from any number of threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

class SplitPattern {
 public:
  /// nullopt with a Problem (the expression's error and offset) when it does not compile.
  static std::optional<SplitPattern> compile(const std::string& pattern, const std::string& file,
                                             const std::string& place, Problems& problems);

  /// `text` cut into matches and what lies between them, in order, nothing empty ("Isolated").
  /// Precondition: valid UTF-8. Throws Error(bad_input) when matching exceeds PCRE2's limits.
  std::vector<std::string_view> isolate(std::string_view text) const;

 private:
  std::shared_ptr<const void> code_;
};

}  // namespace tessera
