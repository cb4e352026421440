// SPDX-License-Identifier: MIT

//go:build parts

// The programs of the tests' Kubernetes. Imported by nothing and built by build.py; being named
// here keeps them, and the versions of all that they need, in go.mod and go.sum.
package parts

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "helm.sh/helm/v3/cmd/helm"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
	_ "sigs.k8s.io/kustomize/kustomize/v5"
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
