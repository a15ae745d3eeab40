// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/platform/watchretry/watchretrytest"
)

func aMachine(id, cluster, node, profile string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: id, UID: types.UID("uid-of-" + id)}, Spec: v1alpha1.MachineSpec{ClusterName: cluster, InstanceProfile: profile},
		Status: v1alpha1.MachineStatus{NodeName: node},
	}
}

// planeOf is a management plane in memory.
func planeOf(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return watchretrytest.Follow(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build())
}

// watched are the machines of a plane, all listed. Service hears of them if it is not nil.
func watched(t *testing.T, plane client.WithWatch, service *identityservice.Service) *identityservice.Machines {
	t.Helper()
	m := identityservice.NewMachines(plane)
	if service != nil {
		m.Tell(service)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	if err := m.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMachinesAreFound(t *testing.T) {
	going := aMachine("i-c", "blue", "going", "")
	going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{v1alpha1.FinalizerMachine}
	m := watched(t, planeOf(t, aMachine("i-a", "blue", "one", "node"), aMachine("i-b", "green", "", ""), going), nil)
	for _, c := range []struct {
		id, cluster string
		there, of   bool
		want        identityservice.Instance
	}{
		{"i-a", "blue", true, true, identityservice.Instance{Profile: "node", PrivateDNSName: "one", Cluster: "blue"}},
		{"i-a", "green", true, false, identityservice.Instance{Profile: "node", PrivateDNSName: "one", Cluster: "blue"}},
		{"i-b", "green", true, true, identityservice.Instance{Cluster: "green"}},
		{"i-c", "blue", true, true, identityservice.Instance{PrivateDNSName: "going", Cluster: "blue"}}, // until its instance is gone
		{"i-d", "blue", false, false, identityservice.Instance{}},
		{"", "", false, false, identityservice.Instance{}},
	} {
		if got, there := m.Lookup(c.id); there != c.there || got != c.want {
			t.Errorf("%s is %+v, %v", c.id, got, there)
		}
		if of := m.Of(c.cluster, c.id); of != c.of {
			t.Errorf("%s is of %s: %v", c.id, c.cluster, of)
		}
	}
	for _, c := range []struct{ cluster, node, want string }{
		{"blue", "one", "i-a"}, {"blue", "going", "i-c"}, {"green", "one", ""}, {"green", "", ""}, {"blue", "two", ""},
	} {
		got, found := m.OfNode(c.cluster, c.node)
		if found != (c.want != "") || found && got.Name != c.want {
			t.Errorf("the node %q of %s: %v, %v", c.node, c.cluster, got, found)
		}
	}
}

func TestMachinesThatWereNeverListed(t *testing.T) {
	m := identityservice.NewMachines(planeOf(t, aMachine("i-a", "blue", "one", "node")))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := m.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
	if _, there := m.Lookup("i-a"); there {
		t.Error("a machine is known before it was listed")
	}
}

// Authenticators forget what they know of a machine when its identity changes, and not whenever its status does.
func TestChangesOfMachinesAreTold(t *testing.T) {
	plane, w := planeOf(t, aMachine("i-a", "blue", "one", "node")), newWorld(t, nil)
	feed := w.service.Changes()
	defer feed.Close()
	marks := 0
	// told are the machines that are told of, before one that is made last. It is another one each time, as a watch may tell of a change twice.
	told := func() []string {
		t.Helper()
		marks++
		last := fmt.Sprint("i-z", marks)
		if err := plane.Create(t.Context(), aMachine(last, "blue", "", "")); err != nil {
			t.Fatal(err)
		}
		var all []string
		for deadline := time.After(time.Minute); ; {
			select {
			case <-feed.Ready():
				all = append(all, feed.Take().Instances...)
			case <-deadline:
				t.Fatal("the last change is not told: ", all)
			}
			if slices.Contains(all, last) {
				return slices.DeleteFunc(all, func(id string) bool { return strings.HasPrefix(id, "i-z") })
			}
		}
	}
	watched(t, plane, w.service)
	told() // the first list
	told()
	for _, c := range []struct {
		name   string
		change func(*v1alpha1.Machine)
		told   bool
	}{
		{"phase", func(m *v1alpha1.Machine) { m.Status.Phase = v1alpha1.MachineReady }, false},
		{"labels", func(m *v1alpha1.Machine) { m.Labels = map[string]string{"a": "b"} }, false},
		{"profile", func(m *v1alpha1.Machine) { m.Spec.InstanceProfile = "other" }, true},
		{"node", func(m *v1alpha1.Machine) { m.Status.NodeName = "two" }, true},
		{"another machine of the name", func(m *v1alpha1.Machine) { m.UID = "another" }, true},
	} {
		change(t, plane, "i-a", c.change)
		if got := told(); (len(got) > 0) != c.told {
			t.Errorf("%s: told of %q", c.name, got)
		}
	}
	if err := plane.Delete(t.Context(), aMachine("i-a", "", "", "")); err != nil {
		t.Fatal(err)
	}
	if got := told(); !slices.Equal(got, []string{"i-a"}) {
		t.Errorf("deleted: told of %q", got)
	}
	if err := plane.Create(t.Context(), aMachine("i-a", "blue", "one", "node")); err != nil {
		t.Fatal(err)
	}
	if got := told(); !slices.Equal(got, []string{"i-a"}) {
		t.Errorf("made: told of %q", got)
	}
}

func change(t *testing.T, plane client.Client, id string, how func(*v1alpha1.Machine)) {
	t.Helper()
	m := &v1alpha1.Machine{}
	if err := plane.Get(t.Context(), client.ObjectKey{Name: id}, m); err != nil {
		t.Fatal(err)
	}
	how(m)
	if err := plane.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}
