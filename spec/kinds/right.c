/* SPDX-License-Identifier: MIT */
/* The table of rights, the ones without which there is no mount first. */
#include "spec/kinds/right.h"

#include "spec/kinds/kinds.h"
#include "spec/view/view.h"

static const struct spec_right rights[] = {
	{{&spec_volcano}, "batch.volcano.sh", "jobs", {"get", "list", "watch"}, false, NULL},
	{{&spec_mcad, &spec_appwrapper},
	 "workload.codeflare.dev",
	 "appwrappers",
	 {"get", "list", "watch"},
	 false,
	 NULL},
	{{&spec_jobset}, "jobset.x-k8s.io", "jobsets", {"get", "list", "watch"}, false, NULL},
	{{&spec_job}, "batch", "jobs", {"get", "list", "watch"}, false, NULL},
	{{NULL}, "", "pods", {"list", "watch"}, false, NULL},
	{{NULL},
	 "",
	 "pods/log",
	 {"get"},
	 false,
	 "logs of which nothing was captured can't be opened"},
	{{&spec_volcano},
	 "batch.volcano.sh",
	 "jobs",
	 {"create"},
	 false,
	 "no job can be submitted (a mount with -o ro needs none)"},
	{{&spec_volcano},
	 "batch.volcano.sh",
	 "jobs",
	 {"delete"},
	 false,
	 "no job can be cancelled (a mount with -o ro needs none)"},
	{{&spec_mcad, &spec_appwrapper},
	 "workload.codeflare.dev",
	 "appwrappers",
	 {"create"},
	 false,
	 "no job can be submitted (a mount with -o ro needs none)"},
	{{&spec_mcad, &spec_appwrapper},
	 "workload.codeflare.dev",
	 "appwrappers",
	 {"delete"},
	 false,
	 "no job can be cancelled (a mount with -o ro needs none)"},
	{{&spec_appwrapper},
	 "workload.codeflare.dev",
	 "appwrappers",
	 {"patch"},
	 false,
	 "ctl can't suspend and resume"},
	{{&spec_jobset},
	 "jobset.x-k8s.io",
	 "jobsets",
	 {"create"},
	 false,
	 "no job can be submitted (a mount with -o ro needs none)"},
	{{&spec_jobset},
	 "jobset.x-k8s.io",
	 "jobsets",
	 {"delete"},
	 false,
	 "no job can be cancelled (a mount with -o ro needs none)"},
	{{&spec_jobset},
	 "jobset.x-k8s.io",
	 "jobsets",
	 {"patch"},
	 false,
	 "ctl can't suspend and resume"},
	{{&spec_job},
	 "batch",
	 "jobs",
	 {"create"},
	 false,
	 "no job can be submitted (a mount with -o ro needs none)"},
	{{&spec_job},
	 "batch",
	 "jobs",
	 {"delete"},
	 false,
	 "no job can be cancelled (a mount with -o ro needs none)"},
	{{&spec_job}, "batch", "jobs", {"patch"}, false, "ctl can't suspend, resume and terminate"},
	{{&spec_volcano}, "bus.volcano.sh", "commands", {"create"}, false, "ctl does nothing"},
	{{&spec_volcano},
	 "scheduling.volcano.sh",
	 "podgroups",
	 {"list", "watch"},
	 false,
	 "why can't tell of gangs, and of jobs that the scheduler does not let in"},
	{{NULL},
	 "",
	 "events",
	 {"list", "watch"},
	 false,
	 "there is no events file; why can't tell of pods that can't be made, of volumes that "
	 "can't be mounted, of queues and a cluster that are full"},
	{{NULL}, SPEC_METRICS_GROUP, "pods", {"list"}, false, "usage has only what was requested"},
	{{&spec_volcano},
	 "scheduling.volcano.sh",
	 "queues",
	 {"list", "watch"},
	 true,
	 "queues/ has at most the queue of this mount"},
	{{&spec_appwrapper, &spec_jobset, &spec_job},
	 "kueue.x-k8s.io",
	 "workloads",
	 {"list", "watch"},
	 false,
	 "why can't tell what a job in a queue of Kueue waits for, nor that it was deactivated; ctl "
	 "can't suspend and resume it"},
	{{&spec_appwrapper, &spec_jobset, &spec_job},
	 "kueue.x-k8s.io",
	 "workloads",
	 {"patch"},
	 false,
	 "ctl can't suspend and resume jobs in a queue of Kueue"},
	{{&spec_appwrapper, &spec_jobset, &spec_job},
	 "kueue.x-k8s.io",
	 "localqueues",
	 {"list", "watch"},
	 false,
	 "there is no queues/; why can't tell who has stopped a queue"},
	{{&spec_appwrapper, &spec_jobset, &spec_job},
	 "kueue.x-k8s.io",
	 "localqueues",
	 {"get"},
	 false,
	 "ctl moves a job to a queue that is not there too"},
	{{&spec_appwrapper, &spec_jobset, &spec_job},
	 "visibility.kueue.x-k8s.io",
	 "localqueues/pendingworkloads",
	 {"get"},
	 false,
	 "status has no queue_position"},
	{{&spec_appwrapper, &spec_jobset, &spec_job},
	 "kueue.x-k8s.io",
	 "clusterqueues",
	 {"list", "watch"},
	 true,
	 "queues/ has no nominal quota; why can't tell of StrictFIFO, and less of cluster queues that are "
	 "stopped"},
	{{&spec_appwrapper, &spec_jobset, &spec_job},
	 "kueue.x-k8s.io",
	 "workloadpriorityclasses",
	 {"get"},
	 true,
	 "ctl takes a priority class that is not there too, with which Kueue looks at the job no more"},
};

const struct spec_right *spec_right_at(size_t i)
{
	return i < array_size(rights) ? &rights[i] : NULL;
}

const char *spec_right_cost(const char *resource)
{
	for (size_t i = 0; i < array_size(rights); i++)
		if (streq(rights[i].resource, resource) && streq(rights[i].verbs[0], "list") &&
		    rights[i].verbs[1])
			return rights[i].cost;
	return NULL;
}

bool spec_right_is_for(const struct spec_right *right, const struct spec_kind *kind)
{
	for (size_t i = 0; i < array_size(right->kinds); i++)
		if (right->kinds[i] == kind)
			return true;
	return !right->kinds[0];
}
