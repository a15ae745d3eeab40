// SPDX-License-Identifier: Apache-2.0

package authcheck_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/iam/authcheck"
	"muster.dev/muster/internal/iam/identity"
)

const dev = "arn:aws:iam::111122223333:role/dev"

func principal(t *testing.T, s authcheck.Supposed) *identity.Principal {
	t.Helper()
	p, err := s.Principal()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func entry(meta metav1.ObjectMeta, id string) accessv1alpha1.AccessEntry {
	return accessv1alpha1.AccessEntry{ObjectMeta: meta, Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: dev, Username: "e", PrincipalID: id}}
}

func mapping(meta metav1.ObjectMeta) iamauthenticatorv1alpha1.IAMIdentityMapping {
	return iamauthenticatorv1alpha1.IAMIdentityMapping{ObjectMeta: meta, Spec: iamauthenticatorv1alpha1.IAMIdentityMappingSpec{ARN: dev, Username: "m"}}
}

func awsAuth(meta metav1.ObjectMeta) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"mapRoles": "[{rolearn: '" + dev + "', username: c}]"}}
}

func TestACluster(t *testing.T) {
	t.Parallel()
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	going := func(name string) metav1.ObjectMeta {
		now := metav1.Now()
		return metav1.ObjectMeta{Name: name, DeletionTimestamp: &now, Finalizers: []string{"example.com/keeps"}}
	}
	made := named("e")
	made.CreationTimestamp = metav1.Now()
	unknown := entry(made, "")
	unknown.Status.Conditions = []metav1.Condition{{Type: accessv1alpha1.ConditionPrincipalKnown, Status: metav1.ConditionFalse, Message: "there was no such role"}}
	entries := func(e ...accessv1alpha1.AccessEntry) *accessv1alpha1.AccessEntryList {
		return &accessv1alpha1.AccessEntryList{Items: e}
	}
	mappings := func(m ...iamauthenticatorv1alpha1.IAMIdentityMapping) *iamauthenticatorv1alpha1.IAMIdentityMappingList {
		return &iamauthenticatorv1alpha1.IAMIdentityMappingList{Items: m}
	}
	for name, test := range map[string]struct {
		cluster authcheck.Cluster
		user    string // that a session of dev becomes; "" is nobody
		notes   []string
	}{
		"nothing":       {authcheck.Cluster{}, "", []string{"The cluster has no kind AccessEntry.", "The cluster has no ConfigMap kube-system/aws-auth."}},
		"each":          {authcheck.Cluster{AccessEntries: entries(entry(named("e"), "AROAEXAMPLEEXAMPLE123")), Mappings: mappings(mapping(named("m"))), AWSAuth: awsAuth(named("aws-auth"))}, "e", []string{"Supposed that it is AROAEXAMPLEEXAMPLE123, "}},
		"no entry":      {authcheck.Cluster{AccessEntries: entries(), Mappings: mappings(mapping(named("m"))), AWSAuth: awsAuth(named("aws-auth"))}, "m", nil},
		"aws-auth only": {authcheck.Cluster{AccessEntries: entries(), AWSAuth: awsAuth(named("aws-auth"))}, "c", nil},
		"all of it is being deleted": {
			authcheck.Cluster{AccessEntries: entries(entry(going("e"), "AROAEXAMPLEEXAMPLE123")), Mappings: mappings(mapping(going("m"))), AWSAuth: awsAuth(going("aws-auth"))},
			"",
			[]string{"AccessEntry e is being deleted", "IAMIdentityMapping m is being deleted", "ConfigMap aws-auth is being deleted"},
		},
		"an id that nobody knows":  {authcheck.Cluster{AccessEntries: entries(unknown), AWSAuth: awsAuth(named("aws-auth"))}, "c", []string{"AccessEntry e: there was no such role."}},
		"an id that is not needed": {authcheck.Cluster{AccessEntries: entries(entry(made, "")), AWSAuth: awsAuth(named("aws-auth"))}, "e", []string{"AccessEntry e has no spec.principalID: any principal with the ARN " + dev}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := authcheck.OfCluster(test.cluster)
			got := e.Check(identity.Options{}, principal(t, authcheck.Supposed{ARN: dev}))
			if got.Outcome.User.Name != test.user || got.Good() != (test.user != "") {
				t.Errorf("becomes %q, want %q: %+v", got.Outcome.User.Name, test.user, got.Outcome)
			}
			if !slices.EqualFunc(e.Notes, test.notes, strings.HasPrefix) {
				t.Errorf("notes %q, want %q", e.Notes, test.notes)
			}
		})
	}
	// All that they give is listed, with what is wrong.
	grants, problems := authcheck.OfCluster(authcheck.Cluster{AccessEntries: entries(unknown), AWSAuth: awsAuth(named("aws-auth"))}).Grants(identity.Options{})
	if len(grants) != 2 || grants[0].Used || !grants[1].Used || grants[1].Entry != "mapRoles[0]" || len(problems) != 1 || !problems[0].Unused {
		t.Errorf("%+v %+v", grants, problems)
	}
	// The id that is given counts, whatever the entry has.
	e := authcheck.OfCluster(authcheck.Cluster{AccessEntries: entries(entry(named("e"), "AROAEXAMPLEEXAMPLE123")), AWSAuth: awsAuth(named("aws-auth"))})
	p := principal(t, authcheck.Supposed{ARN: dev, UserID: "AROAEXAMPLEEXAMPLE000"})
	if got := e.Check(identity.Options{}, p); got.Outcome.User.Name != "c" || p.UserID != "AROAEXAMPLEEXAMPLE000" {
		t.Errorf("%+v", got.Outcome)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	e := &authcheck.Entries{}
	manifest := `{apiVersion: v1, kind: ConfigMap, metadata: {name: aws-auth}, data: {maproles: "[]"}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: aws-auth, namespace: elsewhere}}
- {apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: e}, spec: {principalARN: "` + dev + `", username: e, userName: x}}
- {apiVersion: iamauthenticator.k8s.aws/v1alpha1, kind: IAMIdentityMapping, metadata: {name: m}, spec: {arn: 1}}
`
	if err := e.AddManifest("manifest.yaml", []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	e.AddMounted([]byte("mapUsers: [{userarn: 'arn:aws:iam::111122223333:user/bert', username: bert}]"))
	if want := []string{"The ConfigMap elsewhere/aws-auth is left out: only kube-system/aws-auth is read."}; !slices.Equal(e.Notes, want) {
		t.Errorf("notes %q", e.Notes)
	}
	got := e.Check(identity.Options{}, nil)
	var problems []string
	for _, p := range got.Problems {
		used := "used"
		if p.Unused {
			used = "unused"
		}
		problems = append(problems, strings.Join([]string{string(p.Source), p.Entry, p.Field, used}, " "))
	}
	if want := []string{"aws-auth  maproles unused", "AccessEntry e  used", "IAMIdentityMapping m  unused"}; got.Entries != 2 || got.Good() || !slices.Equal(problems, want) {
		t.Errorf("%d entries, problems %q, want %q", got.Entries, problems, want)
	}
	for text, want := range map[string]string{
		"a: [": "manifest.yaml, document 1: is not YAML",
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod}]}": `manifest.yaml, document 1: item 0: is a "Pod" of "v1"; there are`,
		"[1]":                               "manifest.yaml, document 1: is not a Kubernetes object",
		"mapRoles: []":                      "manifest.yaml, document 1: is a \"\" of \"\"",
		"{apiVersion: v2, kind: ConfigMap}": `manifest.yaml, document 1: is a "ConfigMap" of "v2"`,
	} {
		if err := (&authcheck.Entries{}).AddManifest("manifest.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestPrincipal(t *testing.T) {
	t.Parallel()
	instance := &identity.Instance{ID: "i-0123456789abcdef0"}
	for _, test := range []struct {
		supposed     authcheck.Supposed
		arn, session string
	}{
		{authcheck.Supposed{ARN: dev}, "arn:aws:sts::111122223333:assumed-role/dev/session", "session"},
		{authcheck.Supposed{ARN: dev, Instance: instance}, "arn:aws:sts::111122223333:assumed-role/dev/i-0123456789abcdef0", "i-0123456789abcdef0"},
		{authcheck.Supposed{ARN: dev, SessionName: "anna", Instance: instance}, "arn:aws:sts::111122223333:assumed-role/dev/anna", "anna"},
		{authcheck.Supposed{ARN: "arn:aws:sts::111122223333:assumed-role/dev/bert", SessionName: "anna"}, "arn:aws:sts::111122223333:assumed-role/dev/bert", "bert"},
		{authcheck.Supposed{ARN: "arn:aws:iam::111122223333:user/anna", UserID: "AIDA1"}, "arn:aws:iam::111122223333:user/anna", ""},
	} {
		p := principal(t, test.supposed)
		if p.ARN.String() != test.arn || p.SessionName != test.session || p.Account != "111122223333" || p.UserID != test.supposed.UserID || p.Instance != test.supposed.Instance {
			t.Errorf("%+v: %+v", test.supposed, p)
		}
	}
	for supposed, want := range map[authcheck.Supposed]string{
		{ARN: "dev"}:                   "",
		{ARN: "arn:aws:s3:::bucket"}:   "names nobody",
		{ARN: dev, SessionName: "a:b"}: `invalid session name "a:b": must be 2 to 64 letters, digits or +=,.@-_`,
		{ARN: dev, SessionName: "a"}:   `invalid session name "a"`,
	} {
		if p, err := supposed.Principal(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %+v, %v", supposed, p, err)
		}
	}
}
