package interpreter

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// native is the layer of built-in rules.
type native struct {
	kinds map[schema.GroupVersionKind]*Rules
	other *Rules
}

// Rules returns the built-in rules; every kind has one for its status.
func (n *native) Rules(gvk schema.GroupVersionKind) *Rules {
	if r, ok := n.kinds[gvk]; ok {
		return r
	}
	return n.other
}

func newNative(s settings) *native {
	pods := podRules{priorityClass: s.priorityClass}
	status := statusRules{lenient: s.lenient}
	kinds := map[schema.GroupVersionKind]*Rules{
		appsv1.SchemeGroupVersion.WithKind("Deployment"): {
			Replicas: pods.replicas, Revise: revise("spec", "replicas"), Retain: retainDeployment,
			Reflect: status.deployment, Aggregate: aggregateDeployment, Health: deploymentHealthy,
			Dependencies: podDependencies("spec", "template", "spec"),
		},
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"): {
			Replicas: pods.replicas, Revise: revise("spec", "replicas"),
			Reflect: status.replicaSet, Aggregate: aggregateReplicaSet, Health: replicaSetHealthy,
			Dependencies: podDependencies("spec", "template", "spec"),
		},
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"): {
			Replicas: pods.replicas, Revise: revise("spec", "replicas"),
			Reflect: status.statefulSet, Aggregate: aggregateStatefulSet(s.lenient), Health: deploymentHealthy,
			Dependencies: statefulSetDependencies,
		},
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"): {
			Reflect: status.daemonSet, Aggregate: aggregateDaemonSet, Health: daemonSetHealthy,
			Dependencies: podDependencies("spec", "template", "spec"),
		},
		batchv1.SchemeGroupVersion.WithKind("Job"): {
			Replicas: pods.job, Revise: revise("spec", "parallelism"), Retain: retainJob,
			Reflect: reflectJob, Aggregate: jobs{now: s.now}.aggregate,
			Dependencies: podDependencies("spec", "template", "spec"),
		},
		batchv1.SchemeGroupVersion.WithKind("CronJob"): {
			Aggregate:    aggregateCronJob,
			Dependencies: podDependencies("spec", "jobTemplate", "spec", "template", "spec"),
		},
		networkingv1.SchemeGroupVersion.WithKind("Ingress"): {
			Aggregate: aggregateIngress, Health: ingressHealthy, Dependencies: ingressDependencies,
		},
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"): {
			Reflect: reflectDisruptionBudget, Aggregate: aggregateDisruptionBudget, Health: disruptionBudgetHealthy,
		},
		autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"): {
			Reflect: reflectAutoscaler, Aggregate: aggregateAutoscaler,
		},
		{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ServiceImport"}: {
			Dependencies: serviceImportDependencies,
		},
	}
	for kind, rules := range coreRules(pods) {
		kinds[corev1.SchemeGroupVersion.WithKind(kind)] = rules
	}
	for _, rules := range kinds {
		if rules.Reflect == nil {
			rules.Reflect = reflectWhole
		}
	}
	return &native{kinds: kinds, other: &Rules{Reflect: reflectWhole}}
}

func coreRules(pods podRules) map[string]*Rules {
	return map[string]*Rules{
		"Pod": {
			Replicas: pods.pod, Retain: retainPod,
			Aggregate: aggregatePod, Health: podHealthy,
			Dependencies: podDependencies("spec"),
		},
		"Service": {
			Retain: retainService, Reflect: reflectService, Aggregate: aggregateService, Health: serviceHealthy,
		},
		"ServiceAccount":        {Retain: retainServiceAccount},
		"Secret":                {Retain: retainSecret},
		"PersistentVolumeClaim": {Retain: retainVolumeClaim, Aggregate: aggregateVolumeClaim, Health: volumeClaimHealthy},
		"PersistentVolume":      {Retain: retainVolume, Aggregate: aggregateVolume},
	}
}
