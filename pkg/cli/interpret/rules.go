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
	field
}

// field is where a customization has the script of a rule.
type field struct {
	get func(*configv1alpha1.CustomizationRules) string
	// set sets the script; "" removes the rule.
	set func(*configv1alpha1.CustomizationRules, string)
}

// script is what all rules of a customization consist of.
type script struct {
	LuaScript string `json:"luaScript"`
}

// scriptIn returns the field of the rule to which at points.
func scriptIn[T ~struct {
	LuaScript string `json:"luaScript"`
}](at func(*configv1alpha1.CustomizationRules) **T) field {
	return field{
		get: func(c *configv1alpha1.CustomizationRules) string {
			if r := *at(c); r != nil {
				return script(*r).LuaScript
			}
			return ""
		},
		set: func(c *configv1alpha1.CustomizationRules, source string) {
			*at(c) = nil
			if source != "" {
				r := T(script{LuaScript: source})
				*at(c) = &r
			}
		},
	}
}

// rules returns all rules in the order in which they are shown.
func rules() []rule {
	type custom = configv1alpha1.CustomizationRules
	return []rule{
		{configv1alpha1.InterpreterOperationRetain, retainDoc, scriptIn(func(c *custom) **configv1alpha1.LocalValueRetention { return &c.Retention })},
		{configv1alpha1.InterpreterOperationInterpretReplica, replicaDoc, scriptIn(func(c *custom) **configv1alpha1.ReplicaResourceRequirement { return &c.ReplicaResource })},
		{configv1alpha1.InterpreterOperationInterpretComponent, componentDoc, scriptIn(func(c *custom) **configv1alpha1.ComponentResourceRequirement { return &c.ComponentResource })},
		{configv1alpha1.InterpreterOperationReviseReplica, reviseDoc, scriptIn(func(c *custom) **configv1alpha1.ReplicaRevision { return &c.ReplicaRevision })},
		{configv1alpha1.InterpreterOperationInterpretStatus, statusDoc, scriptIn(func(c *custom) **configv1alpha1.StatusReflection { return &c.StatusReflection })},
		{configv1alpha1.InterpreterOperationAggregateStatus, aggregateDoc, scriptIn(func(c *custom) **configv1alpha1.StatusAggregation { return &c.StatusAggregation })},
		{configv1alpha1.InterpreterOperationInterpretHealth, healthDoc, scriptIn(func(c *custom) **configv1alpha1.HealthInterpretation { return &c.HealthInterpretation })},
		{configv1alpha1.InterpreterOperationInterpretDependency, dependencyDoc, scriptIn(func(c *custom) **configv1alpha1.DependencyInterpretation { return &c.DependencyInterpretation })},
	}
}

// The functions that scripts define.
const (
	retainDoc = `
Retain keeps what the member cluster owns.
  desiredObj:  the object as the control plane wants it
  observedObj: the object as it is in the member cluster
  returns:     the object to apply

function Retain(desiredObj, observedObj)
  desiredObj.spec.fieldFoo = observedObj.spec.fieldFoo
  return desiredObj
end`
	replicaDoc = `
InterpretReplica finds how many replicas the object wants and what one needs.
  desiredObj: the object in the control plane
  returns:    the number of replicas, and the requirements of one or nil

local kube = require("kube")
function GetReplicas(desiredObj)
  return desiredObj.spec.replicas, kube.accuratePodRequirements(desiredObj.spec.template)
end`
	componentDoc = `
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
end`
	reviseDoc = `
ReviseReplica sets the number of replicas for one member cluster.
  desiredObj:     the object in the control plane
  desiredReplica: the number of replicas
  returns:        the object with that number

function ReviseReplica(desiredObj, desiredReplica)
  desiredObj.spec.replicas = desiredReplica
  return desiredObj
end`
	statusDoc = `
InterpretStatus picks what is collected of the status.
  observedObj: the object in the member cluster
  returns:     the status

function ReflectStatus(observedObj)
  return observedObj.status
end`
	aggregateDoc = `
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
end`
	healthDoc = `
InterpretHealth judges the health of an object.
  observedObj: the object in the member cluster
  returns:     whether it is healthy

function InterpretHealth(observedObj)
  return observedObj.status.readyReplicas == observedObj.spec.replicas
end`
	dependencyDoc = `
InterpretDependency finds what the object refers to.
  desiredObj: the object in the control plane
  returns:    a list of references: apiVersion, kind, namespace, name or labelSelector

local kube = require("kube")
function GetDependencies(desiredObj)
  return kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace) or {}
end`
)

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
