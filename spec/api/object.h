/* SPDX-License-Identifier: MIT */
/*
 * One object of a cluster, as a server sends it: its text as YAML, and what kxfs wrote into it, read
 * back. Anybody may have changed that since.
 */
#pragma once

#include "spec/base/base.h"

/* Was the object made by the write SUBMISSION (annotation kxfs/submission)? */
bool spec_object_is_submission(const char *json, size_t len, const char *submission);

/* The object that a reply is to bring; NULL: any. */
struct spec_object_wanted {
	const char *kind;
	const char *name;
	const char *uid;
	/* The submission that made it, if it says so: a webhook may have taken the annotations off. */
	const char *submission;
};

/* Is the text one object of a cluster, and the one that is wanted? A Status is none. */
bool spec_object_is(const char *json, size_t len, const struct spec_object_wanted *w);
/* Is the text a Status that tells of success? */
bool spec_object_is_success(const char *json, size_t len);
/*
 * Is version A of an object or a list older than version B, or the same? Versions are numbers that only grow; others
 * are not compared.
 */
bool spec_version_is_up_to(const char *a, const char *b);
/*
 * The "name" or "uid" (KEY) in the object's metadata, at most 254 bytes, malloc'ed, as it is written there; "": none.
 */
char *spec_object_name(const char *json, size_t len, const char *key);

/* What a list of pods tells about the run of one container. */
struct spec_listed_run {
	char *uid;    /* uid of the first pod of the list, malloc'ed; "": the list has none */
	int restarts; /* runs of the container before its newest; -1: its status does not say */
	bool between; /* the newest run has ended, and the container waits to run again */
};

/* Find the run of CONTAINER, whatever sort of container it is. 0, or -EINVAL: the text is no list. */
int spec_object_listed_run(const char *json, size_t len, const char *container,
			   struct spec_listed_run *ret);

/*
 * The AppDef in annotation kxfs/appdef. 0 and a malloc'ed, NUL-terminated *RET; -ENOENT: it has none;
 * -EINVAL.
 */
int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len);

/*
 * The object without its managedFields as YAML, for manifest.yaml. 0 and a malloc'ed, NUL-terminated
 * *RET; -EINVAL.
 */
int spec_object_yaml(const char *json, size_t len, char **ret, size_t *ret_len);
