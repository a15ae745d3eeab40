// SPDX-License-Identifier: Apache-2.0

package main

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

	"muster.dev/muster/internal/register"
	"muster.dev/muster/internal/table"
)

// issuedCommand is what "muster certs issued" was asked.
type issuedCommand struct {
	*options
	load      func(ctx context.Context, o *options, namespace string) ([]register.Entry, error)
	now       func() time.Time
	namespace string
	output    string
	all       bool
}

func newCertsIssuedCommand(o *options) *cobra.Command {
	var way access
	c := &issuedCommand{options: o, now: time.Now, load: func(ctx context.Context, o *options, namespace string) ([]register.Entry, error) {
		config, elsewhere, err := way.find(o)
		if err != nil {
			return nil, err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connecting to %s: %w", theCluster, err)
		}
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		entries, err := register.Load(ctx, client, namespace)
		return entries, (&plane{name: theCluster, address: strings.TrimPrefix(config.Host, "https://"), elsewhere: elsewhere}).explain(err)
	}}
	cmd := c.command()
	way.addFlags(cmd.Flags())
	return cmd
}

func (c *issuedCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issued [NODE...]",
		Short: "Show the certificates that the certificate controller issued, and what is left of each",
		Long: `Show the certificates that the certificate controller issued, as they stand in its register: to which node, on which machine, by
which request, and what is left of each. Of each node, or person, and signer only the newest is shown, unless all are asked for.
This works with any cluster whose requests muster certificate-controller decides.`,
		Example: `  muster certs issued
  muster certs issued ip-192-168-64-11.muster.internal --all
  muster certs issued --kubeconfig ~/.kube/config -o json | jq '.[] | select(.notAfter < (now + 86400 | todate))'`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: c.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVarP(&c.namespace, "namespace", "n", "muster-system", "namespace of the register")
	cmd.Flags().BoolVar(&c.all, "all", false, "also those that a newer one replaces")
	addFormatFlag(cmd, &c.output, formatTable, formatTable, formatWide, formatJSON, formatYAML)
	return cmd
}

// complete offers the nodes and people that have a certificate.
func (c *issuedCommand) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	entries, _ := c.load(ctx, c.options, c.namespace) // silent, whatever is wrong
	var owners []string
	for _, e := range entries {
		if owner := or(e.Node, e.Subject); !slices.Contains(owners, owner) && !slices.Contains(args, owner) {
			owners = append(owners, owner)
		}
	}
	slices.Sort(owners)
	return owners, cobra.ShellCompDirectiveNoFileComp
}

// issued is an entry of the register as it is printed.
type issued struct {
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
	if err := checkOutput(c.output, formatTable, formatWide, formatJSON, formatYAML); err != nil {
		return err
	}
	entries, damaged := c.load(ctx, c.options, c.namespace)
	if damaged != nil && len(entries) == 0 {
		return damaged
	}
	list, unknown := []issued{}, map[string]bool{}
	for _, name := range names {
		unknown[name] = true
	}
	for _, e := range slices.Backward(newest(entries, c.all)) {
		owner := or(e.Node, e.Subject)
		if len(names) > 0 && !slices.Contains(names, owner) {
			continue
		}
		delete(unknown, owner)
		list = append(list, issued{
			Owner: owner, Signer: e.Signer, Machine: e.Machine, Serial: e.Serial, Issuer: e.Issuer,
			NotBefore: e.NotBefore, NotAfter: e.NotAfter, Request: e.CSR, Key: fmt.Sprintf("%x", e.Key[:]),
		})
	}
	slices.SortStableFunc(list, func(a, b issued) int { return strings.Compare(a.Owner, b.Owner) })
	missing := damaged
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		missing = errors.Join(missing, fmt.Errorf("no certificate of %q is on record; muster certs issued shows those there are", name))
	}
	if len(list) == 0 && missing != nil && c.output != formatJSON && c.output != formatYAML {
		return missing
	}
	if err := c.print(list); err != nil {
		return err
	}
	return missing
}

// newest keeps the last certificate of each owner and signer, or all; entries come oldest first.
func newest(entries []register.Entry, all bool) []register.Entry {
	if all {
		return entries
	}
	type one struct{ owner, signer string }
	seen := map[one]bool{}
	var kept []register.Entry
	for _, e := range slices.Backward(entries) {
		if k := (one{e.Node + "\x00" + e.Subject, e.Signer}); !seen[k] {
			seen[k] = true
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

// onRecord is a machine as people write it, with the source that knows it behind it (policy.MachineRef).
func onRecord(machine string) string {
	if source, id, ok := strings.Cut(machine, "|"); ok {
		return id + " (" + source + ")"
	}
	return machine
}

func (c *issuedCommand) print(list []issued) error {
	switch {
	case c.output == formatJSON, c.output == formatYAML:
		return printData(c.out, c.output, list)
	case len(list) == 0:
		_, err := fmt.Fprintln(c.err, "No certificates on record.")
		return err
	}
	wide := c.output == formatWide
	headings := []string{"OWNER", "SIGNER", "MACHINE", "LEFT", "REQUEST"}
	if wide {
		headings = append(headings, "ISSUER", "SERIAL", "NOT BEFORE", "NOT AFTER")
	}
	t := table.New(c.out, headings...)
	for _, i := range list {
		cells := []string{i.Owner, shortSigner(i.Signer), orDash(onRecord(i.Machine)), left(i.NotAfter, c.now()), i.Request}
		if wide {
			cells = append(cells, i.Issuer, i.Serial, i.NotBefore.UTC().Format(time.RFC3339), i.NotAfter.UTC().Format(time.RFC3339))
		}
		t.Row(cells...)
	}
	return t.Flush()
}
