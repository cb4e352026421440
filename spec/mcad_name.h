/* SPDX-License-Identifier: MIT */
/*
 * Names that only MCAD's objects have: how a job is called, and the variable of a role's host.
 */
#ifndef KXFS_SPEC_MCAD_NAME_H
#define KXFS_SPEC_MCAD_NAME_H

#include "spec/base.h"

/*
 * The name of a job, *RET, which leaves room for what is put behind it for N_ROLES. TorchX's suffix
 * shrinks down to 3 characters, of which there are too few to tell jobs apart: here the app's name is
 * cut before, to *RET_APP_NAME. Both malloc'ed. 0 or -ENOMEM.
 */
int mcad_name_job(const char *app_name, size_t n_roles, const uint64_t random[2],
		  char **ret_app_name, char **ret);
/* The variable that holds the host of replica 0 of ROLE; malloc'ed; NULL: no memory. */
char *mcad_name_hosts_env(const char *role);

#endif
