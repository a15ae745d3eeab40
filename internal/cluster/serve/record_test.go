// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/release"
)

// The record follows the Cluster object, and the cluster the record; a mode that the cluster has left does not come
// back.
func anyRelease(release.Release) error { return nil }

func anySettings(_, _ v1alpha1.ClusterSpec, _ release.Release) error { return nil }

func TestRecordFollowsTheObject(t *testing.T) {
	h := newHosted(t.Context(), newService(t), newCluster(t))
	wanted := clusterconfig.Default(2, v1alpha1.ProviderSimulated)
	if _, err := clusterconfig.Save(h.dir.Record(), wanted); err != nil {
		t.Fatal(err)
	}
	object := wanted.Cluster.DeepCopy()
	expect := func(what string, want v1alpha1.ClusterSpec, reloads int) {
		t.Helper()
		err := h.adopt(object, anyRelease, anySettings)
		if refused := what == "a mode before"; (err != nil) != refused {
			t.Errorf("%s: %v", what, err)
		}
		saved, err := clusterconfig.Read(h.dir.Record())
		if err != nil {
			t.Fatal(err)
		}
		if saved.Cluster.Spec.AccessConfig.AuthenticationMode != want.AccessConfig.AuthenticationMode || saved.Cluster.Spec.APIServer != want.APIServer || len(saved.NodeGroups) != 1 || len(h.reload) != reloads {
			t.Errorf("%s: the record is %+v, and %d reloads wait", what, saved.Cluster.Spec, len(h.reload))
		}
	}
	expect("the same", object.Spec, 0)
	object.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationConfigMap
	expect("a mode before", wanted.Cluster.Spec, 0)
	object.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationAPI
	object.Spec.APIServer.Port = 20443
	expect("a mode after, and a port", object.Spec, 1)
}

// A change that the control plane did not take is told with the last words of its API server, and of no other one; the
// generation that the cluster follows is the one that its control plane has taken or refused.
func TestRefusedByTheControlPlane(t *testing.T) {
	h := newHosted(t.Context(), newService(t), newCluster(t))
	wanted := clusterconfig.Default(2, v1alpha1.ProviderSimulated)
	if _, err := clusterconfig.Save(h.dir.Record(), wanted); err != nil {
		t.Fatal(err)
	}
	object := wanted.Cluster.DeepCopy()
	follow := func(generation int64) int {
		t.Helper()
		object.Generation = generation
		object.Spec.APIServer.EventTTL = &metav1.Duration{Duration: time.Duration(generation) * 10 * time.Minute}
		if err := h.adopt(object, anyRelease, anySettings); err != nil {
			t.Fatal(err)
		}
		return h.begin()
	}
	expect := func(what string, generation int64, refused string) {
		t.Helper()
		if run := h.running(); run.Generation != generation || run.Refused != refused {
			t.Errorf("%s: %+v", what, run)
		}
	}
	expect("nothing is known yet", 0, "")
	change := follow(1)
	expect("the control plane starts", 0, "")
	h.settle(change, planerollout.Outcome{})
	expect("it has started", 1, "")
	change = follow(2)
	expect("it changes", 1, "")

	spec := component.Spec{Name: component.APIServerName(1), Cluster: h.dir.Namespace()}
	path := supervise.LogOf(h.service.cfg.State, spec)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	line := func(at time.Time, text string) string {
		return at.Format("I0102 15:04:05.000000") + "       1 server.go:1] " + text + "\n"
	}
	said := line(began.Add(-time.Hour), "an hour ago") + line(began.Add(time.Second), "bad flag") + line(began.Add(2*time.Second), "the end")
	if err := os.WriteFile(path, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	h.settle(change, planerollout.Outcome{Refusal: &planerollout.Refusal{Server: spec, Since: began, Reason: "it ended 3 times"}})
	run := h.running()
	if run.Generation != 2 || !strings.HasPrefix(run.Refused, "the API server with the change did not serve: it ended 3 times; its last words: ") ||
		!strings.Contains(run.Refused, "bad flag; ") || !strings.HasSuffix(run.Refused, "the end") || strings.Contains(run.Refused, "an hour ago") {
		t.Errorf("%+v", run)
	}
	change = follow(3)
	expect("it changes again", 2, run.Refused)
	h.settle(change, planerollout.Outcome{})
	expect("it has changed", 3, "")
	late := follow(4)
	follow(5)
	h.settle(late, planerollout.Outcome{})
	expect("another change came meanwhile", 3, "")
	if f := h.news.Figures(); f.Refused != 1 || f.Changed != 0 {
		t.Errorf("%+v", f)
	}
}
