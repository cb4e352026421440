/* SPDX-License-Identifier: MIT */
/* Words of AppWrapper v1beta2 that make.c writes and read.c reads back. Private to this folder. */
#ifndef KXFS_SPEC_KINDS_APPWRAPPER_MAKE_H
#define KXFS_SPEC_KINDS_APPWRAPPER_MAKE_H

#define APPWRAPPER_RETRIES "workload.codeflare.dev.appwrapper/retryLimit" /* annotation */

#endif
