// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// role is a metadata service that knows one, or says why not.
type role struct {
	name string
	err  error
}

// Metadata knows of no API server.
func (role) Metadata(context.Context, string) (string, error) { return "", imds.ErrNotFound }

func (r role) Role(context.Context) (string, error) { return r.name, r.err }

// A NodeConfig of EKS has no field for how a machine proves itself: it does so by its role.
func TestProve(t *testing.T) {
	eks := complete(t)
	eks.Join = nodeconfig.Join{}
	byToken, byFile, wrong := complete(t), eks, eks
	byFile.Join = nodeconfig.Join{DiscoveryFile: "/etc/cluster.yaml"}
	wrong.Cluster.Name = ""
	mine := role{name: "muster-node"}
	none := role{err: imds.ErrNotFound}
	const exec = "users: [{name: kubelet, user: {exec: {command: x}}}]"
	for name, c := range map[string]struct {
		spec       nodeconfig.Spec
		joined     bool
		kubeconfig string
		metadata   role
		byRole     bool
		err        string
	}{
		"a role":                         {spec: eks, metadata: mine, byRole: true},
		"a role by which it has joined":  {spec: eks, joined: true, kubeconfig: exec, metadata: mine, byRole: true},
		"a certificate":                  {spec: eks, joined: true, kubeconfig: "users: [{name: x, user: {client-certificate: y}}]", metadata: mine},
		"a token":                        {spec: byToken, metadata: mine},
		"nothing":                        {spec: eks, metadata: none, err: "spec.join: Required value: this machine has no way to prove itself to the cluster: it was told no token, and its instance has no role"},
		"a role that was taken away":     {spec: eks, joined: true, kubeconfig: exec, metadata: none, err: "no way to prove itself"},
		"nobody who would know the role": {spec: eks, metadata: role{err: errors.New("timed out")}, err: "asking for this machine's role, by which it joins if it is told no token: timed out"},
		"a discovery file alone":         {spec: byFile, metadata: mine, err: "spec.join.token: Required value"},
		"a NodeConfig that is no good":   {spec: wrong, metadata: none}, // which is told first
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			own := credential{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
			if err := os.WriteFile(own.kubeconfig, []byte(c.kubeconfig), 0o600); err != nil {
				t.Fatal(err)
			}
			var said []string
			got, err := own.prove(t.Context(), c.spec, c.joined, c.metadata, time.Now(), func(what string) { said = append(said, what) })
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%v; want %q", err, c.err)
			}
			if err == nil && (got.Join.InstanceRole != c.byRole || (len(said) == 1) != c.byRole) {
				t.Errorf("%+v, said %q", got.Join, said)
			}
		})
	}
}

// A machine whose certificate expired while it was off, and which has nothing else, says what to do and not what it was
// never told.
func TestProveByAnExpiredCertificate(t *testing.T) {
	eks := complete(t)
	eks.Join = nodeconfig.Join{}
	quiet := func(what string) { t.Errorf("said %q", what) }
	c := onDisk(t, -time.Hour)
	_, err := c.prove(t.Context(), eks, false, role{err: imds.ErrNotFound}, time.Now(), quiet)
	for _, want := range []string{"client certificate expired at ", "no token", "no role", "`muster token create --node-name a --rejoin`", "`muster node init`"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	var said string
	got, err := c.prove(t.Context(), eks, false, role{name: "muster-node"}, time.Now(), func(what string) { said += what })
	if err != nil || !got.Join.InstanceRole || said == "" {
		t.Errorf("with a role: %v, %+v, said %q", err, got.Join, said)
	}
}

// User data that nodeadm takes is taken: user data of EKS alone makes a kubelet with a credential, or an error that
// says what is missing.
func TestInitByRole(t *testing.T) {
	eks := complete(t)
	eks.Join = nodeconfig.Join{}
	eks.Cluster.CIDR = "fd00:10::/108"
	document := strings.Replace(string(document(t, eks)), nodeconfig.APIVersion, nodeconfig.APIVersionEKS, 1)
	machine := &launched{data: []byte(document)}
	var files []render.File
	config := InitConfig{
		Sources: []string{"imds://user-data"}, DropInDir: t.TempDir(), Root: t.TempDir(), Say: func(string) {}, Facts: facts,
		Write: func(made []render.File, _ bool, _ func(string)) error {
			files = made
			return nil
		},
		Restart: func(context.Context, render.Layout) error { return nil },
	}
	config.Metadata = machine.serve(t)
	if err := Init(t.Context(), config); err == nil || !strings.Contains(err.Error(), "no way to prove itself") {
		t.Errorf("without a role: %v", err)
	}
	config.Metadata = machine.serveRole(t)
	if err := Init(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(file render.File) bool {
		return file.Path == render.PathKubeconfig && render.JoinsByRole(file.Content)
	}) {
		t.Error("there is no kubeconfig by role")
	}
	identity, err := imds.NewClient(config.Metadata).Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eks.Join.InstanceRole = true
	if args := strings.Join(render.KubeletArgs(eks, instance(identity), render.MachineLayout(), false), " "); !strings.Contains(args, "--node-ip=fd00:1::5") {
		t.Errorf("the kubelet's arguments: %s", args)
	}
}
