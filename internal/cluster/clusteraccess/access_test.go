// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/machine/nodegroup"
)

const account = "000000000000"

func iamName(kind, path, name string) v1alpha1.IAMName {
	return v1alpha1.IAMName{Account: account, Path: path, Name: name, ARN: "arn:aws:iam::" + account + ":" + kind + path + name}
}

func iamRole(path, name, id string) *v1alpha1.IAMRole {
	return &v1alpha1.IAMRole{ObjectMeta: metav1.ObjectMeta{Name: account + "." + strings.ToLower(name)}, Spec: v1alpha1.IAMRoleSpec{IAMName: iamName("role", path, name), RoleID: id}}
}

func iamProfile(name, role string) *v1alpha1.IAMInstanceProfile {
	return &v1alpha1.IAMInstanceProfile{ObjectMeta: metav1.ObjectMeta{Name: account + "." + name}, Spec: v1alpha1.IAMInstanceProfileSpec{IAMName: iamName("instance-profile", "/", name), RoleID: role}}
}

func iamAdmin() *v1alpha1.IAMUser {
	return &v1alpha1.IAMUser{ObjectMeta: metav1.ObjectMeta{Name: account + ".admin"}, Spec: v1alpha1.IAMUserSpec{IAMName: iamName("user", "/", "admin"), UserID: "AIDA1"}}
}

func newAccess(t *testing.T, mode v1alpha1.AuthenticationMode, objects ...client.Object) Access {
	t.Helper()
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), accessv1alpha1.AddToScheme(scheme), iamv1alpha1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	store := identityservicetest.NewMemory()
	if err := store.Create(t.Context(), iam.Account{ID: account}); err != nil {
		t.Fatal(err)
	}
	return Access{
		management: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		cluster:    fake.NewClientBuilder().WithScheme(scheme).Build(), namespace: "blue", mode: mode,
		store: func() identityservice.Store { return store }, now: time.Now,
	}
}

func entriesOf(t *testing.T, a Access) map[string]accessv1alpha1.AccessEntrySpec {
	t.Helper()
	var list accessv1alpha1.AccessEntryList
	if err := a.cluster.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]accessv1alpha1.AccessEntrySpec{}
	for _, e := range list.Items {
		found[e.Name] = e.Spec
	}
	return found
}

func TestFirstOnesAreLetInOnce(t *testing.T) {
	a := newAccess(t, v1alpha1.AuthenticationAPI, iamAdmin(), iamRole("/", "muster-node-blue", "AROA1"))
	if err := a.first(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	want := map[string]accessv1alpha1.AccessEntrySpec{
		"cluster-creator": {
			PrincipalARN: "arn:aws:iam::000000000000:user/admin", PrincipalID: "AIDA1", Type: "STANDARD",
			AccessPolicies: []accessv1alpha1.AccessPolicy{{PolicyARN: clusterAdminPolicy, Scope: accessv1alpha1.AccessScope{Type: "cluster"}}},
		},
		"muster-node-blue": {PrincipalARN: "arn:aws:iam::000000000000:role/muster-node-blue", PrincipalID: "AROA1", Type: "EC2_LINUX"},
	}
	if diff := cmp.Diff(want, entriesOf(t, a)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if err := a.cluster.Delete(t.Context(), &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "cluster-creator"}}); err != nil {
		t.Fatal(err)
	}
	if err := a.first(t.Context(), true); err != nil || len(entriesOf(t, a)) != 1 {
		t.Errorf("whom somebody shut out is in again: %v, %v", err, entriesOf(t, a))
	}
}

func TestFirstOnesThatAreNotThereYet(t *testing.T) {
	for name, objects := range map[string][]client.Object{"nobody": nil, "no role": {iamAdmin()}, "no user": {iamRole("/", "muster-node-blue", "AROA1")}} {
		a := newAccess(t, v1alpha1.AuthenticationAPI, objects...)
		if err := a.first(t.Context(), true); err == nil {
			t.Errorf("%s: done", name)
		}
	}
	a := newAccess(t, v1alpha1.AuthenticationAPI, iamRole("/", "muster-node-blue", "AROA1"))
	if err := a.first(t.Context(), false); err != nil || len(entriesOf(t, a)) != 1 {
		t.Errorf("without a creator: %v, %v", err, entriesOf(t, a))
	}
}

