/* SPDX-License-Identifier: MIT */
/* Names that JobSet uses in labels and annotations. Private to spec/kinds/jobset. */
#pragma once
