package autoscaling

import (
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

var errNoReplicas = errors.New("failed to get replicas in any of clusters, possibly because all of clusters are not ready")

// Stage is a part of a pass that can fail before replicas are computed.
type Stage int

// The stages: those that the caller goes through, then those of Evaluate.
const (
	// Version parses the API version of the target.
	Version Stage = iota
	// Template reads the target.
	Template
	// FindBinding finds the binding of the target.
	FindBinding
	// FindClusters reads the clusters of the binding.
	FindClusters
	// Mapping finds the resource of the target's kind.
	Mapping
	// TemplateScale reads the Scale of the target in the control plane.
	TemplateScale

	stageReplicas
	stageBounds
)

// stageTexts are the texts of a failure.
type stageTexts struct {
	// reason is that of the condition AbleToScale, event that of the event.
	reason, event string
	// message is that of the condition, wrap is put before the error.
	message, wrap string
}

func (s Stage) texts(target string) stageTexts {
	const noScale = "FailedGetScale"
	t := stageTexts{noScale, noScale, "the HPA controller was unable to get the target's current scale: %v", ""}
	switch s {
	case Version:
		t.wrap = "invalid API version in scale target reference: "
	case Mapping:
		t.wrap = "unable to determine resource for scale target reference: "
	case stageReplicas, TemplateScale:
		t.wrap = "failed to query scale subresource for " + target + ": "
	case Template:
		const reason = "FailedGetScaleTargetRef"
		t = stageTexts{reason, reason, "the HPA controller was unable to get the target reference object: %v", "failed to get scale target reference: "}
	case FindBinding:
		t = stageTexts{"FailedGetBinding", "FailedGetBindings", "the HPA controller was unable to get the binding by scaleTargetRef: %v", ""}
	case FindClusters:
		const reason = "FailedGetTargetClusters"
		t = stageTexts{reason, reason, "the HPA controller was unable to get the target clusters from binding: %v", ""}
	case stageBounds:
		const reason = "InvalidBounds"
		t = stageTexts{reason, reason, "%v", ""}
	}
	return t
}

// Fail returns the verdict of a pass that ended early.
func Fail(h *autoscalingv1alpha1.FederatedHPA, now time.Time, stage Stage, err error) *Verdict {
	return newVerdict(h, now, History{}).fail(stage, err)
}

func (v *Verdict) fail(s Stage, err error) *Verdict {
	t := s.texts(v.target)
	v.Report.event(corev1.EventTypeWarning, t.event, err.Error())
	v.Report.condition(autoscalingv2.AbleToScale, corev1.ConditionFalse, t.reason, t.message, err)
	v.Err = fmt.Errorf("%s%w", t.wrap, err)
	return v
}
