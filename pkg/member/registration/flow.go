package registration

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const (
	// agentFlowName is the name of the flow schema and of the priority level of agents.
	agentFlowName = "karmada-agents"
	// rolesFlowName is the name of the priority level of the roles of the control plane, and of the flow schema of their
	// requests; rolesWritesName of the one of their writes.
	rolesFlowName, rolesWritesName = "karmada-control-plane", "karmada-control-plane-writes"
	// rolesReviewsName is the name of the flow schema of the reviews that their API servers ask for, rolesElectionName of
	// the one of their leader election.
	rolesReviewsName, rolesElectionName = "karmada-control-plane-reviews", "karmada-control-plane-leader-election"
)

const (
	// The precedences put the schemas in front of those for all users and service
	// accounts, and behind those for the system. The first one that matches is used.
	reviewsPrecedence   = 870
	electionPrecedence  = 880
	writesPrecedence    = 890
	rolesPrecedence     = 895
	agentFlowPrecedence = 900
	// agentShares are the concurrency shares of all agents together, rolesShares those of the roles of the control plane.
	// Kubernetes' own levels have 245 by default, workload-low 100 and global-default 20.
	agentShares, rolesShares = 20, 100
)

// agentFlow bounds the load that agents put on the API server: they share a small
// priority level, and each has a flow of its own, so that one that asks without end
// delays neither users nor other agents.
func agentFlow() []client.Object {
	agents := []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: names.AgentGroup}}}
	schema := flowSchema(agentFlowName, agentFlowName, agentFlowPrecedence, agents, anyResource(flowcontrolv1.VerbAll))
	schema.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType}
	schema.Spec.Rules[0].NonResourceRules = anyURL()
	return []client.Object{priorityLevel(agentFlowName, agentShares, 64, 4), schema}
}

// rolesFlow separates the requests of the roles of the control plane from those of users, so that neither delay the other.
// Their writes for one namespace are one flow, so that a namespace that causes many does not delay those for another one.
// Reviews are exempt: a request that is executed waits for them, also one that holds a seat.
func rolesFlow(users []string) []client.Object {
	subjects := make([]flowcontrolv1.Subject, len(users))
	for i, user := range users {
		subjects[i] = flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}
	}
	create := []string{"create"}
	reviews := flowSchema(rolesReviewsName, flowcontrolv1.PriorityLevelConfigurationNameExempt, reviewsPrecedence, subjects,
		resources(create, "authentication.k8s.io", "tokenreviews"), resources(create, "authorization.k8s.io", "subjectaccessreviews"))
	election := flowSchema(rolesElectionName, "leader-election", electionPrecedence, subjects,
		resources([]string{"get", "create", "update"}, "coordination.k8s.io", "leases"))
	writes := flowSchema(rolesWritesName, rolesFlowName, writesPrecedence, subjects,
		anyResource("create", "update", "patch", "delete"))
	writes.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByNamespaceType}
	all := flowSchema(rolesFlowName, rolesFlowName, rolesPrecedence, subjects, anyResource(flowcontrolv1.VerbAll))
	all.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType}
	all.Spec.Rules[0].NonResourceRules = anyURL()
	return []client.Object{priorityLevel(rolesFlowName, rolesShares, 128, 6), reviews, election, writes, all}
}

// priorityLevel returns a level that queues. It lends half of its seats, and borrows as many as it has.
func priorityLevel(name string, shares, queues, hand int32) client.Object {
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(shares),
				LendablePercent:          new(int32(50)),
				BorrowingLimitPercent:    new(int32(100)),
				LimitResponse: flowcontrolv1.LimitResponse{
					Type:    flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{Queues: queues, HandSize: hand, QueueLengthLimit: 50},
				},
			},
		},
	}
}

func flowSchema(name, level string, precedence int32, subjects []flowcontrolv1.Subject, rules ...flowcontrolv1.ResourcePolicyRule) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			MatchingPrecedence:         precedence,
			Rules:                      []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: subjects, ResourceRules: rules}},
		},
	}
}

func anyResource(verbs ...string) flowcontrolv1.ResourcePolicyRule {
	return resources(verbs, flowcontrolv1.APIGroupAll, flowcontrolv1.ResourceAll)
}

// resources returns the rule of a resource in all namespaces and of the cluster.
func resources(verbs []string, group, resource string) flowcontrolv1.ResourcePolicyRule {
	return flowcontrolv1.ResourcePolicyRule{
		Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}, ClusterScope: true, Namespaces: []string{flowcontrolv1.NamespaceEvery},
	}
}

func anyURL() []flowcontrolv1.NonResourcePolicyRule {
	return []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{flowcontrolv1.VerbAll}, NonResourceURLs: []string{rbacv1.NonResourceAll}}}
}
