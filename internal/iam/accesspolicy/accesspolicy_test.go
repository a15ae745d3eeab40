// SPDX-License-Identifier: Apache-2.0

package accesspolicy

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
)

const arnPrefix = "arn:aws:eks::aws:cluster-access-policy/"

// world is a cluster with a reconciler, in which writes of a name can be made to fail.
type world struct {
	client.Client
	*Reconciler
	fails   string
	writes  int
	deleted []string
	// before is done before a binding is applied or deleted, or a status written: it is what somebody else does
	// meanwhile. Its result, if any, is the API server's answer.
	before func(c client.Client) error
}

// meanwhile does once what somebody else does between reading and writing.
func (w *world) meanwhile(c client.Client) error {
	do := w.before
	if w.before = nil; do == nil {
		return nil
	}
	return do(c)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, accessv1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{}
	w.Client = fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).WithStatusSubresource(&accessv1alpha1.AccessEntry{}).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			named, ok := object.(interface {
				GetName() *string
				GetNamespace() *string
			})
			if err := w.meanwhile(c); err != nil {
				return err
			}
			if w.writes++; ok && w.fails != "" && strings.HasSuffix(*named.GetName(), w.fails) {
				return errors.New("the API server is away")
			}
			return c.Apply(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := w.meanwhile(c); err != nil {
				return err
			}
			if w.writes++; w.fails != "" && strings.HasSuffix(object.GetName(), w.fails) {
				return errors.New("the API server is away")
			}
			w.deleted = append(w.deleted, object.GetNamespace()+"/"+object.GetName())
			return c.Delete(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := w.meanwhile(c); err != nil {
				return err
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	}).Build()
	r, err := New(w.Client, Config{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	w.Reconciler = r
	return w
}

func (w *world) reconcile(t *testing.T, name string) error {
	t.Helper()
	_, err := w.Reconcile(t.Context(), request(name))
	return err
}

// bindings are all there are, each as "namespace/name role subjects".
func (w *world) bindings(t *testing.T) []string {
	t.Helper()
	var out []string
	add := func(namespace, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		line := namespace + "/" + name + " " + role.Name
		for _, s := range subjects {
			line += " " + s.Kind + ":" + s.Name
		}
		out = append(out, line)
	}
	cluster, namespaced := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	if err := errors.Join(w.List(t.Context(), cluster), w.List(t.Context(), namespaced)); err != nil {
		t.Fatal(err)
	}
	for _, b := range cluster.Items {
		add(b.Namespace, b.Name, b.RoleRef, b.Subjects)
	}
	for _, b := range namespaced.Items {
		add(b.Namespace, b.Name, b.RoleRef, b.Subjects)
	}
	slices.Sort(out)
	return out
}

func (w *world) condition(t *testing.T, name string) string {
	t.Helper()
	entry := &accessv1alpha1.AccessEntry{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: name}, entry); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(entry.Status.Conditions, accessv1alpha1.ConditionPoliciesApplied)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func entry(name string, policies ...accessv1alpha1.AccessPolicy) *accessv1alpha1.AccessEntry {
	return &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: accessv1alpha1.AccessEntrySpec{Type: accessv1alpha1.TypeStandard, AccessPolicies: policies}}
}

func policy(name string, namespaces ...string) accessv1alpha1.AccessPolicy {
	p := accessv1alpha1.AccessPolicy{PolicyARN: arnPrefix + name, Scope: accessv1alpha1.AccessScope{Type: accessv1alpha1.ScopeCluster}}
	if len(namespaces) > 0 {
		p.Scope = accessv1alpha1.AccessScope{Type: accessv1alpha1.ScopeNamespace, Namespaces: namespaces}
	}
	return p
}

// A group is called after the name of its entry. The bindings of an entry of that name go with it even if nobody
// reconciles: by the garbage collector.
func TestBindingsBelongToTheVeryEntry(t *testing.T) {
	w := newWorld(t, namespace("dev-a"))
	for _, uid := range []types.UID{"uid-1", "uid-2"} {
		e := entry("e", policy("AmazonEKSViewPolicy"), policy("AmazonEKSEditPolicy", "dev-a"))
		e.UID = uid
		if err := w.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			w.writes = 0
			if err := w.reconcile(t, "e"); err != nil {
				t.Fatal(err)
			}
		}
		if w.writes > 0 {
			t.Errorf("%s: again: %d writes", uid, w.writes)
		}
		want := []metav1.OwnerReference{{APIVersion: "access.muster.dev/v1alpha1", Kind: "AccessEntry", Name: "e", UID: uid}}
		cluster, namespaced := &rbacv1.ClusterRoleBinding{}, &rbacv1.RoleBinding{}
		if err := errors.Join(w.Get(t.Context(), client.ObjectKey{Name: "muster:access-entry:e:AmazonEKSViewPolicy"}, cluster),
			w.Get(t.Context(), client.ObjectKey{Namespace: "dev-a", Name: "muster:access-entry:e:AmazonEKSEditPolicy"}, namespaced)); err != nil {
			t.Fatal(err)
		}
		for _, got := range [][]metav1.OwnerReference{cluster.OwnerReferences, namespaced.OwnerReferences} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: owners (-want +got):\n%s", uid, diff)
			}
		}
		if err := w.Delete(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBindingsFollowTheirEntryAndNamespaces(t *testing.T) {
	w := newWorld(t, entry("e", policy("AmazonEKSViewPolicy", "dev-*")), entry("f", policy("AmazonEKSViewPolicy")), namespace("dev-a"))
	step := func(want ...string) {
		t.Helper()
		for _, name := range []string{"e", "f"} {
			if err := w.reconcile(t, name); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, w.bindings(t)); diff != "" {
			t.Errorf("bindings (-want +got):\n%s", diff)
		}
	}
	change := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const f = "/muster:access-entry:f:AmazonEKSViewPolicy view Group:muster:access-entry:f"
	const e = "muster:access-entry:e:AmazonEKSViewPolicy view Group:muster:access-entry:e"
	step(f, "dev-a/"+e)

	change(w.Create(t.Context(), namespace("dev-b")))
	if got := w.ofNamespace(t.Context(), namespace("dev-b")); len(got) != 1 || got[0].Name != "e" {
		t.Errorf("a new namespace concerns %v", got)
	}
	step(f, "dev-a/"+e, "dev-b/"+e)

	// Somebody widens one, and points another at another role.
	binding := &rbacv1.RoleBinding{}
	change(w.Get(t.Context(), client.ObjectKey{Namespace: "dev-a", Name: "muster:access-entry:e:AmazonEKSViewPolicy"}, binding))
	binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "mallory"})
	change(w.Update(t.Context(), binding))
	if got := ofBinding(t.Context(), binding); len(got) != 1 || got[0].Name != "e" {
		t.Errorf("a changed binding concerns %v", got)
	}
	other := &rbacv1.RoleBinding{}
	change(w.Get(t.Context(), client.ObjectKey{Namespace: "dev-b", Name: "muster:access-entry:e:AmazonEKSViewPolicy"}, other))
	change(w.Delete(t.Context(), other))
	other.ResourceVersion, other.RoleRef.Name = "", "cluster-admin"
	change(w.Create(t.Context(), other))
	w.deleted = nil
	step(f, "dev-a/"+e, "dev-b/"+e)
	if diff := cmp.Diff([]string{"dev-b/muster:access-entry:e:AmazonEKSViewPolicy"}, w.deleted); diff != "" { // API servers, unlike the fake, keep the role of a binding
		t.Errorf("made again (-want +got):\n%s", diff)
	}

	changed := &accessv1alpha1.AccessEntry{}
	change(w.Get(t.Context(), client.ObjectKey{Name: "e"}, changed))
	changed.Spec.AccessPolicies = []accessv1alpha1.AccessPolicy{policy("AmazonEKSEditPolicy", "dev-b")}
	change(w.Update(t.Context(), changed))
	step(f, "dev-b/muster:access-entry:e:AmazonEKSEditPolicy edit Group:muster:access-entry:e")

	change(w.Delete(t.Context(), changed))
	step(f)
}

