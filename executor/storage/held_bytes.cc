#include "executor/storage/held_bytes.h"

namespace tessera {

HeldBytes& held_host_bytes() {
  static HeldBytes all;
  return all;
}

}  // namespace tessera
