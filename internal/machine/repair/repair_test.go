// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/repair"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func ago(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

// well is a machine that has been a healthy node for an hour.
func well(name string) repair.Machine {
	return repair.Machine{Name: name, Launched: ago(60), Joined: true, Ready: true}
}

// sick is a machine whose Node has a bad condition for so many minutes.
func sick(name, condition, reason string, minutes int) repair.Machine {
	m := well(name)
	m.Ready = condition != v1alpha1.NodeReady
	m.Conditions = []repair.Condition{{Type: condition, Reason: reason, Since: ago(minutes)}}
	return m
}

func with(m repair.Machine, change func(*repair.Machine)) repair.Machine {
	change(&m)
	return m
}

func override(condition, reason string, minutes int32, action v1alpha1.RepairAction) v1alpha1.NodeRepairOverride {
	return v1alpha1.NodeRepairOverride{NodeMonitoringCondition: condition, NodeUnhealthyReason: reason, MinRepairWaitTimeMins: minutes, RepairAction: action}
}

// say is a decision in a line.
func say(d repair.Decision) string {
	var parts []string
	for _, f := range d.Begin {
		parts = append(parts, fmt.Sprintf("%s %s for %s/%s", f.Action, f.Machine, f.Type, f.Reason))
	}
	if d.Held != "" {
		parts = append(parts, d.Held+": "+d.Message)
	}
	if !d.Next.IsZero() {
		parts = append(parts, "next in "+d.Next.Sub(noon).String())
	}
	return strings.Join(append(parts, fmt.Sprintf("%d unhealthy", len(d.Unhealthy))), "; ")
}

