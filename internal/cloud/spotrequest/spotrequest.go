// SPDX-License-Identifier: Apache-2.0

// Package spotrequest derives the Spot Instance request of a spot instance from its Machine: EC2 makes such a request for
// each spot instance that RunInstances, CreateFleet or Auto Scaling launches, and RequestSpotInstances
// makes requests that are fulfilled at once. The id follows from the instance's id, and an
// annotation of the Machine has what nothing else says: tags, the highest price, and when the request was cancelled.
// No request is stored apart from its instance, so that neither is there without the other, whenever the service is killed.
//
// What happens if
//
//	the annotation cannot be read   the request has no tags and no price of its own, and was not cancelled
//	the Machine is gone             the record of the terminated instance has the annotation, for as long as it is kept
package spotrequest

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ec2id"
)

// Resource is what ARNs and tag specifications call Spot Instance requests.
const Resource = "spot-instances-request"

// annotation on a Machine is its [Kept] in JSON.
const annotation = "muster.dev/spot-request"

// Kept is what a Machine keeps of its request.
type Kept struct {
	Tags v1alpha1.Tags `json:"tags,omitempty"`
	// MaxPrice is the highest price of an hour in US dollars, such as 0.041600; empty is the price on demand.
	MaxPrice string `json:"maxPrice,omitempty"`
	// ValidUntil is when a request of RequestSpotInstances would have ended without an instance; nil for any other one.
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
	// CancelledAt is when the request was cancelled; nil if it was not.
	CancelledAt *metav1.Time `json:"cancelledAt,omitempty"`
}

// Of returns what a Machine keeps of its request. An annotation that cannot be read counts as a missing one.
func Of(m *v1alpha1.Machine) Kept {
	var kept Kept
	if json.Unmarshal([]byte(m.Annotations[annotation]), &kept) != nil {
		return Kept{}
	}
	return kept
}

// Keep writes on a Machine what it keeps of its request. The zero value removes the annotation.
func Keep(m *v1alpha1.Machine, kept Kept) {
	raw, _ := json.Marshal(kept) // strings and a time
	if string(raw) == "{}" {
		delete(m.Annotations, annotation)
		return
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotation, string(raw))
}

// ID returns the id of the request of an instance: it has the same digits.
func ID(instance string) string {
	return ec2id.SpotRequest.Prefix + strings.TrimPrefix(instance, ec2id.Instance.Prefix)
}

// InstanceID returns the id of the instance of a request.
func InstanceID(id string) string {
	return ec2id.Instance.Prefix + strings.TrimPrefix(id, ec2id.SpotRequest.Prefix)
}

// Status is what EC2 says of a request.
type Status struct {
	// State is active, closed, cancelled or disabled.
	State string
	// Code is one of https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html, and Message explains it.
	Code, Message string
	UpdateTime    time.Time
}

// The states of requests.
const (
	Active    = "active"
	Closed    = "closed"
	Cancelled = "cancelled"
	disabled  = "disabled"
)

// StatusOf returns the status of the request of a Machine. State is that of the instance, in EC2's words, and since is when
// the instance was asked to end or to stop, or ended; zero if it is to run. The table is that of
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instances-request-status-lifecycle.html for one-time requests. An
// interruption says so from its notice on, as on EC2, where an interruption that somebody asked for is an experiment of AWS
// FIS, whoever asked. Muster interrupts no instance by itself.
func StatusOf(m *v1alpha1.Machine, state string, since time.Time) Status {
	kept := Of(m)
	s := Status{Active, "fulfilled", "Your spot request is fulfilled.", m.StartedAt().UTC()}
	notice, interrupted := Interruption(m)
	switch {
	case interrupted:
		s = Status{Closed, "instance-terminated-by-experiment", "Your Spot instance was terminated by an experiment.", notice}
	case state == "shutting-down" || state == "terminated":
		s = Status{Closed, "instance-terminated-by-user", "Spot Instance terminated due to user-initiated termination.", since}
	case state == "stopping":
		s = Status{Active, "marked-for-stop", "The Spot Instance is marked for stopping.", since}
	case state == "stopped":
		s = Status{disabled, "instance-stopped-by-user", "Spot Instance stopped due to user-initiated stop.", since}
	case kept.CancelledAt != nil:
		s = Status{Cancelled, "request-canceled-and-instance-running", "Your Spot request is canceled, but your instance " + m.Name + " is still running.", kept.CancelledAt.Time}
	}
	if kept.CancelledAt != nil {
		s.State = Cancelled
	}
	s.UpdateTime = s.UpdateTime.UTC().Truncate(time.Second)
	return s
}

// Interruption returns when the instance of a Machine was told that it is to be interrupted, and whether it was. The drill of
// a Machine that was taken back interrupts nothing.
func Interruption(m *v1alpha1.Machine) (notice time.Time, is bool) {
	drill, done := m.Spec.Drill, m.Status.Drill
	is = drill != nil && done != nil && drill.Kind == v1alpha1.DrillSpotInterruption && done.Kind == drill.Kind && done.Began.Equal(&drill.Began)
	if !is {
		return time.Time{}, false
	}
	return drill.Began.Time, true
}
