// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/machine/nodegroup"
)

// An authenticator is heard about machines of its own cluster that are there, and word for word.
func TestAnAuthenticatorIsHeardOfItsOwnMachines(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	machines := identityservice.NewMachines(fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-a"}, Spec: v1alpha1.MachineSpec{ClusterName: "blue"}},
		&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-b"}, Spec: v1alpha1.MachineSpec{ClusterName: "green"}},
		&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-c"}}, // of no cluster
	).Build())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); machines.Run(ctx) }()
	defer func() { stop(); <-ended }()
	if err := machines.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var heard []nodegroup.Heard
	hear := Hear(machines, func(h nodegroup.Heard) { heard = append(heard, h) })
	for _, c := range []struct {
		cluster, instance string
		heard             bool
	}{{"blue", "i-a", true}, {"blue", "i-b", false}, {"green", "i-b", true}, {"blue", "i-c", false}, {"blue", "i-gone", false}, {"green", "", false}} {
		heard = nil
		hear(c.cluster, c.instance, keyservice.Refused{Rule: "the rule", Saw: "what it saw", Fix: "the way out"})
		var want []nodegroup.Heard
		if c.heard {
			want = []nodegroup.Heard{{Machine: c.instance, Refusal: nodegroup.Refusal{Rule: "the rule", Saw: "what it saw", Fix: "the way out"}}}
		}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("%s about %q (-want +got):\n%s", c.cluster, c.instance, diff)
		}
	}
}