func TestModeWithoutAccessEntries(t *testing.T) {
	a := newAccess(t, v1alpha1.AuthenticationConfigMap, iamAdmin(), iamRole("/", "muster-node-blue", "AROA1"))
	if err := a.first(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var list iamv1alpha1.IAMIdentityMappingList
	if err := a.cluster.List(t.Context(), &list); err != nil || len(list.Items) != 2 || len(entriesOf(t, a)) != 0 {
		t.Fatalf("%v, %+v", err, list.Items)
	}
	if node := list.Items[1].Spec; node.Username != "system:node:{{EC2PrivateDNSName}}" || node.Groups[1] != "system:nodes" {
		t.Errorf("%+v", node)
	}
}

func TestPrepareRole(t *testing.T) {
	for _, test := range []struct {
		name, role, want, reason string
		objects                  []client.Object
	}{
		{"by name", "workers", "workers", "", []client.Object{iamRole("/", "workers", "AROA1"), iamProfile("another", "AROA1"), iamProfile("workers", "AROA1")}},
		{"by a profile of another name", "workers", "a", "", []client.Object{iamRole("/", "workers", "AROA1"), iamProfile("b", "AROA1"), iamProfile("a", "AROA1")}},
		{"by ARN", "arn:aws:iam::000000000000:role/teams/workers", "workers", "", []client.Object{iamRole("/teams/", "workers", "AROA1"), iamProfile("workers", "AROA1")}},
		{"by the ARN of another path", "arn:aws:iam::000000000000:role/workers", "", reasonNoRole, []client.Object{&v1alpha1.IAMAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, iamRole("/teams/", "workers", "AROA1"), iamProfile("workers", "AROA1")}},
		{"of another account", "arn:aws:iam::111122223333:role/workers", "", reasonNoRole, []client.Object{iamRole("/", "workers", "AROA1"), iamProfile("workers", "AROA1")}},
		{"that is not there", "workers", "", reasonNoRole, []client.Object{&v1alpha1.IAMAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := &NodeRoles{Access: newAccess(t, v1alpha1.AuthenticationAPIAndConfigMap, test.objects...)}
			got, err := n.Prepare(t.Context(), test.role)
			problem, _ := errors.AsType[*nodegroup.RoleProblem](err)
			if got != test.want || (problem == nil) != (test.reason == "") || problem != nil && problem.Reason != test.reason {
				t.Errorf("%q, %v; want %q, %q", got, err, test.want, test.reason)
			}
			if known := entriesOf(t, n.Access); test.reason == "" && (len(known) != 1 || known["workers"].Type != "EC2_LINUX") {
				t.Errorf("entries %v", known)
			}
		})
	}
}

func TestPrepareWaitsForTheFirstAccount(t *testing.T) {
	n := &NodeRoles{Access: newAccess(t, v1alpha1.AuthenticationAPI)}
	_, err := n.Prepare(t.Context(), "muster-node-blue")
	if _, told := errors.AsType[*nodegroup.RoleProblem](err); err == nil || told {
		t.Errorf("a role that is on its way is told as a problem: %v", err)
	}
}

func TestPrepareLeavesAnEntryAlone(t *testing.T) {
	n := &NodeRoles{Access: newAccess(t, v1alpha1.AuthenticationAPI, iamRole("/", "workers", "AROA2"), iamProfile("workers", "AROA2"))}
	theirs := &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: "arn:aws:iam::000000000000:role/workers", PrincipalID: "AROA1"}}
	if err := n.Access.cluster.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Prepare(t.Context(), "workers"); err != nil {
		t.Fatal(err)
	}
	if known := entriesOf(t, n.Access); len(known) != 1 || known["theirs"].PrincipalID != "AROA1" {
		t.Errorf("entries %v", known)
	}
}

