// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamauthenticatorv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/iam/authcheck"
)

const authManifest = `# one of each
apiVersion: v1
kind: ConfigMap
metadata: {name: aws-auth, namespace: kube-system}
data:
  mapRoles: |
    - rolearn: arn:aws:iam::111122223333:role/dev
      username: dev:{{SessionName}}
      groups: [system:masters]
    - rolearn: arn:aws:iam::111122223333:instance-profile/nodes
      username: system:node:{{EC2PrivateDNSName}}
      groups: [system:bootstrappers, system:nodes]
---
apiVersion: v1
kind: List
items:
- apiVersion: access.muster.dev/v1alpha1
  kind: AccessEntry
  metadata: {name: nodes}
  spec: {principalARN: "arn:aws:iam::111122223333:role/p/nodes", type: EC2_LINUX}
- apiVersion: iamauthenticator.k8s.aws/v1alpha1
  kind: IAMIdentityMapping
  metadata: {name: anna}
  spec: {arn: "arn:aws:iam::111122223333:user/anna", username: anna, groups: [team]}
`

// tooLong is the name of a role in eksctl's example of an aws-auth.
const (
	tooLong         = "eksctl-my-cluster-nodegroup-standard-wo-NodeInstanceRole-1WP3NUE3O6UCF"
	tooLongManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: aws-auth, namespace: kube-system}
data:
  mapRoles: |
    - rolearn: arn:aws:iam::111122223333:role/%s
      username: system:node:{{EC2PrivateDNSName}}
      groups: [system:bootstrappers, system:nodes]
