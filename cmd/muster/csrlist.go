// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/review"
	"muster.dev/muster/internal/table"
)

func (c *csrCommand) list() *cobra.Command {
	var output, signer string
	var open bool
	cmd := &cobra.Command{
		Use:     "list [NAME...]",
		Aliases: []string{"ls"},
		Short:   "List requests: who asks for what, what came of it, and why",
		Long:    `List requests, all of them or those named: who asks for what, what came of it, and why. More of one: muster csr explain NAME.`,
		Example: `  # All of them, the newest last
  muster csr list

  # Those that nobody has decided yet, and what they wait for
  muster csr list --pending

  # In another cluster
  muster csr list --kubeconfig ~/.kube/config --context production`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: c.completeRequests,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, csrFormats()...); err != nil {
				return err
			}
			if len(args) > 0 && (open || signer != "") {
				return usageError{Err: errors.New("give names, or --pending and --signer, not both")}
			}
			reviews, err := c.reviews(cmd.Context(), args...)
			if err != nil {
				return err
			}
			reviews = slices.DeleteFunc(reviews, func(r review.Review) bool {
				return open && r.State != review.Pending || signer != "" && signer != r.SignerName && signer != shortSigner(r.SignerName)
			})
			return c.printList(cmd.Context(), reviews, output)
		},
	}
	addFormatFlag(cmd, &output, formatTable, csrFormats()...)
	cmd.Flags().BoolVar(&open, "pending", false, "only those that nobody has approved or denied")
	cmd.Flags().StringVar(&signer, "signer", "", "only those of this signer, such as kubelet-serving")
	_ = cmd.RegisterFlagCompletionFunc("signer", cobra.FixedCompletions( // the flag exists
		[]string{shortSigner(pki.SignerKubeletClient), shortSigner(pki.SignerKubeletServing), shortSigner(pki.SignerClient)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func csrFormats() []string {
	return []string{formatTable, formatWide, formatJSON, formatYAML, formatName}
}

func (c *csrCommand) printList(_ context.Context, reviews []review.Review, output string) error {
	switch output {
	case formatJSON, formatYAML:
		if reviews == nil {
			reviews = []review.Review{}
		}
		return printData(c.out, output, reviews)
	case formatName:
		for _, r := range reviews {
			if _, err := fmt.Fprintln(c.out, signingRequests().qualified(r.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(reviews) == 0 {
		_, err := fmt.Fprintln(c.err, "No certificate signing requests found.")
		return err
	}
	headings := []string{"NAME", "AGE", "SIGNER", "REQUESTER", "FOR", "STATE", "VERDICT", "WHY"}
	if output == formatWide {
		headings = []string{"NAME", "AGE", "SIGNER", "REQUESTER", "COMMON-NAME", "NAMES", "KEY", "STATE", "VERDICT", "RULE", "WHY"}
	}
	t := table.New(c.out, headings...)
	for _, r := range reviews {
		age := duration.HumanDuration(c.now().Sub(r.Created))
		if output == formatWide {
			t.Row(r.Name, age, r.SignerName, r.Requester.Username, r.Asked.CommonName,
				strings.Join(append(slices.Clone(r.Asked.DNSNames), r.Asked.Addresses...), ","), r.Asked.Key,
				string(r.State), string(r.Verdict), string(r.Rule), why(r))
			continue
		}
		t.Row(r.Name, age, shortSigner(r.SignerName), requester(r), shorten(asked(r), 60), string(r.State), string(r.Verdict), shorten(why(r), 100))
	}
	return t.Flush()
}

// requester is the node's name where it is a node, as that is long enough.
func requester(r review.Review) string {
	return strings.TrimPrefix(r.Requester.Username, "system:")
}

// asked is what the certificate is to be for: of a node the names and addresses that a serving certificate adds to its name.
func asked(r review.Review) string {
	own := strings.TrimPrefix(r.Asked.CommonName, "system:node:")
	others := slices.DeleteFunc(slices.Concat(r.Asked.DNSNames, r.Asked.Addresses), func(name string) bool { return name == own })
	return strings.Join(slices.Concat([]string{own}, others), ",")
}

// why says what people want to know next: of an issued certificate how long it lasts, of the others the reason.
func why(r review.Review) string {
	switch {
	case r.Certificate != nil:
		return "certificate until " + r.Certificate.NotAfter.UTC().Format("2006-01-02 15:04 MST")
	case r.Rule != "":
		return string(r.Rule) + ": " + r.Why
	case r.Why == "" && r.State == review.Pending:
		return "nobody has said anything yet"
	}
	return r.Why
}

func shorten(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
