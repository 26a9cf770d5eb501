package registration

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// agentFlowName is the name of the flow schema and of the priority level of agents.
const agentFlowName = "karmada-agents"

const (
	// agentFlowPrecedence puts the schema in front of those for all users and service
	// accounts, and behind those for the system.
	agentFlowPrecedence = 900
	// agentShares are the concurrency shares of all agents together. Kubernetes' own
	// levels have 245 by default, workload-low 100 and global-default 20.
	agentShares = 20
)

// agentFlow bounds the load that agents put on the API server: they share a small
// priority level, and each has a flow of its own, so that one that asks without end
// delays neither users nor other agents.
func agentFlow() []client.Object {
	meta := metav1.ObjectMeta{Name: agentFlowName, Labels: names.SystemLabels()}
	all := []string{flowcontrolv1.ResourceAll}
	return []client.Object{
		&flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: meta,
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: flowcontrolv1.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: new(int32(agentShares)),
					LendablePercent:          new(int32(50)),
					BorrowingLimitPercent:    new(int32(100)),
					LimitResponse: flowcontrolv1.LimitResponse{
						Type:    flowcontrolv1.LimitResponseTypeQueue,
						Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 64, HandSize: 4, QueueLengthLimit: 50},
					},
				},
			},
		},
		&flowcontrolv1.FlowSchema{
			ObjectMeta: meta,
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: agentFlowName},
				MatchingPrecedence:         agentFlowPrecedence,
				DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: names.AgentGroup}}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: all, APIGroups: all, Resources: all, ClusterScope: true, Namespaces: all,
					}},
					NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: all, NonResourceURLs: []string{rbacv1.NonResourceAll}}},
				}},
			},
		},
	}
}
