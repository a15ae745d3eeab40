// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
	"muster.dev/muster/internal/platform/table"
)

// shownToken is a token as it is printed.
type shownToken struct {
	ID          string     `json:"id"`
	Token       string     `json:"token,omitempty"` // whole, if that was asked for
	Created     time.Time  `json:"created"`
	Expires     *time.Time `json:"expires,omitempty"`
	Usages      []string   `json:"usages"`
	Groups      []string   `json:"groups"`
	BoundTo     []boundTo  `json:"boundTo"`
	UsedBy      []usedBy   `json:"usedBy"`
	Description string     `json:"description,omitempty"`
	JoinCommand string     `json:"joinCommand,omitempty"`
}

type boundTo struct {
	Kind  token.ScopeKind `json:"kind"`
	Value string          `json:"value"`
}

type usedBy struct {
	Node    string    `json:"node"`
	Time    time.Time `json:"time"`
	Request string    `json:"request"`
}

func (c *tokenCommand) shown(l bootstraptoken.Listed, uses []bootstraptoken.Use, secret bool) shownToken {
	s := shownToken{
		ID: l.Token.ID, Created: l.Created.UTC().Truncate(time.Second), Usages: l.Usages, Groups: append([]string{}, l.Groups...),
		BoundTo: []boundTo{}, UsedBy: []usedBy{}, Description: l.Description,
	}
	if secret {
		s.Token = l.Token.Reveal()
	}
	if !l.Expires.IsZero() {
		s.Expires = new(l.Expires.UTC())
	}
	for _, scope := range l.Scopes {
		s.BoundTo = append(s.BoundTo, boundTo{scope.Kind, scope.Value})
	}
	for _, u := range uses {
		s.UsedBy = append(s.UsedBy, usedBy{u.Node, u.At.UTC(), u.Request})
	}
	return s
}

func (c *tokenCommand) list() *cobra.Command {
	var output string
	var secrets bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List tokens: when they expire, what they are good for, and which node used each",
		Long: `List tokens: when each expires, what it is good for, and which nodes got certificates by it and when. The uses of a token come from the
record of issued certificates and from the requests that are still there. --show-secrets shows whole tokens.`,
		Example: `  muster token list
  muster token list -o json | jq '.[] | select(.usedBy == []) | .id'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := terminal.CheckOutput(output, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
				return err
			}
			tokens, uses, err := c.listed(cmd.Context())
			if err != nil {
				return err
			}
			if output == terminal.FormatTable {
				return c.printTable(tokens, uses, secrets)
			}
			all := []shownToken{}
			for _, l := range tokens {
				all = append(all, c.shown(l, uses[l.Token.ID], secrets))
			}
			return terminal.PrintData(c.Out, output, all)
		},
	}
	terminal.AddFormatFlag(cmd, &output, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	cmd.Flags().BoolVar(&secrets, "show-secrets", false, "show whole tokens, with which anybody can join")
	return cmd
}

// listed reads tokens and, by token ID, their uses. Parts that cannot be read become warnings.
func (c *tokenCommand) listed(ctx context.Context) ([]bootstraptoken.Listed, map[string][]bootstraptoken.Use, error) {
	p, err := c.cluster(c.Options)
	if err != nil {
		return nil, nil, err
	}
	var tokens []bootstraptoken.Listed
	var unusable []error
	err = p.Within(ctx, func(ctx context.Context) (err error) { tokens, unusable, err = bootstraptoken.List(ctx, p); return err })
	if err != nil {
		return nil, nil, err
	}
	for _, problem := range unusable {
		_, _ = fmt.Fprintf(c.Err, "Warning: %v\n", problem)
	}
	var requests certificatesv1.CertificateSigningRequestList
	if err := p.ReadAll(ctx, &requests); err != nil {
		_, _ = fmt.Fprintf(c.Err, "Warning: who used tokens may be incomplete: %v\n", err)
	}
	var entries []issued.Entry
	err = p.Within(ctx, func(ctx context.Context) (err error) { entries, err = c.issued(ctx, c.Options); return err })
	if err != nil {
		_, _ = fmt.Fprintf(c.Err, "Warning: who used tokens may be incomplete: %v\n", err)
	}
	uses := map[string][]bootstraptoken.Use{}
	for _, l := range tokens {
		uses[l.Token.ID] = bootstraptoken.UsesOf(l, entries, requests.Items)
	}
	return tokens, uses, nil
}

func (c *tokenCommand) printTable(tokens []bootstraptoken.Listed, uses map[string][]bootstraptoken.Use, secrets bool) error {
	if len(tokens) == 0 {
		_, err := fmt.Fprintln(c.Err, "No bootstrap tokens found.")
		return err
	}
	t := table.New(c.Out, "TOKEN", "TTL", "EXPIRES", "USAGES", "BOUND TO", "USED BY", "WHEN", "DESCRIPTION")
	for _, l := range tokens {
		text, ttl, expires := l.Token.ID, "<forever>", "<never>"
		if secrets {
			text = l.Token.Reveal()
		}
		if !l.Expires.IsZero() {
			ttl, expires = duration.ShortHumanDuration(l.Expires.Sub(c.now())), l.Expires.UTC().Format(time.RFC3339)
			if l.Expired(c.now()) {
				ttl = "expired"
			}
		}
		var bound []string
		for _, s := range l.Scopes {
			bound = append(bound, fmt.Sprintf("%s %s", s.Kind, s.Value))
		}
		who, when := c.used(uses[l.Token.ID])
		t.Row(text, ttl, expires, strings.Join(l.Usages, ","), terminal.OrDash(strings.Join(bound, ",")), terminal.OrDash(who), terminal.OrDash(when), terminal.OrDash(l.Description))
	}
	return t.Flush()
}

// used returns the nodes that used a token, the last one first, and the time of the last use.
func (c *tokenCommand) used(uses []bootstraptoken.Use) (who, when string) {
	if len(uses) == 0 {
		return "", ""
	}
	var nodes []string
	for _, u := range slices.Backward(uses) {
		if !slices.Contains(nodes, u.Node) {
			nodes = append(nodes, u.Node)
		}
	}
	if more := len(nodes) - 2; more > 0 {
		nodes = append(nodes[:2], fmt.Sprintf("%d more", more))
	}
	return strings.Join(nodes, ","), duration.HumanDuration(c.now().Sub(uses[len(uses)-1].At)) + " ago"
}
