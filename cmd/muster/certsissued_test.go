// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/register"
)

func TestCertsIssued(t *testing.T) {
	t.Parallel()
	entry := func(node, subject, signer, csr string, left time.Duration) register.Entry {
		return register.Entry{
			UID: "u-" + csr, CSR: csr, Signer: signer, Node: node, Subject: subject, Machine: firstMachine,
			Serial: "0a", Issuer: "muster kubelet-1", NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(left),
		}
	}
	entries := []register.Entry{
		entry(firstNode, "", pki.SignerKubeletClient, "csr-old", time.Hour),
		entry(firstNode, "", pki.SignerKubeletServing, "csr-serving", 2*time.Hour),
		entry(firstNode, "", pki.SignerKubeletClient, "csr-new", 26*time.Hour),
		entry("", "vip", pki.SignerClient, "vip", -time.Hour),
	}
	entries[2].Machine, entries[3].Machine = "machines|"+firstMachine, ""
	var damage error
	b := newBench(t, interceptor.Funcs{})
	run := func(args ...string) error {
		c := &issuedCommand{options: b.o, now: func() time.Time { return noon }, load: func(_ context.Context, _ *options, namespace string) ([]register.Entry, error) {
			if namespace != "muster-system" {
				t.Errorf("looked in %s", namespace)
			}
			return entries, damage
		}}
		return b.run(t.Context(), c.command(), args...)
	}
	for name, args := range map[string][]string{
		"certs-issued.txt":      nil,
		"certs-issued-wide.txt": {"-o", "wide", "--all", firstNode},
		"certs-issued.json":     {"-o", "json", "vip"},
	} {
		if args == nil {
			args = []string{}
		}
		if err := run(args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		golden(t, name, b.out.String())
	}
	wantErr(t, run("nobody", "vip"), `no certificate of "nobody" is on record`, false)
	if !strings.Contains(b.out.String(), "vip") {
		t.Errorf("the other is not shown: %q", b.out.String())
	}
	c := &issuedCommand{options: b.o, namespace: "muster-system", load: func(context.Context, *options, string) ([]register.Entry, error) { return entries, nil }}
	cmd := c.command()
	cmd.SetContext(t.Context())
	if owners, _ := cmd.ValidArgsFunction(cmd, []string{"vip"}, ""); !slices.Equal(owners, []string{firstNode}) {
		t.Errorf("completed %q", owners)
	}
	damage = errors.New("segment 1 is damaged")
	if err := run(firstNode); !errors.Is(err, damage) || !strings.Contains(b.out.String(), "csr-new") {
		t.Errorf("with damage: %v, printed %q", err, b.out.String())
	}
	entries = nil
	wantErr(t, run([]string{}...), "damaged", false)
}
