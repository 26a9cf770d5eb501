package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronFederatedHPA scales a workload, or sets the bounds of a FederatedHPA, on a
// schedule.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=cronfederatedhpas,scope=Namespaced,shortName=cronfhpa,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name="REFERENCE-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name="REFERENCE-NAME",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type CronFederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the scale target and the rules.
	// +required
	Spec CronFederatedHPASpec `json:"spec"`

	// Status is the execution history of the rules.
	// +optional
	Status CronFederatedHPAStatus `json:"status"`
}

// CronFederatedHPAList is a list of CronFederatedHPA.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type CronFederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronFederatedHPA `json:"items"`
}

// CronFederatedHPASpec holds the scale target and the rules.
type CronFederatedHPASpec struct {
	// ScaleTargetRef refers to the workload or FederatedHPA to scale.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// Rules are the schedules and what each sets.
	// +required
	Rules []CronFederatedHPARule `json:"rules"`
}

// CronFederatedHPARule is a schedule and what it sets.
type CronFederatedHPARule struct {
	// Name of the rule. It is unique in the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	Name string `json:"name"`

	// Schedule is a cron expression, such as "0 9 * * 1-5".
	// +required
	Schedule string `json:"schedule"`

	// TargetReplicas is the number of replicas that a workload is scaled to.
	// +optional
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`

	// TargetMinReplicas is the minReplicas that a FederatedHPA is set to.
	// +optional
	TargetMinReplicas *int32 `json:"targetMinReplicas,omitempty"`

	// TargetMaxReplicas is the maxReplicas that a FederatedHPA is set to.
	// +optional
	TargetMaxReplicas *int32 `json:"targetMaxReplicas,omitempty"`

	// Suspend true suspends the rule. Default false.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// TimeZone of the schedule, an IANA name. Nil means the time zone of the control
	// plane.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// SuccessfulHistoryLimit is the number of successful executions kept. Default 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +optional
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`

	// FailedHistoryLimit is the number of failed executions kept. Default 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
}

// CronFederatedHPAStatus is the execution history of the rules.
type CronFederatedHPAStatus struct {
	// ExecutionHistories are the histories, one for each rule.
	// +optional
	ExecutionHistories []ExecutionHistory `json:"executionHistories,omitempty"`
}

// ExecutionHistory is the history of one rule.
type ExecutionHistory struct {
	// RuleName names the rule.
	// +required
	RuleName string `json:"ruleName"`

	// NextExecutionTime is when the rule runs next.
	// +optional
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`

	// SuccessfulExecutions are the last successful executions.
	// +optional
	SuccessfulExecutions []SuccessfulExecution `json:"successfulExecutions,omitempty"`

	// FailedExecutions are the last failed executions.
	// +optional
	FailedExecutions []FailedExecution `json:"failedExecutions,omitempty"`
}

// SuccessfulExecution is a successful execution of a rule.
type SuccessfulExecution struct {
	// ScheduleTime is when the execution was scheduled for.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when the rule ran.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// AppliedReplicas is the number of replicas that the workload was scaled to.
	// +optional
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`

	// AppliedMaxReplicas is the maxReplicas that the FederatedHPA was set to.
	// +optional
	AppliedMaxReplicas *int32 `json:"appliedMaxReplicas,omitempty"`

	// AppliedMinReplicas is the minReplicas that the FederatedHPA was set to.
	// +optional
	AppliedMinReplicas *int32 `json:"appliedMinReplicas,omitempty"`
}

// FailedExecution is a failed execution of a rule.
type FailedExecution struct {
	// ScheduleTime is when the execution was scheduled for.
	// +required
	ScheduleTime *metav1.Time `json:"scheduleTime"`

	// ExecutionTime is when the rule ran.
	// +required
	ExecutionTime *metav1.Time `json:"executionTime"`

	// Message is the reason of the failure.
	// +required
	Message string `json:"message"`
}
