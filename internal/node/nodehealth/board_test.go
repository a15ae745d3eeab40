// SPDX-License-Identifier: Apache-2.0

package nodehealth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/node/nodehealth"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// all are the conditions that a machine knows of.
var all = []corev1.NodeConditionType{"ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady"}

// watched is a board, and the requests that are made for it.
type watched struct {
	*testing.T
	board    *nodehealth.Board
	now      time.Time
	requests int
	is       map[corev1.NodeConditionType]corev1.NodeCondition
	events   []string
}

func watch(t *testing.T) *watched {
	t.Helper()
	return &watched{t, nodehealth.NewBoard(), noon, 0, map[corev1.NodeConditionType]corev1.NodeCondition{}, nil}
}

// looks has so many looks that find these reasons.
func (w *watched) looks(n int, found ...nodehealth.Reason) {
	w.Helper()
	for range n {
		look := nodehealth.Look{Known: all, Found: map[nodehealth.Reason]string{}}
		for _, reason := range found {
			look.Found[reason] = fmt.Sprintf("%s at %d", reason, w.now.Unix())
		}
		w.look(look)
	}
}

func (w *watched) look(look nodehealth.Look) {
	w.Helper()
	w.now = w.now.Add(nodehealth.Interval)
	for _, e := range w.board.Look(look, w.now) {
		w.events = append(w.events, string(e.Condition)+" "+string(e.Reason))
	}
	if due := w.board.Due(w.now); due != nil {
		w.requests++
		for _, c := range due {
			if !c.LastHeartbeatTime.Time.Equal(w.now) {
				w.Errorf("%s has the heartbeat %s", c.Type, c.LastHeartbeatTime)
			}
			w.is[c.Type] = c
		}
		w.board.Wrote(w.now)
	}
}

// want checks what a condition says.
func (w *watched) want(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) {
	w.Helper()
	if c := w.is[kind]; c.Status != status || c.Reason != reason {
		w.Errorf("%s is %s, %s (%s), want %s, %s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
}

// A healthy machine makes a request when it is first looked at, and one at each heartbeat.
func TestHealthy(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.looks(1)
	w.want("KernelReady", "True", "KernelIsReady")
	w.want("StorageReady", "True", "DiskIsReady")
	w.want("NetworkingReady", "True", "NetworkingIsReady")
	w.want("ContainerRuntimeReady", "True", "ContainerRuntimeIsReady")
	if m := w.is["StorageReady"].Message; m != "Monitoring for the Disk system is active" || w.requests != 1 {
		t.Errorf("%q after %d requests", m, w.requests)
	}
	if _, said := w.is["AcceleratedHardwareReady"]; said {
		t.Error("it knows of accelerated hardware")
	}
	w.looks(119)
	if w.requests != 12 {
		t.Errorf("%d requests in an hour, want 12", w.requests)
	}
	if at := w.is["KernelReady"].LastTransitionTime.Time; !at.Equal(noon.Add(nodehealth.Interval)) {
		t.Errorf("its last transition is %s", at)
	}
}

// Each reason has to be found often enough, and is forgotten five minutes after it was found last.
func TestReasons(t *testing.T) {
	t.Parallel()
	for reason, test := range map[nodehealth.Reason]struct {
		condition corev1.NodeConditionType
		looks     int
	}{
		nodehealth.ContainerdRestarts: {"ContainerRuntimeReady", 2}, nodehealth.ForkFailed: {"KernelReady", 2}, nodehealth.LoopbackMissing: {"NetworkingReady", 4},
		nodehealth.InterfaceNotUp: {"NetworkingReady", 4}, nodehealth.InterfaceNotRunning: {"NetworkingReady", 4}, nodehealth.DiskError: {"StorageReady", 3},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			w := watch(t)
			w.looks(5)
			healthy := w.is[test.condition].Reason
			w.looks(test.looks-1, reason)
			w.want(test.condition, "True", healthy)
			before := w.requests
			w.looks(1, reason)
			w.want(test.condition, "False", string(reason))
			if since := w.is[test.condition].LastTransitionTime.Time; w.requests != before+1 || !since.Equal(w.now) {
				t.Errorf("%d requests, since %s", w.requests-before, since)
			}
			if m := w.is[test.condition].Message; !strings.HasPrefix(m, string(reason)+" at ") {
				t.Errorf("its message is %q", m)
			}
			for kind, c := range w.is {
				if kind != test.condition && c.Status != "True" {
					t.Errorf("%s is %s", kind, c.Status)
				}
			}
			w.looks(9)
			w.want(test.condition, "False", string(reason))
			w.looks(1)
			w.want(test.condition, "True", healthy)
		})
	}
}

