// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
)

func TestCertsIssued(t *testing.T) {
	t.Parallel()
	entry := func(node, subject, signer, csr string, left time.Duration) issued.Entry {
		return issued.Entry{
			UID: "u-" + csr, CSR: csr, Signer: signer, Node: node, Subject: subject, Machine: clitest.FirstMachine,
			Serial: "0a", Issuer: "muster kubelet-1", NotBefore: clitest.Noon.Add(-time.Hour), NotAfter: clitest.Noon.Add(left),
		}
	}
	entries := []issued.Entry{
		entry(clitest.FirstNode, "", pki.SignerKubeletClient, "csr-old", time.Hour),
		entry(clitest.FirstNode, "", pki.SignerKubeletServing, "csr-serving", 2*time.Hour),
		entry(clitest.FirstNode, "", pki.SignerKubeletClient, "csr-new", 26*time.Hour),
		entry("", "vip", pki.SignerClient, "vip", -time.Hour),
	}
	entries[2].Machine, entries[3].Machine = "machines|"+clitest.FirstMachine, ""
	var damage error
	b := clitest.NewBench(t, interceptor.Funcs{})
	run := func(args ...string) error {
		c := &issuedCommand{Options: b.O, now: func() time.Time { return clitest.Noon }, load: func(_ context.Context, _ *terminal.Options, namespace string) ([]issued.Entry, error) {
			if namespace != "muster-system" {
				t.Errorf("looked in %s", namespace)
			}
			return entries, damage
		}}
		return b.Run(t.Context(), c.command(), args...)
	}
	for name, args := range map[string][]string{
		"certs-issued.txt":      nil,
		"certs-issued-wide.txt": {"-o", "wide", "--all", clitest.FirstNode},
		"certs-issued.json":     {"-o", "json", "vip"},
	} {
		if args == nil {
			args = []string{}
		}
		if err := run(args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		clitest.Golden(t, name, b.Out.String())
	}
	clitest.WantErr(t, run("nobody", "vip"), `no certificate of "nobody" is on record`, false)
	if !strings.Contains(b.Out.String(), "vip") {
		t.Errorf("the other is not shown: %q", b.Out.String())
	}
	c := &issuedCommand{Options: b.O, namespace: "muster-system", load: func(context.Context, *terminal.Options, string) ([]issued.Entry, error) { return entries, nil }}
	cmd := c.command()
	cmd.SetContext(t.Context())
	if owners, _ := cmd.ValidArgsFunction(cmd, []string{"vip"}, ""); !slices.Equal(owners, []string{clitest.FirstNode}) {
		t.Errorf("completed %q", owners)
	}
	damage = errors.New("segment 1 is damaged")
	if err := run(clitest.FirstNode); !errors.Is(err, damage) || !strings.Contains(b.Out.String(), "csr-new") {
		t.Errorf("with damage: %v, printed %q", err, b.Out.String())
	}
	entries = nil
	clitest.WantErr(t, run([]string{}...), "damaged", false)
}
