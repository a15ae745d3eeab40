// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/cmd/muster/plane"
	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
)

// formatText is a token alone, or a join command alone.
const formatText = "text"

// tokenWish holds the flags of "muster token create".
type tokenWish struct {
	ttl                               time.Duration
	usages, groups, addresses         []string
	description                       string
	machine, nodeName, pattern, group string
	joinCommand, rejoin               bool
	tool, output                      string
}

func (c *tokenCommand) create() *cobra.Command {
	var w tokenWish
	cmd := &cobra.Command{
		Use:   "create [TOKEN]",
		Short: "Make a token that is bound to a machine, a name or a group, or to nothing",
		Long: `Make a bootstrap token and print it. Later only muster token list --show-secrets shows the whole token. The token is random unless TOKEN
is given; - reads it from standard input, which others on this host cannot see.

With --node-name the token is good for the node of that name alone. With --address that host is registered, too: the certificate
controller then knows that the host may be a node, and which addresses its certificates may have. With a token that is bound to
nothing a machine can find the cluster and ask for a certificate, and the request waits for muster csr approve.

A token cannot take over the name of a node that exists. With --rejoin that node may join again once its certificate has expired, as
it does when a machine was off for too long.`,
		Example: `  # A host of your own: register it, and print the command to run on it
  muster token create --node-name worker-1 --address 192.168.64.200 --print-join-command

  # Its certificate expired while it was off
  muster token create --node-name worker-1 --rejoin --ttl 1h --print-join-command

  # Whatever is called rack-7-… and in the inventory, for a week, by kubeadm
  muster token create --pattern 'rack-7-*' --ttl 168h --print-join-command --for kubeadm

  # As kubeadm makes it, in another cluster
  muster token create --kubeconfig ~/.kube/config`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.runCreate(cmd.Context(), args, w) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&w.ttl, "ttl", 24*time.Hour, "lifetime of the token; 0 means that it never expires")
	flags.StringSliceVar(&w.usages, "usages", []string{token.UsageSigning, token.UsageAuthentication}, "what it is good for: signing (finding the cluster), authentication (asking for a certificate)")
	flags.StringSliceVar(&w.groups, "groups", []string{token.DefaultGroup}, "groups that its holder is in")
	flags.StringVar(&w.description, "description", "", "what it is for, for people")
	flags.StringVar(&w.nodeName, "node-name", "", "bind it to the node of this name")
	flags.BoolVar(&w.rejoin, "rejoin", false, "let the node of this --node-name join again, once its certificate has expired")
	flags.StringVar(&w.pattern, "pattern", "", "bind it to names of nodes such as 'worker-*'")
	flags.StringVar(&w.group, "group", "", "bind it to the machines of this group of the inventory")
	flags.StringVar(&w.machine, "machine", "", "bind it to the machine of this ID")
	flags.StringSliceVar(&w.addresses, "address", nil, "address of the host --node-name, which registers it; may be repeated")
	flags.BoolVar(&w.joinCommand, "print-join-command", false, "print the command to run on the machine, instead of the token")
	addToolFlag(cmd, &w.tool)
	console.AddFormatFlag(cmd, &w.output, formatText, formatText, console.FormatJSON, console.FormatYAML)
	return cmd
}

