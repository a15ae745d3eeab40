// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateSettings(spec *field.Path, c ClusterSpec) field.ErrorList {
	errs := c.APIServer.validate(spec.Child("apiServer"))
	errs = append(errs, c.ControllerManager.validate(spec.Child("controllerManager"))...)
	errs = append(errs, c.Scheduler.validate(spec.Child("scheduler"))...)
	errs = append(errs, c.Compute.validate(spec.Child("compute"))...)
	return append(errs, c.FeatureGates.validate(spec.Child("featureGates"))...)
}

func (s APIServerSettings) validate(path *field.Path) field.ErrorList {
	errs := validateRange(path.Child("eventTTL"), s.EventTTL, MinEventTTL, MaxEventTTL)
	errs = append(errs, validateLogLevel(path, s.LogLevel)...)
	if s.ServiceNodePortRange != nil {
		errs = append(errs, s.ServiceNodePortRange.Validate(path.Child("serviceNodePortRange"))...)
	}
	return errs
}

// Validate reports what is wrong with a range of ports.
func (r NodePortRange) Validate(path *field.Path) field.ErrorList {
	errs := append(validateNumber(path.Child("minPort"), r.MinPort, MinNodePort, MaxNodePort),
		validateNumber(path.Child("maxPort"), r.MaxPort, MinNodePort, MaxNodePort)...)
	if r.MinPort > r.MaxPort {
		errs = append(errs, field.Invalid(path.Child("minPort"), r.MinPort, fmt.Sprintf("must not be above maxPort, %d", r.MaxPort)))
	}
	return errs
}

func (s ControllerManagerSettings) validate(path *field.Path) field.ErrorList {
	errs := validateRange(path.Child("horizontalPodAutoscalerSyncPeriod"), s.HorizontalPodAutoscalerSyncPeriod, MinAutoscalerPeriod, MaxAutoscalerPeriod)
	if s.TerminatedPodGCThreshold != nil {
		errs = append(errs, ValidateTerminatedPods(path.Child("terminatedPodGCThreshold"), *s.TerminatedPodGCThreshold)...)
	}
	return append(errs, validateLogLevel(path, s.LogLevel)...)
}

// ValidateTerminatedPods reports what is wrong with a threshold of terminated pods.
func ValidateTerminatedPods(path *field.Path, threshold int32) field.ErrorList {
	return validateNumber(path, threshold, MinTerminatedPods, MaxTerminatedPods)
}

func (s SchedulerSettings) validate(path *field.Path) field.ErrorList {
	errs := validateLogLevel(path, s.LogLevel)
	if s.ScoringStrategy != nil {
		errs = append(errs, s.ScoringStrategy.Validate(path.Child("scoringStrategy"))...)
	}
	return errs
}

// Validate reports what is wrong with a strategy.
func (s ScoringStrategy) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Type != "" && !slices.Contains(ScoringStrategyTypes(), s.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), s.Type, ScoringStrategyTypes()))
	}
	for i, r := range s.Resources {
		at := path.Child("resources").Index(i)
		if !slices.Contains(ScoringResources(), r.Name) {
			errs = append(errs, field.NotSupported(at.Child("name"), r.Name, ScoringResources()))
		}
		if slices.ContainsFunc(s.Resources[:i], func(other ResourceWeight) bool { return other.Name == r.Name }) {
			errs = append(errs, field.Duplicate(at, r.Name))
		}
		errs = append(errs, validateNumber(at.Child("weight"), r.Weight, MinResourceWeight, MaxResourceWeight)...)
	}
	return errs
}

func (g FeatureGates) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(g) > maxFeatureGates {
		errs = append(errs, field.TooMany(path, len(g), maxFeatureGates))
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !featureGatePattern.MatchString(name) {
			errs = append(errs, field.Invalid(path, name, "a feature gate has a name like InPlacePodVerticalScaling"))
		}
	}
	return errs
}

func validateLogLevel(path *field.Path, level *int32) field.ErrorList {
	if level == nil {
		return nil
	}
	return validateNumber(path.Child("logLevel"), *level, 0, MaxLogLevel)
}

func validateNumber(path *field.Path, value, least, most int32) field.ErrorList {
	if value >= least && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", least, most))}
}

// validateRange refuses a duration outside of two that Go can read.
func validateRange(path *field.Path, value *metav1.Duration, least, most string) field.ErrorList {
	first, _ := time.ParseDuration(least)
	last, _ := time.ParseDuration(most)
	if value == nil || value.Duration >= first && value.Duration <= last {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.Duration.String(), fmt.Sprintf("must be from %s to %s", least, most))}
}
