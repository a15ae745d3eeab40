// SPDX-License-Identifier: Apache-2.0

package podidentity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podidentity/podidentitytest"
	"muster.dev/muster/internal/platform/watchretry/watchretrytest"
)

const role = "arn:aws:iam::000000000000:role/app"

func association(namespace, id, cluster string, minute int) *v1alpha1.PodIdentityAssociation {
	return &v1alpha1.PodIdentityAssociation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: id, UID: types.UID("uid-" + id),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)),
		},
		Spec: v1alpha1.PodIdentityAssociationSpec{ClusterName: cluster, Namespace: "shop", ServiceAccount: "app", RoleARN: role},
	}
}

func watched(t *testing.T, objects ...client.Object) (*podidentity.Associations, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := watchretrytest.Follow(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build())
	all := podidentity.NewAssociations(api)
	if _, _, err := all.Of(demo(), "shop", "app"); !errors.Is(err, podidentity.ErrNotReady) {
		t.Fatalf("before anything is known: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); all.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	podidentitytest.Eventually(t, all.HasSynced)
	return all, api
}

func demo() podidentity.Cluster { return podidentity.Cluster{Name: "demo", Namespace: "demo"} }

func TestTheFirstAssociationCounts(t *testing.T) {
	all, api := watched(t,
		association("demo", "a-2", "demo", 2), association("demo", "a-1", "demo", 1), association("demo", "a-0", "demo", 2),
		association("other", "a-3", "demo", 0), // of another cluster's namespace
		association("demo", "a-4", "other", 0), // says that it is another cluster's
	)
	got, ok, err := all.Of(demo(), "shop", "app")
	if err != nil || !ok || got.ID != "a-1" || got.Role != role || got.Grant == "" {
		t.Fatalf("%+v, %v, %v", got, ok, err)
	}
	for _, none := range []struct{ namespace, account string }{{"shop", "web"}, {"bank", "app"}, {"", ""}} {
		if got, ok, err := all.Of(demo(), none.namespace, none.account); ok || err != nil {
			t.Errorf("%+v has %+v, %v", none, got, err)
		}
	}
	if err := api.Delete(t.Context(), association("demo", "a-1", "demo", 1)); err != nil {
		t.Fatal(err)
	}
	podidentitytest.Eventually(t, func() bool { got, _, _ := all.Of(demo(), "shop", "app"); return got.ID == "a-0" })
}

// A change of a field that a session depends on makes another grant, and no other change does.
func TestGrant(t *testing.T) {
	first := association("demo", "a-1", "demo", 1)
	all, api := watched(t, first)
	had, _, err := all.Of(demo(), "shop", "app")
	if err != nil {
		t.Fatal(err)
	}
	change := func(change func(*v1alpha1.PodIdentityAssociation)) string {
		t.Helper()
		now := &v1alpha1.PodIdentityAssociation{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(first), now); err != nil {
			t.Fatal(err)
		}
		change(now)
		now.Labels = map[string]string{"changed": strings.Repeat("x", len(now.ResourceVersion))}
		if err := api.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		var got podidentity.Association
		podidentitytest.Eventually(t, func() bool {
			got, _, _ = all.Of(demo(), "shop", "app")
			return got.Role == now.Spec.RoleARN && got.Target == now.Spec.TargetRoleARN && got.Policy == now.Spec.Policy && got.Untagged == now.Spec.DisableSessionTags
		})
		return got.Grant
	}
	if got := change(func(p *v1alpha1.PodIdentityAssociation) { p.Spec.Tags = v1alpha1.Tags{"team": "a"} }); got != had.Grant {
		t.Error("a tag of the association ends sessions")
	}
	seen := map[string]bool{had.Grant: true}
	for name, c := range map[string]func(*v1alpha1.PodIdentityAssociation){
		"role":   func(p *v1alpha1.PodIdentityAssociation) { p.Spec.RoleARN += "2" },
		"target": func(p *v1alpha1.PodIdentityAssociation) { p.Spec.TargetRoleARN = role },
		"tags":   func(p *v1alpha1.PodIdentityAssociation) { p.Spec.DisableSessionTags = true },
		"policy": func(p *v1alpha1.PodIdentityAssociation) { p.Spec.Policy = "{}" },
	} {
		if got := change(c); seen[got] {
			t.Errorf("another %s is the same grant", name)
		} else {
			seen[got] = true
		}
	}
}