func TestEntryNames(t *testing.T) {
	for role, want := range map[string]string{"muster-node": "muster-node", "Team+A@x": "team-a-x", "_": "node-role", "a.B": "a.b", strings.Repeat("x", 64): strings.Repeat("x", 64)} {
		if got := entryName(role); got != want {
			t.Errorf("%s: %s, want %s", role, got, want)
		}
	}
	if got := notTaken("a", map[string]bool{"a": true, "a-2": true}); got != "a-3" {
		t.Error(got)
	}
}

// fakeKeys is an identity service.
type fakeKeys struct{ err error }

func (f fakeKeys) RoleCredentials(context.Context, string) (keyservice.RoleCredentials, error) {
	return keyservice.RoleCredentials{RoleName: "r", AccessKeyID: "ASIA1", SecretAccessKey: "s", SessionToken: "t"}, f.err
}

func TestCheckAsksTheAuthenticator(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-1"}, Status: v1alpha1.MachineStatus{NodeName: "node-1", Addresses: []corev1.NodeAddress{}}}
	for _, test := range []struct {
		name    string
		keys    fakeKeys
		status  int
		header  string
		user    string
		refusal string
		problem bool
	}{
		{"let in", fakeKeys{}, 200, "", "system:node:node-1", "", false},
		{"as another node", fakeKeys{}, 200, "", "system:node:node-2", "not-a-node", true},
		{"refused", fakeKeys{}, 403, `{"rule":"no-entry","saw":"r","fix":"f"}`, "", "refused by rule no-entry (M-IAM-01): r; f", true},
		{"refused without a reason", fakeKeys{}, 403, "", "", "refused by rule unknown", true},
		{"nobody can tell", fakeKeys{}, 503, `{"rule":"unavailable","saw":"down"}`, "", "", true},
		{"an answer that is none", fakeKeys{}, 200, "", "", "", true},
		{"no role", fakeKeys{err: &keyservice.Unknown{Code: "NoSuchEntity", Reason: "the role is gone"}}, 200, "", "", "refused by rule role-credentials/NoSuchEntity (M-IAM-12): the role is gone", true},
		{"launched just now", fakeKeys{err: &keyservice.Unknown{Code: keyservice.CodeNotYet, Reason: "it has no private DNS name yet"}}, 200, "", "", "", true},
		{"made just now", fakeKeys{err: &keyservice.Unknown{Code: "InvalidInstanceID.NotFound", Reason: "there is no instance"}}, 200, "", "", "", true},
		{"no identity service", fakeKeys{err: errors.New("down")}, 200, "", "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked struct{ Spec struct{ Token string } }
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				hosts, err := ststoken.NewHosts("aws", []string{"lab-1"}, nil)
				if err != nil {
					t.Error(err)
				}
				if r.Header.Get("Muster-Trial") == "" {
					t.Error("what comes of it would be told the machine")
				}
				if token, err := ststoken.Parse(asked.Spec.Token, "muster", hosts, now); err != nil || token.Signed.AccessKeyID != "ASIA1" {
					t.Errorf("asked with a token that is none: %v", err)
				}
				if test.header != "" {
					w.Header().Set("Muster-Refused", test.header)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(`{"status":{"authenticated":` + map[bool]string{true: "true", false: "false"}[test.user != ""] + `,"user":{"username":"` + test.user + `","groups":["system:nodes"]}}}`))
			}))
			defer server.Close()
			n := &NodeRoles{keys: test.keys, cluster: "muster", region: "lab-1", url: server.URL, http: server.Client()}
			n.now = func() time.Time { return now }
			err := n.Check(t.Context(), m)
			refusal, refused := errors.AsType[*nodegroup.Refusal](err)
			if (err != nil) != test.problem || refused != (test.refusal != "") || refused && !strings.Contains(refusal.Error(), test.refusal) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAuthenticatorRolesAreWhole(t *testing.T) {
	for _, object := range authenticatorRoles() {
		if kind := object.GetObjectKind().GroupVersionKind(); kind.Kind == "" || kind.Group != "rbac.authorization.k8s.io" {
			t.Errorf("%T has no kind", object)
		}
	}
	if kinds, err := Kinds(); err != nil || len(kinds) != 2 {
		t.Errorf("%d kinds, %v", len(kinds), err)
	}
}
