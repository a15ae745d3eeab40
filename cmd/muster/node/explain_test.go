// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/nodeevidence"
)

// The exit codes are those of muster explain, the report is printed as text or for a program, and with a machine the
// command is run there.
func TestNodeExplain(t *testing.T) {
	found := diagnosis.Report{Kind: "node", Name: "rack-1\x1b[31m", Verdict: diagnosis.Found, Causes: []diagnosis.Finding{{Cause: "M-NODE-55", Title: "swap is on", Fix: "swapoff -a"}}}
	for name, test := range map[string]struct {
		report diagnosis.Report
		err    error
		args   []string
		code   int
		want   string
	}{
		"a cause":     {found, nil, nil, 1, "M-NODE-55"},
		"for jq":      {found, nil, []string{"-o", "json"}, 1, `"cause": "M-NODE-55"`},
		"well":        {diagnosis.Report{Kind: "node", Name: "n", Verdict: diagnosis.Healthy}, nil, nil, 0, "nothing is wrong"},
		"not known":   {diagnosis.Report{Kind: "node", Name: "n", Verdict: diagnosis.NotKnown}, nil, nil, 3, "not known"},
		"no node":     {diagnosis.Report{}, nodeevidence.ErrNoNode, nil, 4, "nothing of a node"},
		"other words": {found, nil, []string{"-o", "wide"}, 2, "wide"},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{})
		c := &nodeExplainCommand{Options: b.O, look: func(context.Context) (diagnosis.Report, error) { return test.report, test.err }}
		cmd := c.command()
		terminal.CheckUsage(cmd)
		err := b.Run(t.Context(), cmd, append([]string{}, test.args...)...)
		code := 0
		if status, ok := errors.AsType[terminal.ExitStatus](err); ok {
			code = int(status)
		} else if err != nil {
			code = 2
			b.Err.WriteString(err.Error())
		}
		out := b.Out.String() + b.Err.String()
		if code != test.code || !strings.Contains(out, test.want) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: exit code %d, want %d: %q", name, code, test.code, out)
		}
		if test.args != nil && code == 1 && !json.Valid(b.Out.Bytes()) {
			t.Errorf("%s: not JSON: %s", name, out)
		}
	}
	var entered []string
	b := clitest.NewBench(t, interceptor.Funcs{})
	c := &nodeExplainCommand{Options: b.O, enter: func(_ context.Context, machine string, args []string) error {
		entered = append([]string{machine}, args...)
		return nil
	}}
	if err := b.Run(t.Context(), c.command(), "i-0123456789abcdef0", "-o", "yaml"); err != nil || !slices.Equal(entered, []string{"i-0123456789abcdef0", "explain", "-o", "yaml"}) {
		t.Errorf("%q, %v", entered, err)
	}
}
