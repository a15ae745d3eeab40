// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
)

// The page has a row for each field that there is, and for no other.
func TestPageOfNodeConfigHasAllFields(t *testing.T) {
	page, err := os.ReadFile("../../../docs/node-config.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(spec[^`]*)` \\|").FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, row[1])
	}
	fields := fieldsOf("spec", reflect.TypeFor[nodeconfig.Spec]())
	slices.Sort(rows)
	slices.Sort(fields)
	if diff := cmp.Diff(fields, rows); diff != "" {
		t.Errorf("(-fields +rows):\n%s", diff)
	}
}

func fieldsOf(path string, of reflect.Type) []string {
	if of.Kind() != reflect.Struct {
		return []string{path}
	}
	var all []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, fieldsOf(path+"."+name, field.Type)...)
	}
	return all
}

const plainConfig = `apiVersion: node.muster.dev/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: demo, apiServerEndpoint: "https://172.31.0.4:443", certificateAuthority: AUTHORITY, cidr: 10.100.0.0/16}
  instance: {environment: {default: {HTTPS_PROXY: "http://me:word@172.31.0.1:3128", DB_PASSWORD: s3cret}}}
  join: {token: abcdef.0123456789abcdef}
`

// configOf runs "muster node config" on an instance that was launched with that user data.
func configOf(t *testing.T, userData string, args ...string) (out string, err error) {
	t.Helper()
	authority, err := os.ReadFile("../../../internal/node/nodeconfig/testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	userData = strings.ReplaceAll(userData, "AUTHORITY", base64.StdEncoding.EncodeToString(authority))
	c := &nodeConfigCommand{
		userData: func(context.Context) ([]byte, error) { return []byte(userData), nil },
		identity: func(context.Context) (imds.Identity, error) {
			return imds.Identity{
				ID: "i-0123456789abcdef0", Type: "m4.xlarge", Region: "us-east-1", AvailabilityZone: "us-east-1a",
				PrivateIP: netip.MustParseAddr("172.31.0.5"), PrivateDNSName: "ip-172-31-0-5.ec2.internal",
			}, nil
		},
		machine: func() (thishost.Hardware, error) {
			return thishost.Hardware{CPUs: 4, MemoryBytes: 16 << 30, CgroupVersion: 2, Hostname: "here"}, nil
		},
	}
	cmd := c.command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stderr.String() + stdout.String(), err
}

// The user data of the instance is the default. Facts of the metadata service and of the machine fill in values that no
// flag has. Nothing that is printed has a secret in it.
func TestNodeConfigOfThisMachine(t *testing.T) {
	if out, err := configOf(t, plainConfig, "check"); err != nil || out != "The NodeConfig is good: 1 document.\n" {
		t.Errorf("check: %q, %v", out, err)
	}
	for _, args := range [][]string{{"show"}, {"show", "-o", "yaml"}, {"show", "-o", "json"}, {"render"}, {"render", "--layout", "machine"}} {
		out, err := configOf(t, plainConfig, args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		for _, secret := range []string{"0123456789abcdef\n", "0123456789abcdef\"", "word@", "s3cret"} {
			if strings.Contains(strings.ReplaceAll(out, "i-0123456789abcdef0", ""), secret) {
				t.Errorf("%v shows %q:\n%s", args, secret, out)
			}
		}
	}
	out, err := configOf(t, plainConfig, "render", "--cpus", "2", "--hostname", "worker-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"maxPods": 58`, `"memory": "893Mi"`, `"cpu": "70m"`, "--hostname-override=worker-1\n", "--node-ip=172.31.0.5\n",
		"aws:///us-east-1a/i-0123456789abcdef0", "==> /var/lib/kubelet/bootstrap-kubeconfig -rw------- <==",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

// User data of EKS says nothing of how a machine proves itself: its nodes do so by their role.
func TestNodeConfigByRole(t *testing.T) {
	eks := strings.Replace(strings.Replace(plainConfig, "muster.dev", "eks.aws", 1), "  join: {token: abcdef.0123456789abcdef}\n", "", 1)
	const exec = "- --region\n      - us-east-1\n"
	if out, err := configOf(t, eks, "render"); err != nil || !strings.Contains(out, exec) || strings.Contains(out, "Warning") || strings.Contains(out, "bootstrap-kubeconfig") {
		t.Errorf("%s, %v", out, err)
	}
	file := filepath.Join(t.TempDir(), "node.yaml")
	authority, err := os.ReadFile("../../../internal/node/nodeconfig/testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(eks, "AUTHORITY", base64.StdEncoding.EncodeToString(authority), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := configOf(t, "", "render", "-c", file, "--node-ip", "172.31.0.5")
	if err != nil || !strings.HasPrefix(out, "Warning: there is no token, so a machine would join by its role; say --region") || strings.Contains(out, "users:") {
		t.Errorf("somewhere else: %s, %v", out, err)
	}
	if out, err := configOf(t, "", "render", "-c", file, "--node-ip", "172.31.0.5", "--region", "us-east-1"); err != nil || !strings.Contains(out, exec) {
		t.Errorf("with a region: %s, %v", out, err)
	}
	byRole := strings.Replace(plainConfig, "token: abcdef.0123456789abcdef", "instanceRole: true", 1)
	for _, config := range []string{eks, byRole, strings.Replace(eks, "10.100.0.0/16", "fd00:10::/108", 1)} {
		if out, err := configOf(t, config, "check"); err != nil {
			t.Errorf("%q, %v", out, err)
		}
	}
}

// Files that are written are those of a machine, secrets and modes included, and nothing else is touched.
func TestNodeConfigRenderToDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rendered")
	if out, err := configOf(t, plainConfig, "render", "--to", dir); err != nil || out != "" {
		t.Fatalf("%q, %v", out, err)
	}
	path := filepath.Join(dir, "var/lib/kubelet/bootstrap-kubeconfig")
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(raw, []byte("token: abcdef.0123456789abcdef")) {
		t.Errorf("%s, %v", raw, err)
	}
	for _, name := range []string{dir, path} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := configOf(t, plainConfig, "render", "--to", dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a directory with files in it: %v", err)
	}
}

func TestNodeConfigRefuses(t *testing.T) {
	const script = "#!/bin/sh\n"
	for _, c := range []struct {
		userData, args, want string
		usage                bool
	}{
		{"", "check", "there is no NodeConfig in imds://user-data, which holds nothing", false},
		{script, "show", "there is no NodeConfig in imds://user-data, which holds text/x-shellscript", false},
		{plainConfig, "check -c s3://bucket", `no source "s3://bucket"`, true},
		{plainConfig, "check --layout lunar", `unknown layout "lunar"; there are: host, machine`, true},
		{plainConfig, "show -o wide", `unknown output format "wide"`, true},
		{plainConfig, "show all", `"all" is one argument too many`, true},
		{plainConfig, "render --memory much", `invalid --memory "much": must be an amount`, true},
		{plainConfig, "render --cpus -1", "--cpus -1", true},
		{plainConfig, "render --cgroup-version 3", "invalid --cgroup-version 3: must be 1 or 2", true},
		{plainConfig, "render --node-ip here", `invalid --node-ip "here": must be an IP address`, true},
		{plainConfig, "render --layout machine --existing-containerd", "no containerd of its own", true},
		{strings.Replace(plainConfig, "name: demo, ", "", 1) + "  kubelet: {maxPodsExpression: '2 +', flags: [--config=x]}\n", "check", "spec.kubelet.maxPodsExpression", false},
		{plainConfig + "  kubelet: {maxPodsExpression: default_enis * 0}\n", "render", "spec.kubelet.maxPodsExpression: yields 0", false},
	} {
		out, err := configOf(t, c.userData, strings.Fields(c.args)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %s", c.args, out, err, c.want)
		}
		if _, usage := errors.AsType[terminal.UsageError](err); usage != c.usage {
			t.Errorf("%s: usage error: %t, want %t", c.args, usage, c.usage)
		}
	}
	al2, err := os.ReadFile("../../../internal/node/userdata/testdata/amazon-linux-2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configOf(t, string(al2), "check"); err == nil || !strings.HasSuffix(err.Error(), "text/x-shellscript; what a script says to /etc/eks/bootstrap.sh is known when it has run") {
		t.Errorf("user data of Amazon Linux 2: %v", err)
	}
	// A machine that finds its cluster by a token need not be told what it finds.
	const joins = "apiVersion: node.muster.dev/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {apiServerEndpoint: \"https://172.31.0.4:443\"}\n  join: {token: abcdef.0123456789abcdef, unsafeSkipCAVerification: true}\n"
	if out, err := configOf(t, joins, "check"); err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := configOf(t, joins+"  tpyo: 1\n", "check", "--lenient"); err != nil || out != "Warning: user data: unknown field \"spec.tpyo\"; it is ignored\nThe NodeConfig is good: 1 document.\n" {
		t.Errorf("%q, %v", out, err)
	}
}
