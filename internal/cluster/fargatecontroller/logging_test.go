// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
)

// configureLogging makes the ConfigMap of the log router, or changes it.
func (w *testWorld) configureLogging(output string) {
	w.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fargate.LoggingNamespace, Labels: map[string]string{"aws-observability": "enabled"}}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fargate.LoggingNamespace, Name: fargate.LoggingName}, Data: map[string]string{"output.conf": output}}
	if w.cluster.Create(w.t.Context(), namespace) != nil {
		if err := w.cluster.Update(w.t.Context(), config); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	if err := w.cluster.Create(w.t.Context(), config); err != nil {
		w.t.Fatal(err)
	}
}

// A machine has the configuration of the moment when it was made; the pod says by an Event and an annotation what became of its logs.
// A configuration that is not valid keeps no pod from running.
func TestLogging(t *testing.T) {
	w := newWorld(t)
	w.settle()
	told := func(reason string) (found []string) {
		for len(w.events.Events) > 0 {
			if e := <-w.events.Events; strings.Contains(e, " "+reason+" ") {
				found = append(found, e)
			}
		}
		return found
	}
	const output = "[OUTPUT]\n  Name cloudwatch\n  Match *\n  region us-east-1\n  log_group_name g\n  log_stream_prefix p-\n"
	for _, step := range []struct{ pod, config, annotation, reason string }{
		{"a", "", "LoggingDisabled: LOGGING_CONFIGMAP_NOT_FOUND", reasonNoLogging},
		{"b", output, "LoggingEnabled", reasonLogging},
		{"c", "[OUTPUT]\n  Name es\n  Match *\n", "LoggingDisabled: LOGGING_CONFIGMAP_INVALID", reasonNoLogging},
	} {
		if step.config != "" {
			w.configureLogging(step.config)
		}
		w.run(step.pod, "uid-of-"+step.pod, nil)
		w.settle()
		if events := told(step.reason); len(events) != 1 {
			t.Errorf("pod %s is told %q", step.pod, events)
		}
		w.launched()
		w.settle()
		if pod := w.pod(step.pod); pod.Spec.NodeName == "" || pod.Annotations[v1alpha1.AnnotationLogging] != step.annotation {
			t.Errorf("pod %s is on %q, with %v", step.pod, pod.Spec.NodeName, pod.Annotations)
		}
	}
	for _, m := range w.machines() {
		if got, want := m.Spec.Fargate.Logging.Output, map[string]string{"b": output}[m.Spec.Fargate.PodName]; got != want {
			t.Errorf("the machine of pod %s is told %q", m.Spec.Fargate.PodName, got)
		}
	}
}

// A machine with a log router stays for a while when its pod is gone, so that the last lines are sent; another goes at once. A service
// that was killed gives it the whole time.
func TestLastLines(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.run("silent", "uid-of-silent", nil)
	w.settle()
	w.configureLogging("[OUTPUT]\n  Name cloudwatch\n  Match *\n  region us-east-1\n  log_group_name g\n  log_stream_prefix p-\n")
	w.run("a", "uid-of-a", nil)
	w.settle()
	w.launched()
	w.settle()
	w.delete(w.pod("silent"))
	w.delete(w.pod("a"))
	stays := func(after, want time.Duration) {
		t.Helper()
		w.now = w.now.Add(after)
		if err := w.ofPod("silent"); err != nil {
			t.Fatal(err)
		}
		result, err := w.pods.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "jobs", Name: "a"}})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("%+v, %v, want %s", result, err, want)
		}
		var left []string
		for _, m := range w.machines() {
			if m.DeletionTimestamp.IsZero() {
				left = append(left, m.Spec.Fargate.PodName)
			}
		}
		if got := strings.Join(left, " "); got != map[bool]string{true: "a"}[want > 0] {
			t.Errorf("the machines of %q are left", got)
		}
	}
	stays(0, lastLines)
	stays(lastLines-1, 1)
	w.restart()
	stays(0, lastLines)
	stays(lastLines, 0)
}
