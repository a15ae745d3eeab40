// SPDX-License-Identifier: Apache-2.0

package main

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/review"
	"muster.dev/muster/internal/trace"
)

// csrCommand is what all "muster csr" commands have.
type csrCommand struct {
	*options
	cluster func(*options) (*plane, error)
	now     func() time.Time
}

func newCSRCommand(o *options) *cobra.Command {
	var way access
	c := &csrCommand{options: o, cluster: way.connect, now: time.Now}
	cmd := c.command()
	way.addFlags(cmd.PersistentFlags())
	return cmd
}

func (c *csrCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "csr",
		Aliases: []string{"csrs"},
		Short:   "See who asked for which certificate, what came of it and why; approve, deny, simulate",
		Long: `See who asked for which certificate, what the certificate controller said and which rule said it. This works
with any cluster whose requests muster certificate-controller decides, not only with muster's own.`,
		Args: func(_ *cobra.Command, args []string) error {
			verbs := []string{"list", "explain", "simulate", "machines", "approve", "deny"}
			if len(args) == 0 {
				return fmt.Errorf("say what to do with requests: %s", strings.Join(verbs, ", "))
			}
			return fmt.Errorf("there is no muster csr %q%s; there are: %s", args[0], didYouMean(args[0], verbs), strings.Join(verbs, ", "))
		},
		RunE: nothingToDo,
	}
	cmd.AddCommand(c.list(), c.explain(), c.simulate(), c.machines(), c.approve(), c.deny())
	return cmd
}

// reviews reads all requests, or those named, and what is known about each.
func (c *csrCommand) reviews(ctx context.Context, names ...string) ([]review.Review, error) {
	p, err := c.cluster(c.options)
	if err != nil {
		return nil, err
	}
	requests, err := p.requests(ctx, names)
	if err != nil {
		return nil, err
	}
	events, err := p.events(ctx)
	switch {
	case apierrors.IsForbidden(err): // they tell about requests that wait, and are not needed for the others
		_, _ = fmt.Fprintf(c.err, "Warning: what requests wait for may be missing: %v\n", err)
	case err != nil:
		return nil, err
	}
	reviews := make([]review.Review, 0, len(requests))
	for i := range requests {
		reviews = append(reviews, reviewed(&requests[i], events[requests[i].Name]))
	}
	return reviews, nil
}

// reviewed is what is known about a request. One that a person approved is judged again before it is signed: what it waits for stands in
// Events since then, and whoever approved it wants to know that rather than his own words.
func reviewed(csr *certificatesv1.CertificateSigningRequest, events []corev1.Event) review.Review {
	r := review.Of(csr, events)
	if r.State != review.Approved || r.Source != review.FromCondition {
		return r
	}
	open := csr.DeepCopy()
	open.Status.Conditions = nil
	if now := review.Of(open, events); now.Verdict == trace.Wait {
		r.Verdict, r.Rule, r.Decision, r.Source = now.Verdict, now.Rule, now.Decision, now.Source
		r.Why = now.Why + " (" + r.Why + ")"
	}
	return r
}

// requests reads requests by name, or all of them, the newest last.
func (p *plane) requests(ctx context.Context, names []string) ([]certificatesv1.CertificateSigningRequest, error) {
	if len(names) == 0 {
		var list certificatesv1.CertificateSigningRequestList
		if err := p.list(ctx, &list); err != nil {
			return nil, err
		}
		slices.SortStableFunc(list.Items, func(a, b certificatesv1.CertificateSigningRequest) int {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
		return list.Items, nil
	}
	found := make([]certificatesv1.CertificateSigningRequest, len(names))
	for i, name := range names {
		name = signingRequests().bare(name)
		if err := p.get(ctx, name, &found[i]); err != nil {
			return nil, missingCSR(name, err)
		}
	}
	return found, nil
}

func missingCSR(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no certificate signing request %q (any more: requests go an hour after they are issued or denied); muster csr list shows those there are", name)
	}
	return err
}

// events reads the Events about requests, by name of the request. Events about objects without a namespace are in "default".
func (p *plane) events(ctx context.Context) (map[string][]corev1.Event, error) {
	var list corev1.EventList
	if err := p.list(ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return nil, err
	}
	byName := map[string][]corev1.Event{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "CertificateSigningRequest" {
			byName[e.InvolvedObject.Name] = append(byName[e.InvolvedObject.Name], e)
		}
	}
	return byName, nil
}

// completeRequests offers the names of requests.
func (c *csrCommand) completeRequests(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	p, err := c.cluster(c.options)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	requests, err := p.requests(ctx, nil)
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

// shortSigner is the last part of a signer's name, which is what people tell signers apart by.
func shortSigner(name string) string {
	switch name {
	case pki.SignerKubeletClient:
		return "kubelet-client"
	case pki.SignerKubeletServing:
		return "kubelet-serving"
	}
	return strings.TrimPrefix(name, "kubernetes.io/")
}

var errNoReason = errors.New("say why with --reason: it is kept in the request for those who ask later")