func TestPlan(t *testing.T) {
	t.Parallel()
	a, b, c := well("a"), well("b"), well("c")
	hung := sick("hung", v1alpha1.NodeReady, "NodeStatusUnknown", 30)
	kernel := func(name string, minutes int) repair.Machine {
		return sick(name, v1alpha1.NodeKernelReady, "ForkFailedOutOfPIDs", minutes)
	}
	on := repair.Policy{Enabled: true}
	configured := func(change func(*v1alpha1.NodeRepairConfig)) repair.Policy {
		config := &v1alpha1.NodeRepairConfig{}
		change(config)
		return repair.Policy{Enabled: true, Config: config}
	}
	overrides := func(list ...v1alpha1.NodeRepairOverride) repair.Policy {
		return configured(func(c *v1alpha1.NodeRepairConfig) { c.Overrides = list })
	}
	never := repair.Machine{Name: "never", Launched: ago(45)}
	joining := repair.Machine{Name: "joining", Launched: ago(1)}
	for name, test := range map[string]struct {
		policy   repair.Policy
		machines []repair.Machine
		want     string
	}{
		"off":                            {repair.Policy{}, []repair.Machine{hung}, "0 unhealthy"},
		"all are well":                   {on, []repair.Machine{a, b}, "0 unhealthy"},
		"half an hour":                   {on, []repair.Machine{a, hung}, "Replace hung for Ready/NodeStatusUnknown; 1 unhealthy"},
		"not before":                     {on, []repair.Machine{a, kernel("k", 29)}, "next in 1m0s; 1 unhealthy"},
		"the kernel":                     {on, []repair.Machine{a, kernel("k", 30)}, "Replace k for KernelReady/ForkFailedOutOfPIDs; 1 unhealthy"},
		"the network":                    {on, []repair.Machine{a, sick("n", v1alpha1.NodeNetworkingReady, "InterfaceNotUp", 30)}, "Replace n for NetworkingReady/InterfaceNotUp; 1 unhealthy"},
		"the runtime":                    {on, []repair.Machine{a, sick("r", v1alpha1.NodeContainerRuntimeReady, "PodStuckTerminating", 29)}, "next in 1m0s; 1 unhealthy"},
		"the storage":                    {on, []repair.Machine{a, sick("s", v1alpha1.NodeStorageReady, "BlockDeviceIOError", 29)}, "next in 1m0s; 1 unhealthy"},
		"accelerated hardware":           {on, []repair.Machine{a, sick("g", v1alpha1.NodeAcceleratedHardwareReady, "NvidiaDoubleBitError", 10)}, "Replace g for AcceleratedHardwareReady/NvidiaDoubleBitError; 1 unhealthy"},
		"not before ten minutes":         {on, []repair.Machine{a, sick("g", v1alpha1.NodeAcceleratedHardwareReady, "NvidiaDoubleBitError", 9)}, "next in 1m0s; 1 unhealthy"},
		"nothing for a pressure":         {on, []repair.Machine{a, sick("p", "DiskPressure", "KubeletHasDiskPressure", 600)}, "0 unhealthy"},
		"the worst first":                {on, []repair.Machine{with(kernel("k", 29), func(m *repair.Machine) { m.Conditions = append(m.Conditions, hung.Conditions...) })}, "Replace k for Ready/NodeStatusUnknown; 1 unhealthy"},
		"an override is sooner":          {overrides(override("Ready", "NodeStatusUnknown", 1, v1alpha1.RepairReplace)), []repair.Machine{a, sick("h", "Ready", "NodeStatusUnknown", 1)}, "Replace h for Ready/NodeStatusUnknown; 1 unhealthy"},
		"or later":                       {overrides(override("Ready", "NodeStatusUnknown", 45, v1alpha1.RepairReplace)), []repair.Machine{a, hung}, "next in 15m0s; 1 unhealthy"},
		"of that reason alone":           {overrides(override("Ready", "KubeletNotReady", 1, v1alpha1.RepairReplace)), []repair.Machine{a, sick("h", "Ready", "NodeStatusUnknown", 1)}, "next in 29m0s; 1 unhealthy"},
		"and condition alone":            {overrides(override("KernelReady", "NodeStatusUnknown", 1, v1alpha1.RepairReplace)), []repair.Machine{a, sick("h", "Ready", "NodeStatusUnknown", 1)}, "next in 29m0s; 1 unhealthy"},
		"it reboots":                     {overrides(override("KernelReady", "ForkFailedOutOfPIDs", 5, v1alpha1.RepairReboot)), []repair.Machine{a, kernel("k", 5)}, "Reboot k for KernelReady/ForkFailedOutOfPIDs; 1 unhealthy"},
		"it does nothing":                {overrides(override("KernelReady", "ForkFailedOutOfPIDs", 5, v1alpha1.RepairNoAction)), []repair.Machine{a, kernel("k", 60)}, "0 unhealthy"},
		"none for a pressure":            {overrides(override("DiskPressure", "Full", 1, v1alpha1.RepairReplace)), []repair.Machine{a, sick("p", "DiskPressure", "Full", 60)}, "0 unhealthy"},
		"a reboot is not begun twice":    {overrides(override("KernelReady", "ForkFailedOutOfPIDs", 5, v1alpha1.RepairReboot)), []repair.Machine{a, with(kernel("k", 60), func(m *repair.Machine) { m.Rebooting = true })}, "1 unhealthy"},
		"one goes already":               {on, []repair.Machine{a, with(hung, func(m *repair.Machine) { m.Deleting = true })}, "0 unhealthy"},
		"one is stopped":                 {on, []repair.Machine{a, with(hung, func(m *repair.Machine) { m.Stopped = true })}, "0 unhealthy"},
		"never a node":                   {on, []repair.Machine{a, never}, "Replace never for Ready/NodeCreationFailure; 1 unhealthy"},
		"which may yet come":             {on, []repair.Machine{a, with(never, func(m *repair.Machine) { m.Launched = ago(44) })}, "next in 1m0s; 1 unhealthy"},
		"the group's cause":              {on, []repair.Machine{never, with(never, func(m *repair.Machine) { m.Name = "too" })}, "2 unhealthy"},
		"not launched":                   {on, []repair.Machine{a, {Name: "new"}}, "0 unhealthy"},
		"one at a time":                  {on, []repair.Machine{a, sick("x", "Ready", "", 40), sick("y", "Ready", "", 50)}, "Replace y for Ready/; Busy: 0 machines go, are drained or reboot and 0 join, and 1 may at once: the next repair begins when fewer do; 2 unhealthy"},
		"while one goes":                 {on, []repair.Machine{hung, with(a, func(m *repair.Machine) { m.Deleting = true })}, "Busy: 1 machines go, are drained or reboot and 0 join, and 1 may at once: the next repair begins when fewer do; 1 unhealthy"},
		"while one joins":                {on, []repair.Machine{hung, joining}, "Busy: 0 machines go, are drained or reboot and 1 join, and 1 may at once: the next repair begins when fewer do; 1 unhealthy"},
		"two at a time":                  {configured(func(c *v1alpha1.NodeRepairConfig) { c.MaxParallelNodesRepairedCount = new(int32(2)) }), []repair.Machine{sick("x", "Ready", "", 40), sick("y", "Ready", "", 50)}, "Replace y for Ready/; Replace x for Ready/; 2 unhealthy"},
		"percent of the unhealthy":       {configured(func(c *v1alpha1.NodeRepairConfig) { c.MaxParallelNodesRepairedPercentage = new(int32(67)) }), []repair.Machine{sick("x", "Ready", "", 40), sick("y", "Ready", "", 50), sick("z", "Ready", "", 60)}, "Replace z for Ready/; Replace y for Ready/; Busy: 0 machines go, are drained or reboot and 0 join, and 2 may at once: the next repair begins when fewer do; 3 unhealthy"},
		"one at least":                   {configured(func(c *v1alpha1.NodeRepairConfig) { c.MaxParallelNodesRepairedPercentage = new(int32(1)) }), []repair.Machine{sick("x", "Ready", "", 40)}, "Replace x for Ready/; 1 unhealthy"},
		"two of six":                     {on, []repair.Machine{a, b, c, well("d"), hung, kernel("k", 1)}, "TooManyUnhealthy: 2 of 6 nodes are unhealthy, which is more than 20 percent of a group of more than 5 nodes: no repair begins before fewer are; next in 29m0s; 2 unhealthy"},
		"two of five":                    {on, []repair.Machine{a, b, c, hung, kernel("k", 1)}, "Replace hung for Ready/NodeStatusUnknown; next in 29m0s; 2 unhealthy"},
		"two of ten":                     {on, []repair.Machine{a, b, c, well("d"), well("e"), well("f"), well("g"), well("h"), hung, kernel("k", 1)}, "Replace hung for Ready/NodeStatusUnknown; next in 29m0s; 2 unhealthy"},
		"one of six":                     {on, []repair.Machine{a, b, c, well("d"), well("e"), hung}, "Replace hung for Ready/NodeStatusUnknown; 1 unhealthy"},
		"a threshold in nodes":           {configured(func(c *v1alpha1.NodeRepairConfig) { c.MaxUnhealthyNodeThresholdCount = new(int32(1)) }), []repair.Machine{hung, kernel("k", 1)}, "TooManyUnhealthy: 2 of 2 nodes are unhealthy, which is more than maxUnhealthyNodeThresholdCount 1: no repair begins before fewer are; next in 29m0s; 2 unhealthy"},
		"as many as the threshold":       {configured(func(c *v1alpha1.NodeRepairConfig) { c.MaxUnhealthyNodeThresholdCount = new(int32(2)) }), []repair.Machine{a, b, c, well("d"), hung, kernel("k", 1)}, "Replace hung for Ready/NodeStatusUnknown; next in 29m0s; 2 unhealthy"},
		"a threshold in percent":         {configured(func(c *v1alpha1.NodeRepairConfig) { c.MaxUnhealthyNodeThresholdPercentage = new(int32(49)) }), []repair.Machine{a, hung}, "TooManyUnhealthy: 1 of 2 nodes are unhealthy, which is more than maxUnhealthyNodeThresholdPercentage 49: no repair begins before fewer are; 1 unhealthy"},
		"a percentage that is not above": {configured(func(c *v1alpha1.NodeRepairConfig) { c.MaxUnhealthyNodeThresholdPercentage = new(int32(50)) }), []repair.Machine{a, hung}, "Replace hung for Ready/NodeStatusUnknown; 1 unhealthy"},
		"a zonal shift":                  {repair.Policy{Enabled: true, Shifted: []string{"us-east-1a"}}, []repair.Machine{a, hung}, "ZonalShift: a zonal shift moves traffic away from [us-east-1a]: no repair begins before it ends; 1 unhealthy"},
		"a process is suspended":         {repair.Policy{Enabled: true, Suspended: "Terminate"}, []repair.Machine{a, hung}, "Suspended: the Auto Scaling group has suspended the process Terminate: no repair begins before it is resumed; 1 unhealthy"},
		"a rollout replaces it":          {repair.Policy{Enabled: true, Unavailable: 2}, []repair.Machine{a, with(hung, func(m *repair.Machine) { m.Outdated = true })}, "Rollout: machine hung is unhealthy, and the rollout under way replaces it; 1 unhealthy"},
		"a rollout drains another":       {repair.Policy{Enabled: true, Unavailable: 1, Config: &v1alpha1.NodeRepairConfig{MaxParallelNodesRepairedCount: new(int32(5))}}, []repair.Machine{hung, with(a, func(m *repair.Machine) { m.Draining, m.Outdated = true, true })}, "Busy: 1 machines go, are drained or reboot, and the rollout under way may have 1 unavailable: the next repair begins when fewer are; 1 unhealthy"},
		"a rollout leaves room":          {repair.Policy{Enabled: true, Unavailable: 1}, []repair.Machine{a, hung}, "Replace hung for Ready/NodeStatusUnknown; 1 unhealthy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, say(repair.Plan(test.policy, test.machines, noon))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A monitor that does not know something is no reason to repair, and neither is a condition of somebody else.
func TestBad(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(noon)
	node := &corev1.Node{}
	for _, kind := range append(v1alpha1.RepairConditions(), "DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable", "Somebody") {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: string(status), Message: "because", LastTransitionTime: since})
		}
	}
	var got []string
	for _, c := range repair.Bad(node) {
		if c.Message != "because" || !c.Since.Equal(noon) {
			t.Errorf("%+v", c)
		}
		got = append(got, c.Type+" "+c.Reason)
	}
	want := []string{
		"AcceleratedHardwareReady False", "ContainerRuntimeReady False", "KernelReady False", "NetworkingReady False", "Ready False", "Ready Unknown", "StorageReady False",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
