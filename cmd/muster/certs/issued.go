// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/table"
)

// issuedCommand holds the flags of "muster certs issued".
type issuedCommand struct {
	*terminal.Options
	load      func(ctx context.Context, o *terminal.Options, namespace string) ([]issued.Entry, error)
	now       func() time.Time
	namespace string
	output    string
	all       bool
}

func newCertsIssuedCommand(o *terminal.Options) *cobra.Command {
	var way kinds.Access
	c := &issuedCommand{Options: o, now: time.Now, load: func(ctx context.Context, o *terminal.Options, namespace string) ([]issued.Entry, error) {
		config, elsewhere, err := way.Find(o)
		if err != nil {
			return nil, err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connecting to %s: %w", kinds.TheCluster, err)
		}
		ctx, cancel := context.WithTimeout(ctx, kinds.AnswerTime)
		defer cancel()
		entries, err := issued.Load(ctx, client, namespace)
		return entries, (&kinds.Client{Name: kinds.TheCluster, Address: strings.TrimPrefix(config.Host, "https://"), Elsewhere: elsewhere}).Explain(err)
	}}
	cmd := c.command()
	way.AddFlags(cmd.Flags())
	return cmd
}

func (c *issuedCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issued [NODE...]",
		Short: "Show the certificates that the certificate controller issued, and what is left of each",
		Long: `Show the certificates that the certificate controller issued, from its record: the node, the machine, the request and the time left of
each. Of each node or person and signer only the newest is shown, unless --all is given.
This works with any cluster whose requests muster certificate-controller decides.`,
		Example: `  muster certs issued
  muster certs issued ip-172-31-0-5.ec2.internal --all
  muster certs issued --kubeconfig ~/.kube/config -o json | jq '.[] | select(.notAfter < (now + 86400 | todate))'`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: c.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "muster-system", "namespace of the register")
	cmd.Flags().BoolVar(&c.all, "all", false, "also those that a newer one replaces")
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatTable, terminal.FormatTable, terminal.FormatWide, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

// complete offers the nodes and people that have a certificate.
func (c *issuedCommand) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), kinds.CompletionTime)
	defer cancel()
	entries, _ := c.load(ctx, c.Options, c.namespace) // silent, whatever is wrong
	var owners []string
	for _, e := range entries {
		if owner := terminal.Or(e.Node, e.Subject); !slices.Contains(owners, owner) && !slices.Contains(args, owner) {
			owners = append(owners, owner)
		}
	}
	slices.Sort(owners)
	return owners, cobra.ShellCompDirectiveNoFileComp
}

// issuedCertificate is an entry of the register as it is printed.
type issuedCertificate struct {
	Owner     string    `json:"owner"`
	Signer    string    `json:"signer"`
	Machine   string    `json:"machine,omitempty"`
	Serial    string    `json:"serial"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	Request   string    `json:"request"`
	Key       string    `json:"key"` // SHA-256 of the public key
}

func (c *issuedCommand) run(ctx context.Context, names []string) error {
	if err := terminal.CheckOutput(c.output, terminal.FormatTable, terminal.FormatWide, terminal.FormatJSON, terminal.FormatYAML); err != nil {
		return err
	}
	entries, damaged := c.load(ctx, c.Options, c.namespace)
	if damaged != nil && len(entries) == 0 {
		return damaged
	}
	list, unknown := []issuedCertificate{}, map[string]bool{}
	for _, name := range names {
		unknown[name] = true
	}
	for _, e := range slices.Backward(newest(entries, c.all)) {
		owner := terminal.Or(e.Node, e.Subject)
		if len(names) > 0 && !slices.Contains(names, owner) {
			continue
		}
		delete(unknown, owner)
		list = append(list, issuedCertificate{
			Owner: owner, Signer: e.Signer, Machine: e.Machine, Serial: e.Serial, Issuer: e.Issuer,
			NotBefore: e.NotBefore, NotAfter: e.NotAfter, Request: e.CSR, Key: fmt.Sprintf("%x", e.Key[:]),
		})
	}
	slices.SortStableFunc(list, func(a, b issuedCertificate) int { return strings.Compare(a.Owner, b.Owner) })
	missing := damaged
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		missing = errors.Join(missing, fmt.Errorf("no certificate of %q is on record; muster certs issued shows those there are", name))
	}
	if len(list) == 0 && missing != nil && c.output != terminal.FormatJSON && c.output != terminal.FormatYAML {
		return missing
	}
	if err := c.print(list); err != nil {
		return err
	}
	return missing
}

// newest keeps the last certificate of each owner and signer, or all; entries come oldest first.
func newest(entries []issued.Entry, all bool) []issued.Entry {
	if all {
		return entries
	}
	type one struct{ owner, signer string }
	seen := map[one]bool{}
	var kept []issued.Entry
	for _, e := range slices.Backward(entries) {
		if k := (one{e.Node + "\x00" + e.Subject, e.Signer}); !seen[k] {
			seen[k] = true
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

// onRecord is a machine as people write it, with the source that knows it behind it.
func onRecord(machine string) string {
	source, id := policy.MachineRef(machine).Split()
	if source == "" {
		return id
	}
	return id + " (" + source + ")"
}

func (c *issuedCommand) print(list []issuedCertificate) error {
	switch {
	case c.output == terminal.FormatJSON, c.output == terminal.FormatYAML:
		return terminal.PrintData(c.Out, c.output, list)
	case len(list) == 0:
		_, err := fmt.Fprintln(c.Err, "No certificates on record.")
		return err
	}
	wide := c.output == terminal.FormatWide
	headings := []string{"OWNER", "SIGNER", "MACHINE", "LEFT", "REQUEST"}
	if wide {
		headings = append(headings, "ISSUER", "SERIAL", "NOT BEFORE", "NOT AFTER")
	}
	t := table.New(c.Out, headings...)
	for _, i := range list {
		cells := []string{i.Owner, csrview.ShortSigner(i.Signer), terminal.OrDash(onRecord(i.Machine)), Left(i.NotAfter, c.now()), i.Request}
		if wide {
			cells = append(cells, i.Issuer, i.Serial, i.NotBefore.UTC().Format(time.RFC3339), i.NotAfter.UTC().Format(time.RFC3339))
		}
		t.Row(cells...)
	}
	return t.Flush()
}