---
apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: nodes}
spec: {principalARN: "arn:aws:iam::111122223333:role/%s", type: EC2_LINUX}
`
)

// authBench runs "muster auth" over a cluster with these objects.
func authBench(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*clitest.Bench, func(args ...string) error) {
	t.Helper()
	b := clitest.NewBench(t, interceptor.Funcs{})
	scheme, err := kinds.NewAuthScheme()
	if err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	c := &authCommand{Options: b.O, cluster: func(*terminal.Options) (*kinds.Client, error) {
		return &kinds.Client{WithWatch: reader, Name: kinds.TheCluster, Address: "127.0.0.1:1"}, nil
	}}
	return b, func(args ...string) error {
		return b.Run(t.Context(), c.command(), append([]string{"check"}, args...)...)
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAuthCheckOfFiles(t *testing.T) {
	t.Parallel()
	manifest := written(t, authManifest)
	mounted := written(t, "mapUsers: [{userarn: 'arn:aws:iam::111122223333:user/bert', username: bert}]\n")
	const dev, nodes = "arn:aws:iam::111122223333:role/dev", "arn:aws:iam::111122223333:role/nodes"
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		want   []string // each in the output
	}{
		{"one entry is bad", []string{"-f", manifest}, 1, []string{"aws-auth   mapRoles[1]   rolearn   no     it is the ARN of an instance profile", "give that of the role in it"}},
		{"a name that no role can have", []string{"-f", written(t, fmt.Sprintf(tooLongManifest, tooLong, tooLong))}, 1, []string{
			"AccessEntry   nodes         spec.principalARN   no     it has a name of 70 characters, and IAM's have at most 64, so nobody is meant: arn:aws:iam::111122223333:role/" + tooLong,
			"aws-auth      mapRoles[0]   rolearn             no     it has a name of 70 characters", "give the ARN as aws iam get-role says",
		}},
		{"nothing is wrong", []string{"--file", mounted}, 0, []string{"Nothing is wrong with 1 entry."}},
		{"a role", []string{"-f", manifest, dev}, 0, []string{"becomes the user dev:session\nin the groups system:masters\nby aws-auth mapRoles[0].", "nodes", "it is for arn:aws:iam::111122223333:role/p/nodes"}},
		{"a session", []string{"-f", manifest, "arn:aws:sts::111122223333:assumed-role/dev/anna"}, 0, []string{"becomes the user dev:anna\n"}},
		{"a named session", []string{"-f", manifest, dev, "--session-name", "bert"}, 0, []string{"becomes the user dev:bert\n"}},
		{"a user by an object", []string{"-f", manifest, "arn:aws:iam::111122223333:user/anna"}, 0, []string{"becomes the user anna\nin the groups team\nby IAMIdentityMapping anna."}},
		{"a user by the file", []string{"-f", manifest, "--file", mounted, "arn:aws:iam::111122223333:user/bert"}, 0, []string{"becomes the user bert\nby file mapUsers[0]."}},
		{"a node that is not proven", []string{"-f", manifest, nodes}, 1, []string{"is not let in: the session \"session\" is not proven", "Only the instance itself gets it", "nodes   refuses"}},
		{"a node", []string{"-f", manifest, nodes, "--instance", "i-0123456789abcdef0", "--private-dns-name", "ip-10-0-0-1.local"}, 0, []string{"becomes the user system:node:ip-10-0-0-1.local\nin the groups system:nodes\n"}},
		{"nobody", []string{"-f", manifest, "arn:aws:iam::111122223333:role/other"}, 1, []string{"is not let in: no entry names arn:aws:iam::111122223333:role/other."}},
		{"the mode does not ask aws-auth", []string{"-f", manifest, "--mode", "API", dev}, 1, []string{"the authentication mode API does not ask this source"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, check := authBench(t, interceptor.Funcs{})
			err := check(tc.args...)
			var status terminal.ExitStatus
			if errors.As(err, &status); int(status) != tc.status || err != nil && status == 0 {
				t.Fatalf("%v, want status %d\n%s", err, tc.status, b.Err.String())
			}
			for _, want := range tc.want {
				if !strings.Contains(b.Out.String(), want) {
					t.Errorf("no %q in:\n%s", want, b.Out.String())
				}
			}
		})
	}
}

func TestAuthCheckAsData(t *testing.T) {
	t.Parallel()
	b, check := authBench(t, interceptor.Funcs{})
	if err := check("-f", written(t, authManifest), "-o", "json", "arn:aws:iam::111122223333:role/dev"); err != nil {
		t.Fatal(err)
	}
	var got authcheck.Result
	if err := json.Unmarshal(b.Out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Entries != 3 || len(got.Problems) != 1 || !got.Outcome.Mapped || got.Outcome.User.Name != "dev:session" || len(got.Outcome.Checks) != 3 {
		t.Errorf("%+v", got)
	}
	if err := check("-f", written(t, authManifest), "-o", "yaml"); err == nil || !strings.Contains(b.Out.String(), "entry: mapRoles[1]\n") {
		t.Errorf("%v\n%s", err, b.Out.String())
	}
}

func TestAuthCheckRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args  []string
		usage bool
		want  string
	}{
		"no ARN":             {[]string{"-f", "x", "dev"}, true, ""},
		"an ARN of no one":   {[]string{"-f", "x", "arn:aws:s3:::bucket"}, true, "names nobody"},
		"a name too long":    {[]string{"-f", "x", "arn:aws:iam::111122223333:role/" + tooLong}, true, "its name has 70 characters, and IAM's have at most 64"},
		"no mode":            {[]string{"--mode", "NONE"}, true, `unknown authentication mode "NONE"`},
		"no format":          {[]string{"-o", "wide"}, true, "unknown output format"},
		"a DNS name alone":   {[]string{"--private-dns-name", "x", "arn:aws:iam::111122223333:role/dev"}, true, "--private-dns-name needs --instance"},
		"a session's name":   {[]string{"--session-name", "a:b", "arn:aws:iam::111122223333:role/dev"}, true, "invalid session name"},
		"no file":            {[]string{"-f", filepath.Join(t.TempDir(), "none")}, false, "no such file"},
		"another kind":       {[]string{"-f", written(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}}")}, false, `document 1: is a "Pod" of "v1"`},
		"no YAML":            {[]string{"-f", written(t, "a: [")}, false, "is not YAML"},
		"bare lists with -f": {[]string{"-f", written(t, "mapRoles: []")}, false, "a mounted file is named by --file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, check := authBench(t, interceptor.Funcs{})
			err := check(tc.args...)
			_, usage := errors.AsType[terminal.UsageError](err)
			if err == nil || usage != tc.usage || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v (usage: %v), want %q", err, usage, tc.want)
			}
		})
	}
}

func TestAuthCheckOfACluster(t *testing.T) {
	t.Parallel()
	entry := &accessv1alpha1.AccessEntry{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: accessv1alpha1.AccessEntrySpec{
		PrincipalARN: "arn:aws:iam::111122223333:role/dev", PrincipalID: "AROAEXAMPLEEXAMPLE123",
		AccessPolicies: []accessv1alpha1.AccessPolicy{{PolicyARN: "arn:aws:eks::aws:cluster-access-policy/AmazonEMRJobPolicy", Scope: accessv1alpha1.AccessScope{Type: accessv1alpha1.ScopeCluster}}},
	}}
	mapping := &iamauthenticatorv1alpha1.IAMIdentityMapping{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: iamauthenticatorv1alpha1.IAMIdentityMappingSpec{ARN: "arn:aws:iam::111122223333:role/dev", Username: "m"}}
	awsAuth := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}, Data: map[string]string{"maproles": "[]"}}
	b, check := authBench(t, interceptor.Funcs{}, entry, mapping, awsAuth)
	if err := check(); err == nil {
		t.Error("no status for bad entries")
	}
	for _, want := range []string{"AmazonEMRJobPolicy is for another service of AWS", "write it mapRoles"} {
		if !strings.Contains(b.Out.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.Out.String())
		}
	}
	if err := check("arn:aws:iam::111122223333:role/dev"); err != nil || !strings.Contains(b.Out.String(), "by AccessEntry dev.") || !strings.Contains(b.Err.String(), "Supposed that it is AROAEXAMPLEEXAMPLE123") {
		t.Errorf("%v\n%s%s", err, b.Out.String(), b.Err.String())
	}
	if err := check("arn:aws:iam::111122223333:role/dev", "--principal-id", "AROAEXAMPLEEXAMPLE123"); err != nil || !strings.Contains(b.Out.String(), "by AccessEntry dev.") {
		t.Errorf("%v\n%s", err, b.Out.String())
	}
	if err := check("arn:aws:iam::111122223333:role/dev", "--principal-id", "AROAEXAMPLEEXAMPLE000"); err != nil || !strings.Contains(b.Out.String(), "by IAMIdentityMapping m.") {
		t.Errorf("%v\n%s", err, b.Out.String())
	}

	// An entry of one of muster's own clusters whose principal did not exist lets nobody in. An entry without a
	// principal id on another cluster is reported.
	made := metav1.ObjectMeta{Name: "late", CreationTimestamp: metav1.Now()}
	late := &accessv1alpha1.AccessEntry{ObjectMeta: made, Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: "arn:aws:iam::111122223333:role/late"}, Status: accessv1alpha1.AccessEntryStatus{
		Conditions: []metav1.Condition{{Type: accessv1alpha1.ConditionPrincipalKnown, Status: metav1.ConditionFalse, Reason: "NoPrincipal", Message: "there was no such role"}},
	}}
	b, check = authBench(t, interceptor.Funcs{}, late, awsAuth)
	if err := check("arn:aws:iam::111122223333:role/late"); err == nil || !strings.Contains(b.Out.String(), "is not let in") || !strings.Contains(b.Out.String(), "spec.principalID is missing") || !strings.Contains(b.Err.String(), "AccessEntry late: there was no such role.") {
		t.Errorf("%v\n%s%s", err, b.Out.String(), b.Err.String())
	}
	late.Status.Conditions, late.ResourceVersion = nil, ""
	b, check = authBench(t, interceptor.Funcs{}, late, awsAuth)
	if err := check("arn:aws:iam::111122223333:role/late"); err != nil || !strings.Contains(b.Err.String(), "AccessEntry late has no spec.principalID") {
		t.Errorf("%v\n%s%s", err, b.Out.String(), b.Err.String())
	}

	// A cluster that has none of the kinds has no entries. A cluster that does not answer is an error.
	missing := func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewNotFound(schema.GroupResource{Group: "access.muster.dev", Resource: "accessentries"}, "")
	}
	b, check = authBench(t, interceptor.Funcs{List: missing})
	if err := check(); err != nil || !strings.Contains(b.Err.String(), "The cluster has no kind AccessEntry.") || !strings.Contains(b.Err.String(), "no ConfigMap kube-system/aws-auth") {
		t.Errorf("%v\n%s", err, b.Err.String())
	}
	for _, cause := range []struct {
		err  error
		want string
	}{
		{errors.New("away"), "away"},
		{&url.Error{Op: "Get", URL: "https://127.0.0.1:1/apis", Err: syscall.ECONNREFUSED}, "the cluster is not running (nothing answers at 127.0.0.1:1): `muster up` starts it"},
	} {
		_, check = authBench(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return cause.err
		}})
		if err := check(); err == nil || err.Error() != cause.want {
			t.Error(err)
		}
		_, check = authBench(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return cause.err
		}})
		if err := check(); err == nil || err.Error() != cause.want {
			t.Error(err)
		}
	}
}

// Authenticators ignore an object that only a finalizer keeps, so it must not be reported as letting somebody in.
func TestAuthCheckOfWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	const dev = "arn:aws:iam::111122223333:role/dev"
	going := func(namespace, name string) metav1.ObjectMeta {
		now := metav1.Now()
		return metav1.ObjectMeta{Namespace: namespace, Name: name, DeletionTimestamp: &now, Finalizers: []string{"example.com/keeps"}}
	}
	b, check := authBench(t, interceptor.Funcs{},
		&accessv1alpha1.AccessEntry{ObjectMeta: going("", "e"), Spec: accessv1alpha1.AccessEntrySpec{PrincipalARN: dev, Username: "e"}},
		&iamauthenticatorv1alpha1.IAMIdentityMapping{ObjectMeta: going("", "m"), Spec: iamauthenticatorv1alpha1.IAMIdentityMappingSpec{ARN: dev, Username: "m"}},
		&corev1.ConfigMap{ObjectMeta: going("kube-system", "aws-auth"), Data: map[string]string{"mapRoles": "[{rolearn: '" + dev + "', username: c}]"}},
	)
	if err := check(dev); err == nil {
		t.Errorf("somebody is let in:\n%s", b.Out.String())
	}
	for _, want := range []string{"AccessEntry e is being deleted", "IAMIdentityMapping m is being deleted", "ConfigMap aws-auth is being deleted"} {
		if !strings.Contains(b.Err.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.Err.String())
		}
	}
}

func TestAuthCheckOfAMachineOfAnotherCluster(t *testing.T) {
	t.Parallel()
	const nodes = "arn:aws:iam::111122223333:role/nodes"
	manifest := written(t, `apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: nodes}
