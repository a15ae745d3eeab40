// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/cloud/spotrequest"
)

// The settings of instances that are kept and described. But for the one that forbids StopInstances they have no effect:
// there are no volumes and no CloudWatch.
const (
	keptStop       = "disableApiStop"
	keptOptimized  = "ebsOptimized"
	keptMonitoring = "monitoring"
)

// keep writes on a machine which of these settings are on, and how it is bought: a spot instance with the tags of its request.
func keep(m *v1alpha1.Machine, in *runInstancesInput, data launchtemplate.Data) {
	if in.isSpot(data) {
		m.Spec.MarketType = v1alpha1.MarketSpot
		spotrequest.Keep(m, spotrequest.Kept{Tags: awsresource.KeptTags(tagsOfType(data, spotrequest.Resource)), MaxPrice: maxPrice(data), ValidUntil: secondOf(in.requested)})
	}
	var kept []string
	for _, setting := range []struct {
		name string
		is   *bool
	}{{keptStop, data.DisableAPIStop}, {keptOptimized, data.EbsOptimized}, {keptMonitoring, monitored(data)}} {
		if setting.is != nil && *setting.is {
			kept = append(kept, setting.name)
		}
	}
	if len(kept) > 0 {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotationKept, strings.Join(kept, ","))
	}
}

// secondOf is a time in whole seconds, as objects keep it; nil for none.
func secondOf(at *time.Time) *metav1.Time {
	if at == nil {
		return nil
	}
	return new(metav1.NewTime(at.UTC().Truncate(time.Second)))
}

func monitored(data launchtemplate.Data) *bool {
	if data.Monitoring == nil {
		return nil
	}
	return data.Monitoring.Enabled
}

// keepStop sets whether StopInstances is forbidden for a machine.
func keepStop(m *v1alpha1.Machine, on bool) {
	kept := slices.DeleteFunc(strings.Split(m.Annotations[annotationKept], ","), func(s string) bool { return s == "" || s == keptStop })
	if on {
		kept = append(kept, keptStop)
	}
	slices.Sort(kept)
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotationKept, strings.Join(kept, ","))
}

// keeps reports whether a setting of a machine is on.
func keeps(m *v1alpha1.Machine, setting string) bool {
	return slices.Contains(strings.Split(m.Annotations[annotationKept], ","), setting)
}
