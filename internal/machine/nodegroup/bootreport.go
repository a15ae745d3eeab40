// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/plane/readiness"
)

// reportAgain is how often a machine that runs and is not Ready is asked for its report.
const reportAgain = 2 * time.Second

// bootReport repeats in the condition of a machine that runs and is not Ready what the machine reports of itself, and
// makes an Event of it if it differs from the one before. A report never makes a machine Ready. It returns when to ask
// again, or 0.
func (r *machines) bootReport(m *v1alpha1.Machine, instance machine.Instance, said string) time.Duration {
	reporter, err := machine.Ask[machine.Reporter](r.Providers, m.Spec.Provider, v1alpha1.KeepLogs)
	if err != nil || instance.State != machine.Running || m.Status.Phase == v1alpha1.MachineReady {
		return 0
	}
	report, ok := reporter.Report(m.Name)
	if !ok || report.Reason == bootreport.Warmed {
		return reportAgain
	}
	r.judge(m, m.Status.Phase, report.Reason, report.Message+"; more: muster logs "+m.Name)
	if now := troubled(m); now != said {
		r.recorder.Eventf(m, nil, corev1.EventTypeWarning, report.Reason, "Boot", "%s", readiness.Shorten(now))
	}
	return reportAgain
}

// troubled is what keeps a machine from becoming a node, as the machine reported it; empty if it reported nothing.
func troubled(m *v1alpha1.Machine) string {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || m.Status.Phase == v1alpha1.MachineReady || !bootreport.IsReason(ready.Reason) {
		return ""
	}
	return m.Name + ": " + ready.Message
}
