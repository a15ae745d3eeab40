// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/platform/table"
)

func (c *csrCommand) list() *cobra.Command {
	var output, signer string
	var open bool
	cmd := &cobra.Command{
		Use:     "list [NAME...]",
		Aliases: []string{"ls"},
		Short:   "List requests: the requester, what it asks for, the decision and the reason",
		Long:    `List requests, all of them or those named, each with its requester, its decision and the reason. Details: muster csr explain NAME.`,
		Example: `  # All of them, the newest last
  muster csr list

  # Those that nobody has decided yet, and what they wait for
  muster csr list --pending

  # In another cluster
  muster csr list --kubeconfig ~/.kube/config --context production`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: c.completeRequests,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := terminal.CheckOutput(output, csrFormats()...); err != nil {
				return err
			}
			if len(args) > 0 && (open || signer != "") {
				return terminal.UsageError{Err: errors.New("give names or filters (--pending, --signer), not both")}
			}
			reviews, err := c.reviews(cmd.Context(), args...)
			if err != nil {
				return err
			}
			reviews = slices.DeleteFunc(reviews, func(r csrview.Review) bool {
				return open && r.State != csrview.Pending || signer != "" && signer != r.SignerName && signer != csrview.ShortSigner(r.SignerName)
			})
			return c.printList(cmd.Context(), reviews, output)
		},
	}
	terminal.AddFormatFlag(cmd, &output, terminal.FormatTable, csrFormats()...)
	cmd.Flags().BoolVar(&open, "pending", false, "only those that nobody has approved or denied")
	cmd.Flags().StringVar(&signer, "signer", "", "only those of this signer, such as kubelet-serving")
	_ = cmd.RegisterFlagCompletionFunc("signer", cobra.FixedCompletions( // the flag exists
		[]string{csrview.ShortSigner(pki.SignerKubeletClient), csrview.ShortSigner(pki.SignerKubeletServing), csrview.ShortSigner(pki.SignerClient)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func csrFormats() []string {
	return []string{terminal.FormatTable, terminal.FormatWide, terminal.FormatJSON, terminal.FormatYAML, terminal.FormatName}
}

func (c *csrCommand) printList(_ context.Context, reviews []csrview.Review, output string) error {
	switch output {
	case terminal.FormatJSON, terminal.FormatYAML:
		if reviews == nil {
			reviews = []csrview.Review{}
		}
		return terminal.PrintData(c.Out, output, reviews)
	case terminal.FormatName:
		for _, r := range reviews {
			if _, err := fmt.Fprintln(c.Out, kinds.SigningRequests().Qualified(r.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(reviews) == 0 {
		_, err := fmt.Fprintln(c.Err, "No certificate signing requests found.")
		return err
	}
	headings := []string{"NAME", "AGE", "SIGNER", "REQUESTER", "FOR", "STATE", "VERDICT", "WHY"}
	if output == terminal.FormatWide {
		headings = []string{"NAME", "AGE", "SIGNER", "REQUESTER", "COMMON-NAME", "NAMES", "KEY", "STATE", "VERDICT", "RULE", "WHY"}
	}
	t := table.New(c.Out, headings...)
	for _, r := range reviews {
		age := duration.HumanDuration(c.now().Sub(r.Created))
		if output == terminal.FormatWide {
			t.Row(r.Name, age, r.SignerName, r.Requester.Username, r.Asked.CommonName,
				strings.Join(append(slices.Clone(r.Asked.DNSNames), r.Asked.Addresses...), ","), r.Asked.Key,
				string(r.State), string(r.Verdict), string(r.Rule), why(r))
			continue
		}
		t.Row(r.Name, age, csrview.ShortSigner(r.SignerName), requester(r), terminal.Shorten(asked(r), 60), string(r.State), string(r.Verdict), terminal.Shorten(why(r), 100))
	}
	return t.Flush()
}

// requester is the node's name where it is a node, as that is long enough.
func requester(r csrview.Review) string {
	return strings.TrimPrefix(r.Requester.Username, "system:")
}

// asked returns the subject of a request and, for a serving certificate of a node, its names and addresses.
func asked(r csrview.Review) string {
	own := strings.TrimPrefix(r.Asked.CommonName, "system:node:")
	others := slices.DeleteFunc(slices.Concat(r.Asked.DNSNames, r.Asked.Addresses), func(name string) bool { return name == own })
	return strings.Join(slices.Concat([]string{own}, others), ",")
}

// why returns the end of an issued certificate, and the reason of any other state.
func why(r csrview.Review) string {
	switch {
	case r.Certificate != nil:
		return "certificate until " + r.Certificate.NotAfter.UTC().Format("2006-01-02 15:04 MST")
	case r.Rule != "":
		return string(r.Rule) + ": " + r.Why
	case r.Why == "" && r.State == csrview.Pending:
		return "nobody has said anything yet"
	}
	return r.Why
}
