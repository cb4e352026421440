/* SPDX-License-Identifier: MIT */
/*
 * The named resources of TorchX. A resource "aws_TYPE" also requests a node of the instance type
 * TYPE. Its memory is 96 % of the machine's memory in MiB. But like TorchX, kxfs uses this number
 * as decimal megabytes.
 */
#include "spec/app/app_value.h"

#include <errno.h>
#include <strings.h>

#include "spec/base/mem.h"

struct named {
	const char *name;
	int cpu, gpu, mem_mb;
	int efa, neuron; /* numbers of devices */
};

static const struct named table[] = {
	{"NULL", -1, -1, -1, 0, 0},
	{"MISSING", -1, -1, -1, 0, 0},
	/* TorchX 0.7.0 */
	{"gpu.small", 8, 1, 32768, 0, 0},
	{"gpu.medium", 16, 2, 65536, 0, 0},
	{"gpu.large", 32, 4, 131072, 0, 0},
	{"gpu.xlarge", 64, 8, 262144, 0, 0},
	{"cpu.nano", 1, 0, 512, 0, 0},
	{"cpu.micro", 1, 0, 1024, 0, 0},
	{"cpu.small", 1, 0, 2048, 0, 0},
	{"cpu.medium", 2, 0, 4096, 0, 0},
	{"cpu.large", 2, 0, 8192, 0, 0},
	{"cpu.xlarge", 8, 0, 32768, 0, 0},
	{"aws_t3.medium", 2, 0, 3932, 0, 0},
	{"aws_m5.2xlarge", 8, 0, 31456, 0, 0},
	{"aws_p3.2xlarge", 8, 1, 59963, 0, 0},
	{"aws_p3.8xlarge", 32, 4, 239852, 0, 0},
	{"aws_p3.16xlarge", 64, 8, 479704, 0, 0},
	{"aws_p3dn.24xlarge", 96, 8, 754944, 1, 0},
	{"aws_p4d.24xlarge", 96, 8, 1132416, 4, 0},
	{"aws_p4de.24xlarge", 96, 8, 1132416, 4, 0},
	{"aws_p5.48xlarge", 192, 8, 2013184, 32, 0},
	{"aws_g4dn.xlarge", 4, 1, 15728, 0, 0},
	{"aws_g4dn.2xlarge", 8, 1, 31456, 0, 0},
	{"aws_g4dn.4xlarge", 16, 1, 62912, 0, 0},
	{"aws_g4dn.8xlarge", 32, 1, 125824, 1, 0},
	{"aws_g4dn.16xlarge", 64, 1, 251648, 1, 0},
	{"aws_g4dn.12xlarge", 48, 4, 188736, 1, 0},
	{"aws_g4dn.metal", 96, 8, 377472, 1, 0},
	{"aws_g5.xlarge", 4, 1, 15728, 0, 0},
	{"aws_g5.2xlarge", 8, 1, 31456, 0, 0},
	{"aws_g5.4xlarge", 16, 1, 62912, 0, 0},
	{"aws_g5.8xlarge", 32, 1, 125824, 1, 0},
	{"aws_g5.16xlarge", 64, 1, 251648, 1, 0},
	{"aws_g5.12xlarge", 48, 4, 188736, 1, 0},
	{"aws_g5.24xlarge", 96, 4, 377472, 1, 0},
	{"aws_g5.48xlarge", 192, 8, 754944, 1, 0},
	{"aws_trn1.2xlarge", 8, 0, 31456, 0, 1},
	{"aws_trn1.32xlarge", 128, 0, 503296, 8, 16},
	/* versions of TorchX after 0.7.0 */
	{"aws_m5.large", 2, 0, 7864, 0, 0},
	{"aws_m5.xlarge", 4, 0, 15728, 0, 0},
	{"aws_m5.4xlarge", 16, 0, 62912, 0, 0},
	{"aws_m5.8xlarge", 32, 0, 125824, 0, 0},
	{"aws_m5.12xlarge", 48, 0, 188736, 0, 0},
	{"aws_m5.16xlarge", 64, 0, 251648, 0, 0},
	{"aws_m5.24xlarge", 96, 0, 377472, 0, 0},
	{"aws_m5.metal", 96, 0, 377472, 0, 0},
	{"aws_m5d.large", 2, 0, 7864, 0, 0},
	{"aws_m5d.xlarge", 4, 0, 15728, 0, 0},
	{"aws_m5d.2xlarge", 8, 0, 31456, 0, 0},
	{"aws_m5d.4xlarge", 16, 0, 62912, 0, 0},
	{"aws_m5d.8xlarge", 32, 0, 125824, 0, 0},
	{"aws_m5d.12xlarge", 48, 0, 188736, 0, 0},
	{"aws_m5d.16xlarge", 64, 0, 251648, 0, 0},
	{"aws_m5d.24xlarge", 96, 0, 377472, 0, 0},
	{"aws_m5d.metal", 96, 0, 377472, 0, 0},
	{"aws_c5.18xlarge", 72, 0, 139586, 0, 0},
	{"aws_p5e.48xlarge", 192, 8, 2013184, 32, 0},
	{"aws_p5en.48xlarge", 192, 8, 2013184, 16, 0},
	{"aws_p6-b200.48xlarge", 192, 8, 2013184, 8, 0},
	{"aws_p6-b300.48xlarge", 192, 8, 4026368, 16, 0},
	{"aws_p6e-gb200.36xlarge", 144, 4, 943680, 16, 0},
	{"aws_g6e.xlarge", 4, 1, 31456, 0, 0},
	{"aws_g6e.2xlarge", 8, 1, 62912, 0, 0},
	{"aws_g6e.4xlarge", 16, 1, 125824, 0, 0},
	{"aws_g6e.8xlarge", 32, 1, 251648, 0, 0},
	{"aws_g6e.16xlarge", 64, 1, 503296, 0, 0},
	{"aws_g6e.12xlarge", 48, 4, 377472, 0, 0},
	{"aws_g6e.24xlarge", 96, 4, 754944, 2, 0},
	{"aws_g6e.48xlarge", 192, 8, 1509888, 4, 0},
	{"aws_inf2.xlarge", 4, 0, 15728, 0, 1},
	{"aws_inf2.8xlarge", 32, 0, 125824, 0, 1},
	{"aws_inf2.24xlarge", 96, 0, 377472, 0, 6},
	{"aws_inf2.48xlarge", 192, 0, 754944, 0, 12},
};

