/* SPDX-License-Identifier: MIT */
/* What JobSet calls things in labels and annotations. Private to spec/kinds/jobset. */
#pragma once