spec: {principalARN: "`+nodes+`", type: EC2_LINUX}
`)
	config := written(t, "apiVersion: authenticator.muster.dev/v1alpha1\nkind: AuthenticatorConfiguration\nclusterID: demo\nserver: {stateDir: /a}\n")
	instance := []string{"-f", manifest, nodes, "--instance", "i-0123456789abcdef0", "--private-dns-name", "ip-10-0-0-1.local"}
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"of another":          {slices.Concat(instance, []string{"--config", config, "--machine-cluster", "blue"}), 1, `is not let in: the session is of machine i-0123456789abcdef0, which was launched for cluster "blue", and this is cluster "demo".`},
		"of another, as data": {slices.Concat(instance, []string{"--config", config, "--machine-cluster", "blue", "-o", "yaml"}), 1, "rule: machine-cluster\n"},
		"of this":             {slices.Concat(instance, []string{"--config", config, "--machine-cluster", "demo"}), 0, "becomes the user system:node:ip-10-0-0-1.local\n"},
		"of none":             {slices.Concat(instance, []string{"--config", config}), 0, "becomes the user system:node:ip-10-0-0-1.local\n"},
		"of nobody":           {[]string{"-f", manifest, "--config", config, nodes, "--machine-cluster", "blue"}, -1, "--machine-cluster needs --instance"},
		"entries of nobody":   {slices.Concat(instance, []string{"--machine-cluster", "blue"}), -1, "--machine-cluster needs --cluster or --config"},
	} {
		t.Run(name, func(t *testing.T) {
			b, check := authBench(t, interceptor.Funcs{})
			err := check(tc.args...)
			if usage, ok := errors.AsType[terminal.UsageError](err); ok {
				if tc.status != -1 || !strings.Contains(usage.Error(), tc.want) {
					t.Errorf("%v", err)
				}
				return
			}
			var status terminal.ExitStatus
			if errors.As(err, &status); int(status) != tc.status || !strings.Contains(b.Out.String(), tc.want) {
				t.Errorf("%v, want status %d and %q in:\n%s", err, tc.status, tc.want, b.Out.String())
			}
		})
	}
}

func TestAuthCheckOfTrustedNames(t *testing.T) {
	t.Parallel()
	const hybrid = "arn:aws:iam::111122223333:role/hybrid"
	manifest := written(t, `apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: hybrid}