static void add_device(struct spec_counts *devices, const char *key, int count)
{
	if (count == 0)
		return;
	devices->v = mem_grow(devices->v, devices->n + 1, sizeof(*devices->v));
	devices->v[devices->n++] = (struct spec_count){.key = text_copy(key), .value = count};
}

int spec_named_resource(const char *name, struct spec_resource *ret, const char **suggestion)
{
	static const char aws[] = "aws_";
	const struct named *named = NULL;
	struct spec_map *labels = &ret->capabilities;

	*suggestion = NULL;
	for (size_t i = 0; i < array_size(table) && !named; i++)
		named = streq(table[i].name, name) ? &table[i] : NULL;
	for (size_t i = 0; i < array_size(table) && !named; i++)
		named = strcasecmp(table[i].name, name) == 0 ? &table[i] : NULL;
	if (!named) {
		const char *words[array_size(table) + 1] = {NULL};

		for (size_t i = 0; i < array_size(table); i++)
			words[i] = table[i].name;
		*suggestion = spec_suggest(name, words);
		return -ENOENT;
	}
	*ret = (struct spec_resource){.cpu = named->cpu,
				      .gpu = named->gpu,
				      .mem_mb = named->mem_mb};
	if (strncmp(named->name, aws, strlen(aws)) == 0) {
		labels->v = new0(struct spec_pair);
		labels->v[labels->n++] =
			(struct spec_pair){text_copy("node.kubernetes.io/instance-type"),
					   text_copy(named->name + strlen(aws))};
	}
	add_device(&ret->devices, "vpc.amazonaws.com/efa", named->efa);
	add_device(&ret->devices, "aws.amazon.com/neurondevice", named->neuron);
	return 0;
}
