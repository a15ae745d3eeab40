// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/policy"
)

// verdictByHand is a condition that a person sets.
type verdictByHand struct {
	condition    certificatesv1.RequestConditionType
	reason, done string
}

func (c *csrCommand) approve() *cobra.Command {
	return c.decide(verdictByHand{certificatesv1.CertificateApproved, policy.ReasonApprovedByOperator, "approved"}, &cobra.Command{
		Use:   "approve NAME... --reason TEXT",
		Short: "Approve requests by hand",
		Long: `Approve requests by hand. The certificate controller still judges what a request asks for before it signs it: an
approval replaces its rules about the requester, not those about names, addresses, keys and usages.

An approval cannot be taken back. What is approved already is left as it is.`,
		Example: `  # A user's certificate
  muster csr explain vip
  muster csr approve vip --reason 'Vip of the payments team, ticket 4711'`,
	})
}

func (c *csrCommand) deny() *cobra.Command {
	return c.decide(verdictByHand{certificatesv1.CertificateDenied, "DeniedByOperator", "denied"}, &cobra.Command{
		Use:   "deny NAME... --reason TEXT",
		Short: "Deny requests by hand",
		Long: `Deny requests by hand. A denial cannot be taken back; the requester may make a new request, and kubelets do
so after half a minute. What is denied already is left as it is.`,
		Example: `  muster csr deny csr-8x2vq --reason 'The machine was sold'`,
	})
}

func (c *csrCommand) decide(v verdictByHand, cmd *cobra.Command) *cobra.Command {
	var reason, output string
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.ValidArgsFunction = c.completeRequests
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := terminal.CheckOutput(output, terminal.FormatTable, terminal.FormatName, terminal.FormatJSON, terminal.FormatYAML); err != nil {
			return err
		}
		if reason = strings.TrimSpace(reason); reason == "" {
			return terminal.UsageError{Err: errNoReason}
		}
		p, err := c.cluster(c.Options)
		if err != nil {
			return err
		}
		requests, err := p.Requests(cmd.Context(), args) // all of them must be there before one is decided
		if err != nil {
			return err
		}
		for i := range requests {
			if err := possible(&requests[i], v); err != nil {
				return err
			}
		}
		for i := range requests {
			if err := c.write(cmd.Context(), p, requests[i].Name, v, reason, output); err != nil {
				return err
			}
		}
		return nil
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a sentence (required); it is kept in the request")
	terminal.AddFormatFlag(cmd, &output, terminal.FormatTable, terminal.FormatTable, terminal.FormatName, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

// possible reports whether a verdict can still be given.
func possible(csr *certificatesv1.CertificateSigningRequest, v verdictByHand) error {
	r := csrview.Of(csr, nil)
	for _, c := range csr.Status.Conditions {
		if c.Type == v.condition {
			return nil
		}
	}
	if r.State != csrview.Pending {
		return fmt.Errorf("request %s is already %s, which is final: the requester must make a new request", csr.Name, strings.ToLower(string(r.State)))
	}
	return nil
}

// write sets the condition, over changes that others make at the same time.
func (c *csrCommand) write(ctx context.Context, p *kinds.Client, name string, v verdictByHand, reason, output string) error {
	ctx, cancel := context.WithTimeout(ctx, kinds.AnswerTime)
	defer cancel()
	for {
		var csr certificatesv1.CertificateSigningRequest
		if err := p.Read(ctx, name, &csr); err != nil {
			return kinds.MissingCSR(name, err)
		}
		if err := possible(&csr, v); err != nil {
			return err
		}
		if done(&csr, v) {
			return c.say(&csr, "was "+v.done+" already", output)
		}
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: v.condition, Status: corev1.ConditionTrue, Reason: v.reason, Message: reason, LastUpdateTime: metav1.NewTime(c.now().Truncate(time.Second)),
		})
		err := p.SubResource("approval").Update(ctx, &csr)
		switch {
		case err == nil:
			return c.say(&csr, v.done, output)
		case !apierrors.IsConflict(err):
			return p.Explain(err)
		}
	}
}

func done(csr *certificatesv1.CertificateSigningRequest, v verdictByHand) bool {
	for _, c := range csr.Status.Conditions {
		if c.Type == v.condition {
			return true
		}
	}
	return false
}

func (c *csrCommand) say(csr *certificatesv1.CertificateSigningRequest, what, output string) error {
	switch output {
	case terminal.FormatJSON, terminal.FormatYAML:
		return terminal.PrintData(c.Out, output, csrview.Of(csr, nil))
	case terminal.FormatName:
		_, err := fmt.Fprintln(c.Out, kinds.SigningRequests().Qualified(csr.Name))
		return err
	}
	_, err := fmt.Fprintf(c.Out, "%s %s\n", kinds.SigningRequests().Qualified(csr.Name), what)
	return err
}
