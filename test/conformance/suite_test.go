// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestArguments(t *testing.T) {
	c := &cluster{kubectl: "/co/bin/1.36/kubectl", kubeconfig: "/tmp/k"}
	o := options{labels: "Conformance", focus: `\[sig-network\] DNS`, processes: 4, timeout: time.Hour}
	got := arguments(o, c, "/co/programs", "/co/report")
	at := slices.Index(got, "--")
	if at < 1 || got[at-1] != "/co/programs/e2e.test" {
		t.Fatalf("the suite is not the last argument before the --: %q", got)
	}
	// Flags of ginkgo are before the --, flags of the suite after it.
	for _, want := range []string{
		"--procs=4", "--timeout=1h0m0s", "--label-filter=Conformance", `--focus=\[sig-network\] DNS`, "--json-report=report.json",
	} {
		if !slices.Contains(got[:at], want) {
			t.Errorf("ginkgo is not told %s: %q", want, got[:at])
		}
	}
	for _, want := range []string{"--kubeconfig=/tmp/k", "--num-nodes=2", "--kubectl-path=/co/bin/1.36/kubectl"} {
		if !slices.Contains(got[at:], want) {
			t.Errorf("the suite is not told %s: %q", want, got[at:])
		}
	}
	if slices.ContainsFunc(got, func(arg string) bool { return strings.HasPrefix(arg, "--skip") }) {
		t.Errorf("an empty --skip would skip everything: %q", got)
	}
}
