/* SPDX-License-Identifier: MIT */
/* What JobSet calls things in labels and annotations. Private to spec/kinds/jobset. */
#ifndef KXFS_SPEC_KINDS_JOBSET_NAMES_H
#define KXFS_SPEC_KINDS_JOBSET_NAMES_H

#define JOBSET_LABEL "jobset.sigs.k8s.io/"

#endif
