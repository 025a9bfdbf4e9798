// The families: one function each, listed in arch_list.inc.
#pragma once

#include "model/arch.h"
#include "model/blocks/blocks.h"

namespace minfer::archs {

#define MINFER_ARCH(name) Arch name();
#include "model/arch_list.inc"
#undef MINFER_ARCH

}  // namespace minfer::archs
