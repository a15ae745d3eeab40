// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// An upgrade begins with the API server and a rollback with the machines, at every moment between.
func TestMinorOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server, spec, goingBack string
		want, says              string
	}{
		"as the API server says":            {"v1.36.4", "1.36", "", "1.36", ""},
		"no version is asked for":           {"v1.36.4", "", "", "1.36", ""},
		"an upgrade that is under way":      {"v1.36.4", "1.37", "", "1.36", ""},
		"an upgrade that is done":           {"v1.37.1", "1.37", "", "1.37", ""},
		"a rollback: machines first":        {"v1.37.1", "1.37", "1.36", "1.36", ""},
		"a rollback: the plane's turn":      {"v1.37.1", "1.36", "1.36", "1.36", ""},
		"a rollback whose Update has ended": {"v1.37.1", "1.36", "", "1.36", ""},
		"a rollback that is done":           {"v1.36.4", "1.36", "", "1.36", ""},
		"a rollback that has failed":        {"v1.37.1", "1.37", "", "1.37", ""},
		"an API server of tomorrow":         {"v1.99.0", "1.36", "", "", "unsupported Kubernetes version"},
	} {
		got, err := MinorOf(c.server, v1alpha1.ClusterSpec{Version: c.spec}, c.goingBack)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// chooses are the images that the EC2NodeClass chooses.
func (w *world) chooses() string {
	w.t.Helper()
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(nodeClasses)
	if err := w.Cluster.Get(w.t.Context(), client.ObjectKey{Name: karpenter.NodeClass}, class); err != nil {
		w.t.Fatal(err)
	}
	terms, _, err := unstructured.NestedSlice(class.Object, "spec", "amiSelectorTerms")
	if err != nil || len(terms) != 1 {
		w.t.Fatal(terms, err)
	}
	id, _ := terms[0].(map[string]any)["id"].(string)
	return id
}

func TestTheImageIsOfTheMinor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range release.All() {
		w.minor = r.Minor()
		w.prepared()
		if got := w.chooses(); got != ami.OfRelease(r) {
			t.Errorf("of %s the class chooses %s, want %s", r.Version, got, ami.OfRelease(r))
		}
	}
	w.minor = "1.99"
	if err := w.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no image of Kubernetes 1.99") {
		t.Error(err)
	}
}

// A change of the minor ends the pause before its minute is over.
func TestAnotherMinorEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := release.All()
		began, minor := time.Now(), all[0].Minor()
		k := &Controller{chosen: ami.OfRelease(all[0]), Config: Config{Minor: func(context.Context) (string, error) {
			if time.Since(began) >= 10*time.Second {
				minor = all[1].Minor()
			}
			return minor, nil
		}}}
		if k.pause(t.Context(), keptAgain); time.Since(began) != 10*time.Second {
			t.Errorf("the pause took %v", time.Since(began))
		}
		k.chosen, began = ami.OfRelease(all[1]), time.Now().Add(-10*time.Second)
		if k.pause(t.Context(), keptAgain); time.Since(began) != keptAgain+10*time.Second {
			t.Errorf("with the same minor the pause took %v", time.Since(began)-10*time.Second)
		}
	})
}
