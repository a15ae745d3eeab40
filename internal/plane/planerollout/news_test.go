// SPDX-License-Identifier: Apache-2.0

package planerollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/planeclient"
)

// Changes and refusals are told by Events once the management plane answers, each once, and counted.
func TestNews(t *testing.T) {
	t.Parallel()
	var n News
	n.Began("kube-apiserver-1 is started")
	n.Ended(Outcome{Servers: []string{"kube-apiserver-1"}, Took: 7 * time.Second}, "")
	n.Ended(Outcome{Servers: []string{"kube-apiserver-1"}}, "") // the next service finds all as it is wanted
	n.Ended(Outcome{Servers: []string{"kube-apiserver-1"}, Took: time.Minute}, "it ended 3 times")
	n.Ended(Outcome{Servers: []string{"kube-apiserver", "kube-apiserver-1"}, Took: 25 * time.Second}, "")

	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.Cluster{}
	cluster.Name, cluster.Namespace = "blue", "blue"
	recorder := events.NewFakeRecorder(10)
	n.record(t.Context(), fake.NewClientBuilder().WithScheme(scheme).Build(), recorder, "blue") // there is no Cluster
	if len(recorder.Events) > 0 {
		t.Errorf("told of no object: %s", <-recorder.Events)
	}
	plane := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build()
	for range 2 {
		n.record(t.Context(), plane, recorder, "blue")
	}
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	if diff := cmp.Diff([]string{
		"Normal APIServersChanging kube-apiserver-1 is started",
		"Normal APIServersChanged kube-apiserver-1 serves, and the change took 7s",
		"Warning APIServersChangeRefused it runs on as it was: it ended 3 times",
		"Normal APIServersChanged kube-apiserver and kube-apiserver-1 serve, and the change took 25s",
	}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if f := n.Figures(); f.Changed != 2 || f.Refused != 1 || f.Seconds != 32 || f.Within[5] != 0 || f.Within[10] != 1 || f.Within[20] != 1 || f.Within[30] != 2 || f.Within[600] != 2 {
		t.Errorf("%+v", f)
	}
}

// Events do not pile up while the management plane does not answer.
func TestOldNews(t *testing.T) {
	t.Parallel()
	var n News
	for i := range maxNews + 5 {
		n.Began(fmt.Sprint(i))
	}
	if waiting := n.take(); len(waiting) != maxNews || waiting[0].message != "5" {
		t.Errorf("%+v wait", waiting)
	}
}

func TestCollector(t *testing.T) {
	t.Parallel()
	var blue, green News
	blue.Ended(Outcome{Took: 12 * time.Second}, "")
	blue.Ended(Outcome{}, "no memory")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(func() map[string]Figures { return map[string]Figures{"blue": blue.Figures(), "green": green.Figures()} }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			line := fmt.Sprint(family.GetName(), " ", strings.Join(labels, "/"), " ", m.GetCounter().GetValue())
			if h := m.GetHistogram(); h != nil {
				line = fmt.Sprint(family.GetName(), " ", labels[0], " ", h.GetSampleCount(), " ", h.GetSampleSum(), " ", h.GetBucket()[1].GetCumulativeCount(), h.GetBucket()[2].GetCumulativeCount())
			}
			got = append(got, line)
		}
	}
	if diff := cmp.Diff([]string{
		"muster_plane_rollout_duration_seconds blue 1 12 0 1", "muster_plane_rollout_duration_seconds green 0 0 0 0",
		"muster_plane_rollouts_total blue/changed 1", "muster_plane_rollouts_total blue/refused 1",
		"muster_plane_rollouts_total green/changed 0", "muster_plane_rollouts_total green/refused 0",
	}, got); diff != "" {
		t.Errorf("collected (-want +got):\n%s", diff)
	}
}