// wished makes a token of the flags, or returns what is wrong with them.
func (c *tokenCommand) wished(args []string, w tokenWish) (token.Bootstrap, error) {
	switch {
	case w.ttl < 0:
		return token.Bootstrap{}, fmt.Errorf("invalid --ttl %s: must not be negative; 0 makes a token that never expires", w.ttl)
	case w.ttl > 0 && w.ttl < time.Second:
		return token.Bootstrap{}, fmt.Errorf("--ttl %s is too short: the end of a token is kept in whole seconds; give 1s or more, or 0 for a token without an end", w.ttl)
	}
	b := token.Bootstrap{Usages: w.usages, Groups: w.groups, Description: w.description}
	if w.ttl > 0 {
		b.Expires = c.now().Add(w.ttl).UTC().Truncate(time.Second)
	}
	again := ""
	if w.rejoin {
		if again = w.nodeName; again == "" {
			return token.Bootstrap{}, errors.New("--rejoin needs --node-name, the name of the node that may join again")
		}
	}
	var scopes []token.Scope
	for _, s := range []token.Scope{
		{Kind: token.ScopeMachine, Value: w.machine},
		{Kind: token.ScopeName, Value: w.nodeName},
		{Kind: token.ScopeGroup, Value: w.group},
		{Kind: token.ScopePattern, Value: w.pattern},
		{Kind: token.ScopeRejoin, Value: again},
	} {
		if s.Value != "" {
			scopes = append(scopes, s)
		}
	}
	if err := b.Bind(scopes...); err != nil {
		return token.Bootstrap{}, err
	}
	var err error
	switch {
	case len(args) == 0:
		b.Token, err = token.Generate(c.random)
	case args[0] == console.StandardInput:
		b.Token, err = readToken(c.In)
	default:
		b.Token, err = token.Parse(args[0])
	}
	if err != nil {
		return token.Bootstrap{}, err
	}
	return b, b.Check()
}

func readToken(in io.Reader) (token.Token, error) {
	text, err := console.ReadInput(in, console.StandardInput, "the token", 1<<10)
	if err != nil {
		return token.Token{}, err
	}
	return token.Parse(strings.TrimSpace(string(text)))
}

// host is the machine that is to be registered, nil if none is.
func (w tokenWish) host() (*policy.Machine, error) {
	switch {
	case len(w.addresses) == 0:
		return nil, nil //nolint:nilnil // none is meant
	case w.nodeName == "":
		return nil, errors.New("--address needs --node-name, the name of the host that it registers")
	case w.machine != "":
		return nil, fmt.Errorf("--address registers the host as machine %s, so --machine can name no other one: leave it out", facts.HostID(w.nodeName))
	}
	m := &policy.Machine{ID: facts.HostID(w.nodeName), NodeName: w.nodeName, Group: w.group}
	for _, text := range w.addresses {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return nil, fmt.Errorf("invalid --address %q: must be an IP address", text)
		}
		m.Addresses = append(m.Addresses, address)
	}
	// In a list of its own: what is wrong with it is wrong before anything is written.
	if _, _, err := facts.AddMachine([]byte("machines: []"), *m); err != nil {
		return nil, fmt.Errorf("cannot register the host: %w", err)
	}
	return m, nil
}

func (c *tokenCommand) runCreate(ctx context.Context, args []string, w tokenWish) error {
	if err := console.CheckOutput(w.output, formatText, console.FormatJSON, console.FormatYAML); err != nil {
		return err
	}
	if err := checkTool(w.tool); err != nil {
		return err
	}
	b, err := c.wished(args, w)
	if err != nil {
		return console.UsageError{Err: err}
	}
	host, err := w.host()
	if err != nil {
		return console.UsageError{Err: err}
	}
	scopes, err := b.Scopes()
	if err != nil {
		return console.UsageError{Err: err}
	}
	made := bootstraptoken.Listed{Bootstrap: b, Created: c.now(), Scopes: scopes}
	p, err := c.cluster(c.Options)
	if err != nil {
		return err
	}
	fitting, err := c.fitting(ctx, p, host, scopes)
	if err != nil {
		return err
	}
	command := ""
	if w.joinCommand { // before anything is made that nobody could use
		if command, err = c.joinCommand(ctx, p, w.tool, made); err != nil {
			return err
		}
	}
	if err := p.Within(ctx, func(ctx context.Context) error { return bootstraptoken.Create(ctx, p, b) }); err != nil {
		return err
	}
	if host != nil {
		if err := c.register(ctx, p, *host); err != nil {
			undone := p.Within(context.WithoutCancel(ctx), func(ctx context.Context) error { return bootstraptoken.Delete(ctx, p, b.Token.ID) })
			return errors.Join(err, undone)
		}
	}
	c.advise(ctx, p, made, fitting || w.rejoin)
	if w.output != formatText {
		shown := c.shown(made, nil, true)
		shown.JoinCommand = command
		return console.PrintData(c.Out, w.output, shown)
	}
	_, err = fmt.Fprintln(c.Out, console.Or(command, b.Token.Reveal()))
	return err
}

