/* SPDX-License-Identifier: MIT */
/* Words of AppWrapper v1beta2 that make.c writes and read.c reads back. Private to this folder. */
#pragma once

#define APPWRAPPER_RETRIES "workload.codeflare.dev.appwrapper/retryLimit" /* annotation */
