/* SPDX-License-Identifier: MIT */
/* All bounds on documents and replies from outside. An error about a bound contains the bound. */
#pragma once

#define SPEC_MAX_FILE	  (1u << 20) /* bytes of a submitted file */
#define SPEC_MAX_DEPTH	  64	     /* levels of nested maps and lists */
#define SPEC_MAX_EXPANDED (1u << 20) /* bytes of all copies that a YAML document's aliases make */
/* nodes of a YAML document after its aliases are expanded */
#define SPEC_MAX_NODES	     200000
#define SPEC_MAX_ERRORS	     20		    /* errors reported per document */
#define SPEC_MAX_OBJECT	     (1400u * 1024) /* bytes of an object that kxfs sends; etcd's limit */
#define SPEC_MAX_APPDEF_NOTE 32768	    /* bytes of the annotation kxfs/appdef */
#define SPEC_MAX_NAME	     63		    /* bytes of the name of a job, task or pod */
#define SPEC_MAX_REPLICAS    10000	    /* replicas of one job, all roles together */
#define SPEC_MAX_LIMIT	     (3650 * 86400) /* the longest time_limit or ttl, in seconds */
#define SPEC_MAX_SCRATCH     (4u << 20)	    /* bytes of an unsubmitted file in submit/ */
#define SPEC_MAX_SCRATCH_ALL (64u << 20)    /* bytes of all unsubmitted files together */
#define SPEC_MAX_WATCHED     (8u << 20)	    /* bytes of one object that a server sends */
#define SPEC_MAX_LISTED	     200000	    /* objects in one list from a server */
#define SPEC_MAX_PAGE_MIB    512	    /* MiB of one page of a list */
