// SPDX-License-Identifier: Apache-2.0

package principalid

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

const account = "000000000000"

func iamName(kind, path, name string) v1alpha1.IAMName {
	return v1alpha1.IAMName{Account: account, Path: path, Name: name, ARN: "arn:aws:iam::" + account + ":" + kind + path + name}
}

const aliceARN = "arn:aws:iam::000000000000:user/alice"

// iamAlice is a user as the management plane keeps it: made at one time, under its name since another.
func iamAlice(id string, made, named time.Time) *v1alpha1.IAMUser {
	u := &v1alpha1.IAMUser{
		ObjectMeta: metav1.ObjectMeta{Name: account + ".alice", CreationTimestamp: metav1.NewTime(named)},
		Spec:       v1alpha1.IAMUserSpec{IAMName: iamName("user", "/", "alice"), UserID: id},
	}
	u.Spec.Created = metav1.NewTime(made)
	return u
}

// newPrincipalIDs has one access entry for alice, as kubectl makes it at that time.
func newPrincipalIDs(t *testing.T, entry time.Time, users ...client.Object) Binder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), accessv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	object := &accessv1alpha1.AccessEntry{
		ObjectMeta: metav1.ObjectMeta{Name: "alice", CreationTimestamp: metav1.NewTime(entry)},
		Spec:       accessv1alpha1.AccessEntrySpec{PrincipalARN: aliceARN, Type: accessv1alpha1.TypeStandard},
	}
	return Binder{
		management: fake.NewClientBuilder().WithScheme(scheme).WithObjects(users...).Build(),
		cluster:    fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithStatusSubresource(object).Build(),
		log:        slog.New(slog.DiscardHandler), now: time.Now,
	}
}

// bound is what became of the entry: an id, or why there is none.
func (p Binder) bound(t *testing.T) (id, why string) {
	t.Helper()
	var entry accessv1alpha1.AccessEntry
	if err := p.cluster.Get(t.Context(), client.ObjectKey{Name: "alice"}, &entry); err != nil {
		t.Fatal(err)
	}
	if known := meta.FindStatusCondition(entry.Status.Conditions, accessv1alpha1.ConditionPrincipalKnown); known != nil && known.Status == metav1.ConditionFalse {
		why = known.Reason
	}
	return entry.Spec.PrincipalID, why
}

func TestAnEntryIsForWhoIsThereWhenItIsMade(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		users   []client.Object
		id, why string
	}{
		"made before":             {[]client.Object{iamAlice("AIDA1", noon.Add(-time.Hour), noon.Add(-time.Hour))}, "AIDA1", ""},
		"made in the same second": {[]client.Object{iamAlice("AIDA1", noon, noon)}, "AIDA1", ""},
		"made again after it":     {[]client.Object{iamAlice("AIDA2", noon.Add(time.Second), noon.Add(time.Second))}, "", "NewerPrincipal"},
		"renamed to it after it":  {[]client.Object{iamAlice("AIDA2", noon.Add(-time.Hour), noon.Add(time.Second))}, "", "NewerPrincipal"},
		"nobody":                  {nil, "", "NoPrincipal"},
		"somebody else": {[]client.Object{
			&v1alpha1.IAMUser{ObjectMeta: metav1.ObjectMeta{Name: account + ".admin"}, Spec: v1alpha1.IAMUserSpec{IAMName: iamName("user", "/", "admin"), UserID: "AIDA1"}},
			&v1alpha1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: account + ".alice"}, Spec: v1alpha1.IAMRoleSpec{IAMName: iamName("role", "/", "alice"), RoleID: "AROA1"}},
		}, "", "NoPrincipal"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPrincipalIDs(t, noon, c.users...)
			for range 2 { // the second time changes nothing
				if err := p.bind(t.Context(), "alice"); err != nil {
					t.Fatal(err)
				}
				if id, why := p.bound(t); id != c.id || why != c.why {
					t.Errorf("the entry is for %q (%s), want %q (%s)", id, why, c.id, c.why)
				}
			}
		})
	}
}

// A decision stays: a principal that gets the name later, in whatever way, is not let in by it.
func TestAnEntryForNobodyStaysForNobody(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	p := newPrincipalIDs(t, noon)
	if err := p.bind(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if err := p.management.(client.Client).Create(t.Context(), iamAlice("AIDA1", noon.Add(-time.Hour), noon.Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
	if err := p.bind(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if id, why := p.bound(t); id != "" || why != "NoPrincipal" {
		t.Errorf("the entry is for %q (%s)", id, why)
	}
	// An operator who knows better writes the id, and the condition follows.
	var entry accessv1alpha1.AccessEntry
	if err := p.cluster.Get(t.Context(), client.ObjectKey{Name: "alice"}, &entry); err != nil {
		t.Fatal(err)
	}
	entry.Spec.PrincipalID = "AIDA1"
	if err := errors.Join(p.cluster.Update(t.Context(), &entry), p.bind(t.Context(), "alice")); err != nil {
		t.Fatal(err)
	}
	if id, why := p.bound(t); id != "AIDA1" || why != "" {
		t.Errorf("the entry is for %q (%s)", id, why)
	}
	if err := p.bind(t.Context(), "gone"); err != nil {
		t.Error("an entry that is gone:", err)
	}
}
