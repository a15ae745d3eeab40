// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/machine/podstatus"
	"muster.dev/muster/internal/machine/podstatus/podstatustest"
)

// The files are what `kubectl get pod -o json` printed of pods on a local machine, whose kubelet and API server were
// v1.36.4, on 2026-11-29: of the twin of TestSimulatedPods, of a pod that ran `env` once, of one that was past its
// activeDeadlineSeconds and ignored SIGTERM, and of one that had no room. The same is reported about the same pods, but
// for what podstatustest.Shape leaves out, and for how large the node is.
func TestAsAKubelet(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("recorded pods: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			recorded := &corev1.Pod{}
			if err := json.Unmarshal(raw, recorded); err != nil {
				t.Fatal(err)
			}
			bound := recorded.DeepCopy()
			bound.Status = corev1.PodStatus{
				Phase: corev1.PodPending, QOSClass: recorded.Status.QOSClass, ObservedGeneration: 1,
				Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: *recorded.Status.StartTime}},
			}
			now := recorded.Status.StartTime.Time
			if recorded.Status.Phase == corev1.PodSucceeded {
				bound.Annotations = map[string]string{podstatus.RunTimeAnnotation: "0s"}
			}
			w := &world{node: node(), pods: []*corev1.Pod{bound}}
			w.settle(t, now)
			if recorded.Spec.ActiveDeadlineSeconds != nil {
				w.settle(t, now.Add(time.Hour))
			}
			is, was := podstatustest.Shape(w.pods[0]), podstatustest.Shape(recorded)
			is.Message, was.Message = withoutNumbers(is.Message), withoutNumbers(was.Message)
			if diff := cmp.Diff(was, is, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the kubelet reports (-), and we do (+):\n%s", diff)
			}
		})
	}
}

// withoutNumbers is a message about the resources of a node, of whatever size.
func withoutNumbers(message string) string {
	return regexp.MustCompile(`[0-9]+`).ReplaceAllString(message, "N")
}