// fitting reports whether a registered host, or the one that is to be, may use the token, and refuses what nobody could use or what would
// register the wrong host. A list that cannot be read is an error later, when it is written.
func (c *tokenCommand) fitting(ctx context.Context, p *plane.Client, host *policy.Machine, scopes []token.Scope) (bool, error) {
	var hosts []policy.Machine
	err := p.Within(ctx, func(ctx context.Context) (err error) { hosts, err = bootstraptoken.Hosts(ctx, p); return err })
	if err != nil {
		hosts = nil
	}
	if host != nil {
		var door bootstraptoken.Door
		err := p.Within(ctx, func(ctx context.Context) (err error) { door, err = bootstraptoken.ReadDoor(ctx, p); return err })
		if err == nil && door.IsAt(*host) {
			return false, fmt.Errorf("--address: %s is where the API server is, so host %s cannot be there: give the host's own address", door.Address, host.NodeName)
		}
		hosts = append(slices.DeleteFunc(hosts, func(m policy.Machine) bool { return m.ID == host.ID }), *host)
	}
	found, err := bootstraptoken.Fitting(hosts, scopes)
	return len(found) > 0, err
}

func (c *tokenCommand) register(ctx context.Context, p *plane.Client, host policy.Machine) error {
	var before *policy.Machine
	err := p.Within(ctx, func(ctx context.Context) (err error) { before, err = bootstraptoken.Register(ctx, p, host); return err })
	if err != nil {
		return fmt.Errorf("registering the host %s: %w", host.NodeName, err)
	}
	what := "is registered"
	if before != nil {
		what = "was registered already"
		if changes := bootstraptoken.Differences(*before, host); len(changes) > 0 {
			what = "was registered already, and now is with " + strings.Join(changes, ", ")
		}
	}
	_, err = fmt.Fprintf(c.Err, "Host %s %s (ConfigMap %s/%s); muster delete host %s forgets it.\n", host.NodeName, what, policyconfig.HostsNamespace, policyconfig.HostsConfigMap, host.NodeName)
	return err
}

// advise prints hints and warnings about a new token: that it never expires, is bound to nothing, is not enforced, or fits no known machine.
func (c *tokenCommand) advise(ctx context.Context, p *plane.Client, b bootstraptoken.Listed, known bool) {
	if b.Expires.IsZero() {
		_, _ = fmt.Fprintf(c.Err, "The token never expires: muster token delete %s, when it has served.\n", b.Token.ID)
	}
	switch {
	case !b.May(token.UsageAuthentication):
		return
	case len(b.Scopes) == 0:
		_, _ = fmt.Fprintln(c.Err, "The token is bound to no machine: requests made with it wait for muster csr approve, unless the policy says otherwise.")
		return
	}
	switch why := c.unenforced(ctx, p, b.Bootstrap); {
	case why != "":
		_, _ = fmt.Fprintf(c.Err, "Warning: the token may be good for more than it is bound to: %s.\n", why)
	case !known:
		_, _ = fmt.Fprintf(c.Err, "Only machines that an inventory knows are let in with it, and no registered host has the %s; --node-name with --address registers one.\n", scopeWords(b.Scopes))
	}
}

// scopeWords lists what a token is bound to.
func scopeWords(scopes []token.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = fmt.Sprintf("%s %s", s.Kind, s.Value)
	}
	return strings.Join(words, " and the ")
}
