// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/nodecerts"
)

func TestNodeCertsPrints(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 19, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	report := func(kind nodecerts.Kind, age, life time.Duration) nodecerts.Report {
		from := now.Add(-age)
		return nodecerts.Report{
			Kind: kind, Target: "/pki/kubelet-" + string(kind) + "-2026-11-20-18-00-00.pem", Mode: "-rw-------", CommonName: "system:node:a",
			Organization: []string{"system:nodes"}, Issuer: "CN=ca", Serial: "2a", NotBefore: from, NotAfter: from.Add(life), KeyMatches: true,
			Rotation: nodecerts.Rotation{From: from.Add(life / 10 * 7), Until: from.Add(life / 10 * 9)},
		}
	}
	young, drawn, due, late := report(nodecerts.Client, 0, 10*day), report(nodecerts.Serving, 0, 10*day), report(nodecerts.Serving, 8*day, 10*day), report(nodecerts.Client, 19*day, 20*day)
	drawn.DNSNames, drawn.Addresses, drawn.Rotation.Drawn = []string{"a"}, []string{"192.0.2.1"}, now.Add(8*day)
	late.Problems = []nodecerts.Problem{{Trouble: nodecerts.Overdue}, {Trouble: nodecerts.Exposed}}
	missing := nodecerts.Report{Kind: nodecerts.Serving, Problems: []nodecerts.Problem{{Trouble: nodecerts.Missing}}}
	var out bytes.Buffer
	c := nodeCertsCommand{Options: &terminal.Options{Streams: terminal.Streams{Out: &out}}, now: func() time.Time { return now }, output: terminal.FormatTable}
	if err := c.print([]nodecerts.Report{young, drawn, due, late, missing}); err != nil {
		t.Fatal(err)
	}
	want := `CERTIFICATE   SUBJECT                          NAMES         ISSUER   LEFT   NEXT ROTATION                 STATE
client        O=system:nodes, CN=system:node:a   -             CN=ca    10d    in 7d to 9d                   OK
server        O=system:nodes, CN=system:node:a   a,192.0.2.1   CN=ca    10d    in 8d                         OK
server        O=system:nodes, CN=system:node:a   -             CN=ca    2d     any moment, within 24h        OK
client        O=system:nodes, CN=system:node:a   -             CN=ca    24h    overdue                       Overdue,Exposed
server        -                                -             -        -      -                             Missing
`
	if diff := cmp.Diff(strings.ReplaceAll(want, " ", ""), strings.ReplaceAll(out.String(), " ", "")); diff != "" {
		t.Errorf("-want +got:\n%s%s", diff, out.String())
	}
}

// Faulty certificates decide the exit code, and the agent's notices are printed.
func TestNodeCertsTells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notices := filepath.Join(dir, "notices.json")
	if err := os.WriteFile(notices, []byte(`[{"code":"Address","text":"the address is gone","fix":"give it back","since":"2026-11-20T19:00:00Z"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, talk bytes.Buffer
	c := nodeCertsCommand{Options: &terminal.Options{Streams: terminal.Streams{Out: &out, Err: &talk}}, now: time.Now, dir: dir, notices: notices, output: terminal.FormatTable}
	if err := c.run(t.Context()); err == nil || !strings.Contains(err.Error(), "client certificate: ") || !strings.Contains(err.Error(), "server certificate: ") {
		t.Errorf("got %v", err)
	}
	if want := "Since 2026-11-20T19:00:00Z: the address is gone; give it back\n"; talk.String() != want {
		t.Errorf("said %q", talk.String())
	}
}

// On a machine the same is asked there.
func TestNodeCommandsEnterMachines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"certs a -o json": "a: certs --cert-dir /var/lib/kubelet/pki --kubelet-log /var/log/kubelet.log -o json",
		"rotate a":        "a: rotate --cert-dir /var/lib/kubelet/pki --timeout 5m0s -o table",
		"rotate a --server --timeout 1s --kubeconfig /k -o yaml": "a: rotate --cert-dir /var/lib/kubelet/pki --timeout 1s -o yaml --kubeconfig /k --server",
	} {
		o := &terminal.Options{Streams: terminal.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}
		got := ""
		enter := func(_ context.Context, machine string, args []string) error {
			got = machine + ": " + strings.Join(args, " ")
			return errors.New("entered")
		}
		verb, rest, _ := strings.Cut(line, " ")
		cmd := (&nodeCertsCommand{Options: o, enter: enter}).command()
		if verb == "rotate" {
			cmd = (&nodeRotateCommand{Options: o, enter: enter}).command()
		}
		cmd.SetArgs(strings.Fields(rest))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || got != want {
			t.Errorf("%s: %v, %s", line, err, got)
		}
	}
}

func TestNodeRotateKinds(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]nodecerts.Kind{
		"": nodecerts.Kinds(), "--client": {nodecerts.Client}, "--server": {nodecerts.Serving}, "--client --server": nodecerts.Kinds(),
	} {
		var asked nodecerts.RotateConfig
		var out bytes.Buffer
		r := &nodeRotateCommand{Options: &terminal.Options{Streams: terminal.Streams{Out: &out, Err: &bytes.Buffer{}}}, rotate: func(_ context.Context, c nodecerts.RotateConfig) ([]nodecerts.Rotated, error) {
			asked = c
			return []nodecerts.Rotated{{Kind: nodecerts.Client, Serial: "2a", Request: "csr-x"}}, nil
		}}
		cmd := r.command()
		cmd.SetArgs(append(strings.Fields(line), "--kubeconfig", "/k"))
		if err := cmd.ExecuteContext(t.Context()); err != nil || !cmp.Equal(asked.Kinds, want) || asked.Kubeconfig != "/k" {
			t.Errorf("%q: %v, %+v", line, err, asked.Kinds)
		}
		if out.String() != "client certificate 2a: replaced, by request csr-x\n" {
			t.Errorf("printed %q", out.String())
		}
	}
}
