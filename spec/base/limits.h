/* SPDX-License-Identifier: MIT */
/*
 * Every bound on data from outside, in one place. A document or a reply beyond a bound is refused
 * with the bound in the message, never silently truncated.
 */
#pragma once

#define SPEC_MAX_FILE	     (1u << 20)	    /* bytes of a submitted file */
#define SPEC_MAX_DEPTH	     64		    /* nesting of maps and lists */
#define SPEC_MAX_EXPANDED    (1u << 20)	    /* bytes that aliases may expand to */
#define SPEC_MAX_NODES	     200000	    /* nodes of a document, aliases expanded */
#define SPEC_MAX_ERRORS	     20		    /* errors reported per document */
#define SPEC_MAX_OBJECT	     (1400u * 1024) /* bytes of an object sent; the limit of etcd */
#define SPEC_MAX_APPDEF_NOTE 32768	    /* bytes of annotation kxfs/appdef */
#define SPEC_MAX_NAME	     63		    /* a DNS label: names of jobs, tasks and pods */
#define SPEC_MAX_REPLICAS    10000	    /* replicas of one job, all roles together */
#define SPEC_MAX_LIMIT	     (3650 * 86400) /* seconds of time_limit and ttl */
#define SPEC_MAX_SCRATCH     (4u << 20)	    /* bytes of a file in submit/ that is not submitted */
#define SPEC_MAX_SCRATCH_ALL (64u << 20)    /* bytes of all files in submit/ */
#define SPEC_MAX_WATCHED     (8u << 20)	    /* bytes of one object from a server, in memory */
#define SPEC_MAX_LISTED	     200000	    /* objects of one list of a server */
#define SPEC_MAX_PAGE_MIB    512	    /* MiB of one page of such a list */
