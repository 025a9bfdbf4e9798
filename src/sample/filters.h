// The stages that drop candidates. Each leaves at least one of a list that is not empty.
#pragma once

#include "sample/candidates.h"

namespace minfer {

void keep_top_n_sigma(Candidates& c, float n);               // Source: Tang et al. 2024, "Top-n-sigma"
void keep_typical(Candidates& c, float p, size_t min_keep);  // Source: Meister et al. 2022
void keep_top_p(Candidates& c, float p, size_t min_keep);    // Source: Holtzman et al. 2019
void keep_min_p(Candidates& c, float p, size_t min_keep);    // Source: Nguyen et al. 2024
// "Exclude top choices", once chance has decided that it happens.
void drop_top_choices(Candidates& c, float threshold, size_t min_keep);

}  // namespace minfer
