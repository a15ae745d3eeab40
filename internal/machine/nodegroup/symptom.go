// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/plane/readiness"
)

// Symptom is what a controller is about to say of a machine or node group that is not as it should be.
type Symptom struct {
	// Source, Code and Text are as docs/causes.md lists them: report and DiskFull, node-group and Ready/Ec2SubnetNotFound.
	Source, Code, Text string
	// Still is for how long the object has not come forward.
	Still time.Duration
}

// The sources of symptoms, as the catalogue of causes calls them.
const (
	fromMachine = "machine"
	fromReport  = "report"
	fromGroup   = "node-group"
)

// withCause begins a message with the identifier of the cause, if it is known, so that conditions, Events, EKS's issues and
// commands that repeat the message have it, too.
func (c *Config) withCause(s Symptom) string {
	if c.Cause == nil {
		return s.Text
	}
	if id := c.Cause(s); id != "" {
		return id + ": " + s.Text
	}
	return s.Text
}

// symptom is what a machine is judged by.
func symptom(m *v1alpha1.Machine, now time.Time, condition, reason, message string) Symptom {
	s := Symptom{Source: fromMachine, Code: condition + "/" + reason, Text: message, Still: now.Sub(lastStep(m))}
	if bootreport.IsReason(reason) {
		s.Source, s.Code = fromReport, reason
	}
	return s
}

// draining says which pods of a machine are left and then what comes of it, with the cause if that is known.
func (c *Config) draining(m *v1alpha1.Machine, now time.Time, left, then string, last bool) string {
	if last {
		then = readiness.LastNode
	}
	return c.withCause(symptom(m, now, v1alpha1.ConditionDrained, reasonDraining, left+"; "+then))
}

// lastStep is when a machine has come forward last: its last step, or its launch.
func lastStep(m *v1alpha1.Machine) time.Time {
	at := metav1.NewMicroTime(m.StartedAt())
	for _, record := range m.Status.Join {
		if record.Time.After(at.Time) {
			at = record.Time
		}
	}
	return at.Time
}
