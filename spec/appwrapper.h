/* SPDX-License-Identifier: MIT */
/*
 * Words of AppWrapper v1beta2 that are written when one is made, and read back. Private to appwrapper.c
 * and view_appwrapper.c.
 */
#ifndef KXFS_SPEC_APPWRAPPER_H
#define KXFS_SPEC_APPWRAPPER_H

#define APPWRAPPER_QUEUE   "kueue.x-k8s.io/queue-name"			  /* label */
#define APPWRAPPER_RETRIES "workload.codeflare.dev.appwrapper/retryLimit" /* annotation */

#endif
