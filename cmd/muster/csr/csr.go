// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/platform/decision"
)

// csrCommand is what all "muster csr" commands have.
type csrCommand struct {
	*terminal.Options
	cluster func(*terminal.Options) (*kinds.Client, error)
	now     func() time.Time
}

// NewCommand returns "muster csr".
func NewCommand(o *terminal.Options) *cobra.Command {
	var way kinds.Access
	c := &csrCommand{Options: o, cluster: way.Connect, now: time.Now}
	cmd := c.command()
	way.AddFlags(cmd.PersistentFlags())
	return cmd
}

func (c *csrCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "csr",
		Aliases: []string{"csrs"},
		Short:   "Show certificate signing requests and why each was approved or denied; approve, deny, simulate",
		Long: `Show certificate signing requests: the requester, the decision of the certificate controller, and the rule that decided. This works
with any cluster whose requests muster certificate-controller decides, not only with muster's own.`,
		Args: func(_ *cobra.Command, args []string) error {
			verbs := []string{"list", "explain", "simulate", "machines", "approve", "deny"}
			if len(args) == 0 {
				return fmt.Errorf("muster csr needs a subcommand: %s", strings.Join(verbs, ", "))
			}
			return fmt.Errorf("there is no muster csr %q%s; there are: %s", args[0], terminal.DidYouMean(args[0], verbs), strings.Join(verbs, ", "))
		},
		RunE: terminal.NothingToDo,
	}
	cmd.AddCommand(c.list(), c.explain(), c.simulate(), c.machines(), c.approve(), c.deny())
	return cmd
}

// reviews reads all requests, or those named, with the Events about each.
func (c *csrCommand) reviews(ctx context.Context, names ...string) ([]csrview.Review, error) {
	p, err := c.cluster(c.Options)
	if err != nil {
		return nil, err
	}
	requests, err := p.Requests(ctx, names)
	if err != nil {
		return nil, err
	}
	events, err := p.Events(ctx)
	switch {
	case apierrors.IsForbidden(err): // they tell about requests that wait, and are not needed for the others
		_, _ = fmt.Fprintf(c.Err, "Warning: what requests wait for may be missing: %v\n", err)
	case err != nil:
		return nil, err
	}
	reviews := make([]csrview.Review, 0, len(requests))
	for i := range requests {
		reviews = append(reviews, reviewed(&requests[i], events[requests[i].Name]))
	}
	return reviews, nil
}

// reviewed returns what is known about a request. The controller judges a request again after a person approved it. If
// an Event since the approval says that the request waits, the review has the reason of that Event before the text of
// the approval.
func reviewed(csr *certificatesv1.CertificateSigningRequest, events []corev1.Event) csrview.Review {
	r := csrview.Of(csr, events)
	if r.State != csrview.Approved || r.Source != csrview.FromCondition {
		return r
	}
	open := csr.DeepCopy()
	open.Status.Conditions = nil
	if now := csrview.Of(open, events); now.Verdict == decision.Wait {
		r.Verdict, r.Rule, r.Decision, r.Source = now.Verdict, now.Rule, now.Decision, now.Source
		r.Why = now.Why + " (" + r.Why + ")"
	}
	return r
}

// completeRequests offers the names of requests.
func (c *csrCommand) completeRequests(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	p, err := c.cluster(c.Options)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), kinds.CompletionTime)
	defer cancel()
	requests, err := p.Requests(ctx, nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, r := range requests {
		if !slices.Contains(args, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

var errNoReason = errors.New("say why with --reason: it is kept in the request for those who ask later")
