// Package kubelite runs a whole Kubernetes cluster in one process: etcd, kube-apiserver, kube-controller-manager
// and, when it has nodes, kube-scheduler and nodes simulated by kwok.
//
// It is the only package that imports k8s.io/kubernetes and etcd's server. The packages of Kubernetes keep global
// state, so a process can run one cluster only, once.
package kubelite
