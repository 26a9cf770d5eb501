package interpret

import (
	"fmt"
	"strings"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// rule is one rule of a customization.
type rule struct {
	operation configv1alpha1.InterpreterOperation
	// doc describes the function that the script has to define.
	doc string
	get func(*configv1alpha1.CustomizationRules) string
	// set sets the script; "" takes the rule away.
	set func(*configv1alpha1.CustomizationRules, string)
}

// rules returns all rules in the order in which they are shown.
func rules() []rule {
	return []rule{retainRule(), replicaRule(), componentRule(), reviseRule(), statusRule(), aggregateRule(), healthRule(), dependencyRule()}
}

func retainRule() rule {
	type script = configv1alpha1.LocalValueRetention
	return rule{
		operation: configv1alpha1.InterpreterOperationRetain,
		doc: `
Retain keeps what the member cluster owns.
  desiredObj:  the object as the control plane wants it
  observedObj: the object as it is in the member cluster
  returns:     the object to apply

function Retain(desiredObj, observedObj)
  desiredObj.spec.fieldFoo = observedObj.spec.fieldFoo
  return desiredObj
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.Retention == nil {
				return ""
			}
			return c.Retention.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.Retention = nil
			if s != "" {
				c.Retention = &script{LuaScript: s}
			}
		},
	}
}

func replicaRule() rule {
	type script = configv1alpha1.ReplicaResourceRequirement
	return rule{
		operation: configv1alpha1.InterpreterOperationInterpretReplica,
		doc: `
InterpretReplica finds how many replicas the object wants and what one needs.
  desiredObj: the object in the control plane
  returns:    the number of replicas, and the requirements of one or nil

local kube = require("kube")
function GetReplicas(desiredObj)
  return desiredObj.spec.replicas, kube.accuratePodRequirements(desiredObj.spec.template)
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.ReplicaResource == nil {
				return ""
			}
			return c.ReplicaResource.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.ReplicaResource = nil
			if s != "" {
				c.ReplicaResource = &script{LuaScript: s}
			}
		},
	}
}

func componentRule() rule {
	type script = configv1alpha1.ComponentResourceRequirement
	return rule{
		operation: configv1alpha1.InterpreterOperationInterpretComponent,
		doc: `
InterpretComponent finds the pod templates of an object that has several.
  desiredObj: the object in the control plane
  returns:    a list of components: name, replicas, replicaRequirements

local kube = require("kube")
function GetComponents(desiredObj)
  local components = {}
  for i = 1, #desiredObj.spec.groups do
    local group = desiredObj.spec.groups[i]
    components[i] = {name = group.name, replicas = group.replicas,
      replicaRequirements = kube.accuratePodRequirements(group.template)}
  end
  return components
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.ComponentResource == nil {
				return ""
			}
			return c.ComponentResource.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.ComponentResource = nil
			if s != "" {
				c.ComponentResource = &script{LuaScript: s}
			}
		},
	}
}

func reviseRule() rule {
	type script = configv1alpha1.ReplicaRevision
	return rule{
		operation: configv1alpha1.InterpreterOperationReviseReplica,
		doc: `
ReviseReplica sets the number of replicas for one member cluster.
  desiredObj:     the object in the control plane
  desiredReplica: the number of replicas
  returns:        the object with that number

function ReviseReplica(desiredObj, desiredReplica)
  desiredObj.spec.replicas = desiredReplica
  return desiredObj
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.ReplicaRevision == nil {
				return ""
			}
			return c.ReplicaRevision.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.ReplicaRevision = nil
			if s != "" {
				c.ReplicaRevision = &script{LuaScript: s}
			}
		},
	}
}

func statusRule() rule {
	type script = configv1alpha1.StatusReflection
	return rule{
		operation: configv1alpha1.InterpreterOperationInterpretStatus,
		doc: `
InterpretStatus picks what is collected of the status.
  observedObj: the object in the member cluster
  returns:     the status

function ReflectStatus(observedObj)
  return observedObj.status
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.StatusReflection == nil {
				return ""
			}
			return c.StatusReflection.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.StatusReflection = nil
			if s != "" {
				c.StatusReflection = &script{LuaScript: s}
			}
		},
	}
}

func aggregateRule() rule {
	type script = configv1alpha1.StatusAggregation
	return rule{
		operation: configv1alpha1.InterpreterOperationAggregateStatus,
		doc: `
AggregateStatus adds up the statuses that were collected.
  desiredObj:  the object in the control plane
  statusItems: a list with clusterName, status, applied, appliedMessage and health of
               each cluster, or nil
  returns:     the object with the new status

function AggregateStatus(desiredObj, statusItems)
  local ready = 0
  for i = 1, #statusItems do
    ready = ready + (statusItems[i].status.readyReplicas or 0)
  end
  desiredObj.status = {readyReplicas = ready}
  return desiredObj
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.StatusAggregation == nil {
				return ""
			}
			return c.StatusAggregation.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.StatusAggregation = nil
			if s != "" {
				c.StatusAggregation = &script{LuaScript: s}
			}
		},
	}
}

func healthRule() rule {
	type script = configv1alpha1.HealthInterpretation
	return rule{
		operation: configv1alpha1.InterpreterOperationInterpretHealth,
		doc: `
InterpretHealth judges the health of an object.
  observedObj: the object in the member cluster
  returns:     whether it is healthy

function InterpretHealth(observedObj)
  return observedObj.status.readyReplicas == observedObj.spec.replicas
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.HealthInterpretation == nil {
				return ""
			}
			return c.HealthInterpretation.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.HealthInterpretation = nil
			if s != "" {
				c.HealthInterpretation = &script{LuaScript: s}
			}
		},
	}
}

func dependencyRule() rule {
	type script = configv1alpha1.DependencyInterpretation
	return rule{
		operation: configv1alpha1.InterpreterOperationInterpretDependency,
		doc: `
InterpretDependency finds what the object refers to.
  desiredObj: the object in the control plane
  returns:    a list of references: apiVersion, kind, namespace, name or labelSelector

local kube = require("kube")
function GetDependencies(desiredObj)
  return kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace) or {}
end`,
		get: func(c *configv1alpha1.CustomizationRules) string {
			if c.DependencyInterpretation == nil {
				return ""
			}
			return c.DependencyInterpretation.LuaScript
		},
		set: func(c *configv1alpha1.CustomizationRules, s string) {
			c.DependencyInterpretation = nil
			if s != "" {
				c.DependencyInterpretation = &script{LuaScript: s}
			}
		},
	}
}

func operationNames() []string {
	var out []string
	for _, r := range rules() {
		out = append(out, string(r.operation))
	}
	return out
}

// findRule returns the rule of an operation, in whatever case it is written.
func findRule(operation string) (rule, error) {
	for _, r := range rules() {
		if strings.EqualFold(string(r.operation), operation) {
			return r, nil
		}
	}
	return rule{}, fmt.Errorf("operation %s is not supported. Use one of: %s", operation, strings.Join(operationNames(), ", "))
}
