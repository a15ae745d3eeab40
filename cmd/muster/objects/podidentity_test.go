// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
)

const appRole, farRole = "arn:aws:iam::000000000000:role/app", "arn:aws:iam::000000000000:role/far"

func newAssociation(id, account string) *v1alpha1.PodIdentityAssociation {
	p := &v1alpha1.PodIdentityAssociation{ObjectMeta: clitest.MadeBefore(id, 5*time.Minute)}
	p.Namespace = "home"
	p.Spec = v1alpha1.PodIdentityAssociationSpec{ClusterName: "home", Namespace: "shop", ServiceAccount: account, RoleARN: appRole}
	return p
}

func createPodIdentityOf(b *clitest.Bench) *cobra.Command {
	return (&createPodIdentityCommand{Options: b.O, planes: b.Planes}).command()
}

func TestGetPodIdentityAssociations(t *testing.T) {
	t.Parallel()
	far := newAssociation("a-00000000000000002", "web")
	far.Spec.TargetRoleARN = farRole
	b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), newAssociation("a-00000000000000001", "app"), far)...)
	for file, args := range map[string][]string{
		"get-podidentityassociations.txt":      {"podidentityassociations"},
		"get-podidentityassociations-wide.txt": {"pia", "shop/web", "-o", "wide", "--cluster", "home"},
	} {
		if err := b.Run(t.Context(), getOf(b), args...); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, file, b.Out.String())
	}
}

func TestCreatePodIdentityAssociation(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), newAssociation("a-00000000000000001", "app"))...)
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	base := []string{"--cluster", "home", "--namespace", "shop", "--service-account", "web", "--role-arn", appRole}
	if err := b.Run(t.Context(), createPodIdentityOf(b), append(base, "--target-role-arn", farRole, "--disable-session-tags", "--policy-file", policy)...); err != nil {
		t.Fatal(err)
	}
	name, did, _ := strings.Cut(strings.TrimSpace(b.Out.String()), " ")
	name, isOne := strings.CutPrefix(name, "podidentityassociation.muster.dev/a-")
	if !isOne || len(name) != 17 || did != "created" {
		t.Errorf("%q", b.Out.String())
	}
	p, err := b.Planes.Management(b.O)
	if err != nil {
		t.Fatal(err)
	}
	got := &v1alpha1.PodIdentityAssociation{}
	if err := p.Get(t.Context(), client.ObjectKey{Namespace: "home", Name: "a-" + name}, got); err != nil {
		t.Fatal(err)
	}
	if s := got.Spec; s.ClusterName != "home" || s.Namespace != "shop" || s.ServiceAccount != "web" || s.RoleARN != appRole || s.TargetRoleARN != farRole || !s.DisableSessionTags || !strings.Contains(s.Policy, "s3:GetObject") {
		t.Errorf("%+v", s)
	}
	for name, c := range map[string]struct {
		args []string
		out  string
		says string // of an error
	}{
		"made again":         {[]string{"--cluster", "home", "-n", "shop", "--service-account", "app", "--role-arn", appRole}, "podidentityassociation.muster.dev/a-00000000000000001 unchanged\n", ""},
		"with another role":  {[]string{"--cluster", "home", "-n", "shop", "--service-account", "app", "--role-arn", farRole}, "", "has the association a-00000000000000001 with another roleARN"},
		"as a document":      {append(base, "--dry-run=client", "-o", "yaml"), "serviceAccount: web\n", ""},
		"no namespace":       {[]string{"--service-account", "web", "--role-arn", appRole}, "", `--namespace "" must be the name of a namespace`},
		"no account":         {[]string{"-n", "shop", "--role-arn", appRole}, "", `--service-account "" must be`},
		"no role":            {[]string{"-n", "shop", "--service-account", "web"}, "", `--role-arn "" must be the ARN of a role`},
		"a user":             {[]string{"-n", "shop", "--service-account", "web", "--role-arn", "arn:aws:iam::000000000000:user/x"}, "", "must be the ARN of a role"},
		"a target by name":   {append(base, "--target-role-arn", "far"), "", `--target-role-arn "far" must be`},
		"a policy and tags":  {append(base, "--policy-file", policy), "", "--policy-file needs --disable-session-tags"},
		"a policy elsewhere": {append(base, "--disable-session-tags", "--policy-file", policy+"x"), "", "reading --policy-file"},
		"no such cluster":    {append([]string{"--cluster", "none"}, base[2:]...), "", "none"},
	} {
		err := b.Run(t.Context(), createPodIdentityOf(b), c.args...)
		if c.says == "" && (err != nil || !strings.Contains(b.Out.String(), c.out)) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %q, %v", name, b.Out.String(), err)
		}
	}
}

func TestDeletePodIdentityAssociation(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), newAssociation("a-00000000000000001", "app"))...)
	cmd := (&deleteCommand{Options: b.O, planes: b.Planes, kind: kinds.PodIdentityAssociations(), interval: time.Millisecond}).podIdentityAssociations()
	if err := b.Run(t.Context(), cmd, "--cluster", "home", "shop/app"); err != nil || !strings.Contains(b.Out.String(), "a-00000000000000001") {
		t.Fatalf("%q, %v", b.Out.String(), err)
	}
	cmd = (&deleteCommand{Options: b.O, planes: b.Planes, kind: kinds.PodIdentityAssociations(), interval: time.Millisecond}).podIdentityAssociations()
	if err := b.Run(t.Context(), cmd, "--cluster", "home", "shop/app"); err == nil {
		t.Error("it is there")
	}
}
