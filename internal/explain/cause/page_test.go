// SPDX-License-Identifier: Apache-2.0

package cause_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/explain/cause"
)

var update = flag.Bool("update", false, "rewrite docs/causes.md")

// docs/causes.md is generated from the catalogue.
func TestPage(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "docs", "causes.md")
	got := page(catalogue(t).All())
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/causes.md is not what the catalogue says (-page +catalogue; -update accepts):\n%s", diff)
	}
}

const head = `# Causes

Why a machine does not become a node, and what else can be wrong with a cluster: the catalogue of ` + "`muster explain`" + `. The page is
generated from the files in [internal/explain/cause/causes](../internal/explain/cause/causes) by
` + "`go test ./internal/explain/cause -run TestPage -update`" + `.

    muster explain                                      # what is wrong now
    muster explain machine i-0123456789abcdef0          # why a machine is not a node
    muster explain nodegroup default -o json            # for a program
    muster explain pod shop/web-0                       # a pod, a volume by its claim, or a service
    muster explain stack eksctl-blue-cluster            # a stack of CloudFormation
    muster explain --context production                 # any cluster of a kubeconfig: Nodes, requests, webhooks, Leases, aws-auth
    sudo muster node explain                            # on a node itself: EKS's, kubeadm's, or Muster's
    muster explain --bundle muster.tar.gz               # an archive to send (bundle.md)

The identifier of a cause never changes. Parts write it where they refuse, so that ` + "`muster status`, `muster get`" + ` and Events have
it, too. The first 69 numbers are those of the known reasons why a node does not join EKS.

A cause is named by evidence alone: the identifier that a part wrote, a reason or code that programs compare, or a message of upstream's
that a test finds in the source of the version that Muster builds. Where nothing of that is there, explain says that the cause is not
known, and shows what it saw.

` + "`muster node explain`" + ` works on any node, with the files, units and probes of the node alone, and has the same exit codes. Where its fix
is another, since the node need not be a machine of Muster's, it stands behind "on a node".

Exit codes of ` + "`muster explain`" + `: 0 nothing is wrong, 1 a cause was found, 2 the command line or a name is wrong, 3 something is wrong and
the cause is not known, 4 the management plane, or the cluster that may have the name, could not be asked.

`

// page renders the page.
func page(all []cause.Cause) string {
	var b strings.Builder
	b.WriteString(head)
	named, injected, impossible, later := 0, 0, 0, 0
	for _, c := range all {
		switch c.State {
		case cause.Named:
			named++
			if c.Injected != "" {
				injected++
			}
		case cause.Impossible:
			impossible++
		case cause.Later:
			later++
		}
	}
	fmt.Fprintf(&b, "Of %d causes, explain names %d, of which a story or the test of a component has %d happen for real; %d cannot be here; %d are not named yet.\n\n", len(all), named, injected, impossible, later)
	b.WriteString("| Cause | What it is | Keeps from | |\n|---|---|---|---|\n")
	for _, c := range all {
		id := string(c.ID)
		if c.State == cause.Named {
			id = fmt.Sprintf("[%s](#%s)", c.ID, strings.ToLower(id))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", id, c.Title, c.Step, state(c))
	}
	for _, c := range all {
		if c.State == cause.Named {
			section(&b, c)
		}
	}
	return b.String()
}

// state is the last column.
func state(c cause.Cause) string {
	switch {
	case c.State == cause.Impossible:
		return "cannot be here: " + c.Why
	case c.State == cause.Later:
		return "not named yet: " + c.Why
	case c.Injected != "":
		return "injected and named by " + c.Injected
	}
	return "named; not injected: " + c.NotInjected
}

// escaped keeps dollar signs outside of code from being taken for formulas.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "$", "\\$")
	}
	return strings.Join(parts, "`")
}

// section is what the page says of a cause that is named.
func section(b *strings.Builder, c cause.Cause) {
	fmt.Fprintf(b, "\n## %s\n\n%s. %s\n\nFix: %s\n", c.ID, strings.ToUpper(c.Title[:1])+c.Title[1:], c.Sentence, escaped(c.Fix))
	if c.FixOnNode != "" {
		fmt.Fprintf(b, "\nOn a node: %s\n", escaped(c.FixOnNode))
	}
	if len(c.Upstream) > 0 {
		b.WriteString("\nUpstream's message:\n\n")
	}
	for _, u := range c.Upstream {
		fmt.Fprintf(b, "* `%s` (%s, %s)\n", strings.ReplaceAll(u.Text, "`", "'"), u.Module, u.File)
	}
	b.WriteString("\nSeen by:\n\n")
	if c.Writer != "" {
		fmt.Fprintf(b, "* the identifier, which internal/%s writes\n", c.Writer)
	}
	for _, s := range c.Signals {
		what := string(s.Source)
		if s.Code != "" {
			what += " `" + s.Code + "`"
		}
		if len(s.Text) > 0 {
			what += " with `" + strings.Join(s.Text, "` and `") + "`"
		}
		if len(s.Without) > 0 {
			what += " without `" + strings.Join(s.Without, "` or `") + "`"
		}
		fmt.Fprintf(b, "* %s\n", what)
	}
}