spec: {principalARN: "`+hybrid+`", type: HYBRID_LINUX}
`)
	head := "apiVersion: authenticator.muster.dev/v1alpha1\nkind: AuthenticatorConfiguration\nclusterID: demo\nserver: {stateDir: /a}\n"
	trusted := "trustedSessionNames: [{role: 'arn:aws:iam::111122223333:role/edge/hybrid', names: ['mi-*']}]"
	config, without := written(t, head+"mapping: {"+trusted+"}\n"), written(t, head)
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		want   []string // each in the output
	}{
		{"nothing is wrong", []string{"--config", config}, 0, []string{
			"AccessEntry hybrid: nodes are named after the sessions of arn:aws:iam::111122223333:role/edge/hybrid: the authenticator's configuration trusts the names mi-*.\nNothing is wrong with 1 entry.\n",
		}},
		{"as data", []string{"--config", config, "-o", "json"}, 0, []string{`"problems": []`, `"trusts": [`, `"mi-*"`}},
		{"a node", []string{"--config", config, hybrid, "--session-name", "mi-0123456789abcdef0"}, 0, []string{
			"becomes the user system:node:mi-0123456789abcdef0\nin the groups system:nodes\nby AccessEntry hybrid.\nNothing proves that it is this node: the authenticator's configuration trusts the names of that role's sessions.\n",
			"matches", "the authenticator's configuration trusts this name of a session of " + hybrid,
		}},
		{"a node, as data", []string{"--config", config, hybrid, "--session-name", "mi-0123456789abcdef0", "-o", "yaml"}, 0, []string{"trusted: true\n", "rule: trusted-name\n"}},
		{"a person", []string{"--config", config, hybrid, "--session-name", "anna"}, 1, []string{
			"is not let in: the authenticator's configuration trusts the sessions of arn:aws:iam::111122223333:role/edge/hybrid that are named mi-*, and this one is named \"anna\".\n" +
				"Add it to mapping.trustedSessionNames there if a service sets it.\n",
		}},
		{"an instance that is not proven", []string{"--config", config, hybrid, "--session-name", "i-0123456789abcdef0"}, 1, []string{"is not proven to be an instance's"}},
		{"nothing is trusted", []string{"--config", without}, 1, []string{"AccessEntry   hybrid   spec.type   yes    it names nodes after their sessions", "(mapping.trustedSessionNames); otherwise let such nodes join with bootstrap tokens"}},
		{"a node of which nothing is trusted", []string{"--config", without, hybrid, "--session-name", "mi-0123456789abcdef0"}, 1, []string{
			"is not let in: the session \"mi-0123456789abcdef0\" is not proven to be an instance's", "trust them in the authenticator's configuration (mapping.trustedSessionNames)",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, check := authBench(t, interceptor.Funcs{})
			err := check(append([]string{"-f", manifest}, tc.args...)...)
			var status terminal.ExitStatus
			if errors.As(err, &status); int(status) != tc.status || err != nil && status == 0 {
				t.Fatalf("%v, want status %d\n%s", err, tc.status, b.Err.String())
			}
			for _, want := range tc.want {
				if !strings.Contains(b.Out.String(), want) {
					t.Errorf("no %q in:\n%s", want, b.Out.String())
				}
			}
		})
	}
}