// A reason that comes now and then is not one that lasts.
func TestFlapping(t *testing.T) {
	t.Parallel()
	w := watch(t)
	for range 30 {
		w.looks(3, nodehealth.InterfaceNotUp)
		w.looks(10)
	}
	w.want("NetworkingReady", "True", "NetworkingIsReady")
}

// Of two reasons the condition has the first, and the words of both.
func TestTwoReasons(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.looks(4, nodehealth.InterfaceNotUp, nodehealth.LoopbackMissing)
	w.want("NetworkingReady", "False", "MissingLoopbackInterface")
	if m := w.is["NetworkingReady"].Message; !strings.Contains(m, "MissingLoopbackInterface at") || !strings.Contains(m, "; InterfaceNotUp at") {
		t.Errorf("its message is %q", m)
	}
}

// Nothing is said of what cannot be looked at, neither good nor bad.
func TestUnknown(t *testing.T) {
	t.Parallel()
	w := watch(t)
	for range 20 {
		w.look(nodehealth.Look{Known: all[:1], Found: map[nodehealth.Reason]string{nodehealth.DiskError: "?", nodehealth.ForkFailed: "?"}})
	}
	if len(w.is) != 1 || len(w.events) > 0 {
		t.Errorf("it says %v, %v", w.is, w.events)
	}
}

// A reason that is worth an Event alone turns no condition, and is told once an hour.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.looks(240, nodehealth.KubeletRestarts, nodehealth.PIDsRunOut)
	if got := strings.Join(w.events, ", "); got != "ContainerRuntimeReady KubeletRepeatedRestart, KernelReady ApproachingKernelPidMax, ContainerRuntimeReady KubeletRepeatedRestart, KernelReady ApproachingKernelPidMax" {
		t.Errorf("in two hours: %s", got)
	}
	w.want("ContainerRuntimeReady", "True", "ContainerRuntimeIsReady")
	w.want("KernelReady", "True", "KernelIsReady")
}

// A request that failed is made again at the next look.
func TestNotWritten(t *testing.T) {
	t.Parallel()
	b := nodehealth.NewBoard()
	b.Look(nodehealth.Look{Known: all}, noon)
	for i := range 3 {
		if len(b.Due(noon.Add(time.Duration(i)*time.Second))) != 4 {
			t.Errorf("try %d has nothing to write", i)
		}
	}
	b.Wrote(noon)
	if b.Due(noon.Add(time.Minute)) != nil {
		t.Error("it is written once more")
	}
}

// Whatever is found, a condition changes rarely: no more than once in the time that it takes to find something often
// enough, and to forget it.
func TestFewRequests(t *testing.T) {
	t.Parallel()
	reasons := []nodehealth.Reason{
		nodehealth.ContainerdRestarts, nodehealth.ForkFailed, nodehealth.LoopbackMissing, nodehealth.InterfaceNotUp, nodehealth.InterfaceNotRunning, nodehealth.DiskError,
	}
	rapid.Check(t, func(r *rapid.T) {
		w := watch(t)
		for range 120 {
			look := nodehealth.Look{Known: all, Found: map[nodehealth.Reason]string{}}
			for _, reason := range rapid.SliceOfDistinct(rapid.SampledFrom(reasons), rapid.ID[nodehealth.Reason]).Draw(r, "found") {
				look.Found[reason] = "now"
			}
			before := w.is["KernelReady"]
			w.look(look)
			after := w.is["KernelReady"]
			if before.Status == "False" && after.Status == "True" && after.LastTransitionTime.Sub(before.LastTransitionTime.Time) < 5*time.Minute {
				r.Fatalf("it was False from %s to %s", before.LastTransitionTime, after.LastTransitionTime)
			}
			if after.Status == "False" && after.Reason != "ForkFailedOutOfPIDs" {
				r.Fatalf("KernelReady is False for %s", after.Reason)
			}
		}
	})
}