// theirs is a binding that may be this part's by one of its marks alone.
func theirs(name, label, of string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{LabelManaged: label}, Annotations: map[string]string{AnnotationEntry: of}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
}

func TestWhatOthersMadeStays(t *testing.T) {
	w := newWorld(t, theirs("system:node", managed, "e"), theirs("muster:access-entry:e:x", "somebody", "e"), theirs("muster:access-entry:f:x", managed, "f"), theirs("muster:access-entry:e:gone", managed, "e"))
	if err := w.reconcile(t, "e"); err != nil {
		t.Fatal(err)
	}
	want := []string{"/muster:access-entry:e:x view", "/muster:access-entry:f:x view", "/system:node view"}
	if diff := cmp.Diff(want, w.bindings(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOneThatFailsKeepsNothingElseFromBeingDone(t *testing.T) {
	w := newWorld(t, entry("e", policy("AmazonEKSViewPolicy"), policy("AmazonEKSEditPolicy")))
	w.fails = "AmazonEKSViewPolicy"
	if err := w.reconcile(t, "e"); err == nil {
		t.Error("no error, so it would not be tried again")
	}
	if got := w.bindings(t); len(got) != 1 {
		t.Error(got)
	}
	if got := w.condition(t, "e"); got != "False Failed: applying the binding muster:access-entry:e:AmazonEKSViewPolicy: the API server is away" {
		t.Error(got)
	}
	w.fails = ""
	if err := w.reconcile(t, "e"); err != nil || len(w.bindings(t)) != 2 || !strings.HasPrefix(w.condition(t, "e"), "True") {
		t.Error(err, w.bindings(t), w.condition(t, "e"))
	}
	// Removing goes on in the same way.
	if err := w.Delete(t.Context(), entry("e")); err != nil {
		t.Fatal(err)
	}
	w.fails = "AmazonEKSEditPolicy"
	if err := w.reconcile(t, "e"); err == nil || len(w.bindings(t)) != 1 {
		t.Error(err, w.bindings(t))
	}
}

// Writes by others between reading and writing are not failures: none of it is an error, which would be a line in the
// log, and all of it comes out right in the end.
func TestWhatOthersDoMeanwhileIsNoError(t *testing.T) {
	ctx := t.Context()
	view := []accessv1alpha1.AccessPolicy{policy("AmazonEKSViewPolicy")}
	viewDev := []accessv1alpha1.AccessPolicy{policy("AmazonEKSViewPolicy", "dev")}
	bound := []string{"dev/muster:access-entry:e:AmazonEKSViewPolicy view Group:muster:access-entry:e"}
	deleted := func(c client.Client) error { return c.Delete(ctx, entry("e")) }
	ending := apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "x", errors.New("unable to create new content in namespace dev because it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		policies []accessv1alpha1.AccessPolicy
		there    *rbacv1.ClusterRoleBinding
		before   func(client.Client) error
		again    bool // no watch tells of it
		want     []string
	}{
		"the entry is deleted before its binding is made":   {policies: view, before: deleted},
		"the entry is deleted before its status is written": {before: deleted},
		"the entry is made anew before its status is written": {again: true, before: func(c client.Client) error {
			return errors.Join(c.Delete(ctx, entry("e")), c.Create(ctx, entry("e")))
		}},
		"another condition is written": {again: true, before: func(c client.Client) error {
			e := &accessv1alpha1.AccessEntry{}
			err := c.Get(ctx, client.ObjectKey{Name: "e"}, e)
			meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: accessv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Mapped"})
			return errors.Join(err, c.Status().Update(ctx, e))
		}},
		"the namespace ends":    {policies: viewDev, before: func(client.Client) error { return ending }, want: bound},
		"the namespace is gone": {policies: viewDev, before: func(client.Client) error { return apierrors.NewNotFound(corev1.Resource("namespaces"), "dev") }, want: bound},
		"another is made under the name of a binding": {there: theirs("muster:access-entry:e:x", managed, "e"), before: func(c client.Client) error {
			other := theirs("muster:access-entry:e:x", "somebody", "e")
			return errors.Join(c.Delete(ctx, theirs(other.Name, managed, "e")), c.Create(ctx, other),
				apierrors.NewConflict(rbacv1.Resource("clusterrolebindings"), other.Name, errors.New("Precondition failed: UID in precondition: a, UID in object meta: b")))
		}, want: []string{"/muster:access-entry:e:x view"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{entry("e", tc.policies...), namespace("dev")}
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			w := newWorld(t, objects...)
			w.before = tc.before
			result, err := w.Reconcile(t.Context(), request("e"))
			if err != nil {
				t.Fatalf("an error: %v", err)
			}
			if w.before != nil {
				t.Fatal("nothing was written")
			}
			if (result.RequeueAfter > 0) != tc.again || result.RequeueAfter > time.Second {
				t.Errorf("it is tried again after %s", result.RequeueAfter)
			}
			if err := w.reconcile(t, "e"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, w.bindings(t)); diff != "" {
				t.Errorf("bindings (-want +got):\n%s", diff)
			}
			if err := w.Get(t.Context(), client.ObjectKey{Name: "e"}, &accessv1alpha1.AccessEntry{}); err == nil && !strings.HasPrefix(w.condition(t, "e"), "True") {
				t.Errorf("condition %s", w.condition(t, "e"))
			}
		})
	}
}
