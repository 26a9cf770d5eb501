package validation

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

const kindFederatedHPA = "FederatedHPA"

const (
	// maxCronRules is the number of rules of a CronFederatedHPA.
	maxCronRules = 100
	// minCronInterval is the time between two executions of a rule.
	minCronInterval = 10 * time.Second
)

// ValidateCronFederatedHPACreate checks a new CronFederatedHPA, also its limits.
func ValidateCronFederatedHPACreate(c *autoscalingv1alpha1.CronFederatedHPA) field.ErrorList {
	return append(ValidateCronFederatedHPA(c), ValidateCronLimits(c, nil)...)
}

// ValidateCronFederatedHPAUpdate checks a changed CronFederatedHPA. What exceeded the limits before may stay.
func ValidateCronFederatedHPAUpdate(c, old *autoscalingv1alpha1.CronFederatedHPA) field.ErrorList {
	return append(ValidateCronFederatedHPA(c), ValidateCronLimits(c, old)...)
}

// ValidateCronLimits checks the number of rules and the times between their executions, except what the old version of the
// object, which may be nil, has as well.
func ValidateCronLimits(c, old *autoscalingv1alpha1.CronFederatedHPA) field.ErrorList {
	path := field.NewPath("spec", "rules")
	var errs field.ErrorList
	known, most := map[string]bool{}, maxCronRules
	if old != nil {
		most = max(most, len(old.Spec.Rules))
		for i := range old.Spec.Rules {
			known[old.Spec.Rules[i].Schedule] = true
		}
	}
	if n := len(c.Spec.Rules); n > most {
		return append(errs, field.TooMany(path, n, maxCronRules))
	}
	for i := range c.Spec.Rules {
		text := c.Spec.Rules[i].Schedule
		if known[text] {
			continue
		}
		schedule, err := ParseCronSchedule(text)
		if every, ok := schedule.(cron.ConstantDelaySchedule); err == nil && ok && every.Delay < minCronInterval {
			errs = append(errs, field.Invalid(path.Index(i).Child("schedule"), text, fmt.Sprintf("a rule runs at most every %s", minCronInterval)))
		}
	}
	return errs
}

// ValidateCronFederatedHPA checks a CronFederatedHPA.
func ValidateCronFederatedHPA(c *autoscalingv1alpha1.CronFederatedHPA) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&c.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	target, path := c.Spec.ScaleTargetRef, field.NewPath("spec")
	scalesBounds := target.APIVersion == autoscalingv1alpha1.SchemeGroupVersion.String()
	if scalesBounds && target.Kind != kindFederatedHPA {
		return append(errs, field.Invalid(path.Child("scaleTargetRef", "kind"), target.Kind,
			fmt.Sprintf("invalid scaleTargetRef kind: %s, only support FederatedHPA", target.Kind)))
	}
	errs = append(errs, validateScaleTarget(target, path.Child("scaleTargetRef"))...)
	names := map[string]bool{}
	for i := range c.Spec.Rules {
		rule, at := &c.Spec.Rules[i], path.Child("rules").Index(i)
		if names[rule.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), rule.Name))
		}
		names[rule.Name] = true
		errs = append(errs, validateCronTime(rule, at)...)
		if scalesBounds {
			errs = append(errs, validateCronBounds(rule, at)...)
		} else {
			errs = append(errs, validateCronReplicas(rule, target.Kind, at)...)
		}
	}
	return errs
}

func validateCronTime(rule *autoscalingv1alpha1.CronFederatedHPARule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	schedule, err := ParseCronSchedule(rule.Schedule)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("schedule"), Shown(rule.Schedule), "invalid cron format: "+err.Error()))
	case !Fires(schedule, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)):
		errs = append(errs, field.Invalid(path.Child("schedule"), rule.Schedule, "the schedule never fires"))
	}
	if rule.TimeZone != nil {
		if _, err := time.LoadLocation(*rule.TimeZone); err != nil {
			errs = append(errs, field.Invalid(path.Child("timeZone"), *rule.TimeZone, err.Error()))
		}
	}
	return errs
}

func validateCronBounds(rule *autoscalingv1alpha1.CronFederatedHPARule, path *field.Path) field.ErrorList {
	lower, upper := rule.TargetMinReplicas, rule.TargetMaxReplicas
	if lower == nil && upper == nil {
		return field.ErrorList{field.Invalid(path.Child("targetMaxReplicas"), "",
			"targetMinReplicas and targetMaxReplicas cannot be nil at the same time if you want to scale FederatedHPA")}
	}
	var errs field.ErrorList
	least, most := int32(1), int32(math.MaxInt32)
	if lower != nil {
		if least = *lower; least <= 0 {
			errs = append(errs, field.Invalid(path.Child("targetMinReplicas"), "", "targetMinReplicas should be larger than 0"))
		}
	}
	if upper != nil {
		if most = *upper; most <= 0 {
			errs = append(errs, field.Invalid(path.Child("targetMaxReplicas"), "", "targetMaxReplicas should be larger than 0"))
		}
	}
	if least > most {
		errs = append(errs, field.Invalid(path.Child("targetMinReplicas"), "", "targetMaxReplicas should be larger than or equal to targetMinReplicas"))
	}
	return errs
}

func validateCronReplicas(rule *autoscalingv1alpha1.CronFederatedHPARule, kind string, path *field.Path) field.ErrorList {
	switch {
	case rule.TargetReplicas == nil:
		return field.ErrorList{field.Invalid(path.Child("targetReplicas"), "",
			fmt.Sprintf("targetReplicas cannot be nil if you want to scale %s", kind))}
	case *rule.TargetReplicas < 0:
		return field.ErrorList{field.Invalid(path.Child("targetReplicas"), "", "targetReplicas should be larger than or equal to 0")}
	}
	return nil
}

// ParseCronSchedule parses a cron schedule: five fields, a name such as @daily, or @every with a duration; a prefix
// CRON_TZ=<zone> sets the time zone. A text of more than MaxCronBytes is an error.
func ParseCronSchedule(text string) (cron.Schedule, error) {
	if len(text) > MaxCronBytes {
		return nil, fmt.Errorf("the schedule has %d bytes, more than %d", len(text), MaxCronBytes)
	}
	// The parser panics on a zone that nothing follows.
	if (strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=")) && !strings.Contains(text, " ") {
		return nil, errors.New("no schedule after the time zone")
	}
	return cron.ParseStandard(text)
}

// Fires reports whether a schedule has a next time. One such as 30 February has none.
func Fires(schedule cron.Schedule, after time.Time) bool { return !schedule.Next(after).IsZero() }
