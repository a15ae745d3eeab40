// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/platform/decision"
	"muster.dev/muster/internal/platform/termsafe"
)

func (c *csrCommand) explain() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Show what a request asks for, and what each rule said about it",
		Long: `Show what a request asks for, as its bytes have it, the requester, the state of the request, and what each rule said.

The rules' words come from the decision that the certificate controller wrote into the request with its verdict. Nodes cannot
write there. A request that still waits has them in an Event, which says so: nodes can write Events.`,
		Example: `  muster csr explain csr-8x2vq
  muster csr explain csr-8x2vq -o json | jq .decision.checks`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeRequests,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := terminal.CheckOutput(output, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
				return err
			}
			reviews, err := c.reviews(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if output != terminal.FormatTable {
				return terminal.PrintData(c.Out, output, reviews[0])
			}
			return c.tell(c.Out, reviews[0])
		},
	}
	terminal.AddFormatFlag(cmd, &output, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

// tell writes a review as a person would read it.
func (c *csrCommand) tell(w io.Writer, r csrview.Review) error {
	var b strings.Builder
	line := func(label string, values ...string) {
		if text := strings.Join(values, ", "); text != "" {
			fmt.Fprintf(&b, "%-13s %s\n", label+":", termsafe.Line(text))
		}
	}
	line("Request", r.Name)
	line("Age", duration.HumanDuration(c.now().Sub(r.Created)))
	line("Signer", r.SignerName)
	line("Requester", r.Requester.Username)
	line("Groups", r.Requester.Groups...)
	if r.Asked.Unreadable != "" {
		line("Unreadable", r.Asked.Unreadable)
	}
	line("Common name", r.Asked.CommonName)
	line("Organization", r.Asked.Organization...)
	line("DNS names", r.Asked.DNSNames...)
	line("Addresses", r.Asked.Addresses...)
	line("Key", r.Asked.Key)
	line("Usages", r.Asked.Usages...)
	if s := r.Asked.ExpirationSeconds; s != nil {
		line("Duration", (time.Duration(*s) * time.Second).String())
	}
	line("State", string(r.State))
	if r.Certificate != nil {
		line("Certificate", fmt.Sprintf("serial %s by %s, %s to %s", r.Certificate.Serial, r.Certificate.Issuer,
			r.Certificate.NotBefore.UTC().Format(time.RFC3339), r.Certificate.NotAfter.UTC().Format(time.RFC3339)))
	}
	switch {
	case r.Decision != nil:
		if r.State == csrview.Approved && r.Verdict == decision.Wait {
			line("Why", r.Why)
		}
		fmt.Fprintf(&b, "\n%s", termsafe.Lines(r.Decision.String()))
		if r.Source == csrview.FromEvent {
			b.WriteString("\nThis is what an Event says; Events can be written by nodes.\n")
		}
	case r.Why != "":
		line("Why", fmt.Sprintf("%s (%s)", r.Why, r.Source))
	case r.State == csrview.Pending:
		b.WriteString("\nThe certificate controller has said nothing about it: it may not be running, not be set up for this signer, or tell of it later\nbecause the requester asks for many certificates (of more than 100 requests it tells one a second).\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
