// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
)

// formatText is a token alone, or a join command alone.
const formatText = "text"

// createFlags holds the flags of "muster token create".
type createFlags struct {
	bootstraptoken.Wish
	joinCommand  bool
	tool, output string
}

func (c *tokenCommand) create() *cobra.Command {
	var w createFlags
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
  muster token create --node-name worker-1 --address 172.31.0.200 --print-join-command

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
	flags.DurationVar(&w.TTL, "ttl", 24*time.Hour, "lifetime of the token; 0 means that it never expires")
	flags.StringSliceVar(&w.Usages, "usages", []string{token.UsageSigning, token.UsageAuthentication}, "what it is good for: signing (finding the cluster), authentication (asking for a certificate)")
	flags.StringSliceVar(&w.Groups, "groups", []string{token.DefaultGroup}, "groups that its holder is in")
	flags.StringVar(&w.Description, "description", "", "what it is for, for people")
	flags.StringVar(&w.NodeName, "node-name", "", "bind it to the node of this name")
	flags.BoolVar(&w.Rejoin, "rejoin", false, "let the node of this --node-name join again, once its certificate has expired")
	flags.StringVar(&w.Pattern, "pattern", "", "bind it to names of nodes such as 'worker-*'")
	flags.StringVar(&w.Group, "group", "", "bind it to the machines of this group of the inventory")
	flags.StringVar(&w.Machine, "machine", "", "bind it to the machine of this ID")
	flags.StringSliceVar(&w.Addresses, "address", nil, "address of the host --node-name, which registers it; may be repeated")
	flags.BoolVar(&w.joinCommand, "print-join-command", false, "print the command to run on the machine, instead of the token")
	addToolFlag(cmd, &w.tool)
	terminal.AddFormatFlag(cmd, &w.output, formatText, formatText, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

// wishFlags are the flags that fill the fields of a wish.
var wishFlags = map[bootstraptoken.Field]string{
	bootstraptoken.FieldTTL: "ttl", bootstraptoken.FieldMachine: "machine", bootstraptoken.FieldNodeName: "node-name",
	bootstraptoken.FieldRejoin: "rejoin", bootstraptoken.FieldAddresses: "address",
}

// flagsNamed names the flags in an error about fields of a wish.
func flagsNamed(err error) error {
	var wrong *bootstraptoken.WishError
	if !errors.As(err, &wrong) {
		return err
	}
	return errors.New(wrong.Text(func(f bootstraptoken.Field) string { return "--" + wishFlags[f] }))
}

// given returns the token of the arguments: a random one, or one from standard input or the command line.
func (c *tokenCommand) given(args []string) (token.Token, error) {
	switch {
	case len(args) == 0:
		return token.Generate(c.random)
	case args[0] == terminal.StandardInput:
		return readToken(c.In)
	default:
		return token.Parse(args[0])
	}
}

func readToken(in io.Reader) (token.Token, error) {
	text, err := terminal.ReadInput(in, terminal.StandardInput, "the token", 1<<10)
	if err != nil {
		return token.Token{}, err
	}
	return token.Parse(strings.TrimSpace(string(text)))
}

func (c *tokenCommand) runCreate(ctx context.Context, args []string, w createFlags) error {
	if err := terminal.CheckOutput(w.output, formatText, terminal.FormatJSON, terminal.FormatYAML); err != nil {
		return err
	}
	if err := checkTool(w.tool); err != nil {
		return err
	}
	b, err := w.Bootstrap(c.now(), func() (token.Token, error) { return c.given(args) })
	if err != nil {
		return terminal.UsageError{Err: flagsNamed(err)}
	}
	host, err := w.Host()
	if err != nil {
		return terminal.UsageError{Err: flagsNamed(err)}
	}
	scopes, err := b.Scopes()
	if err != nil {
		return terminal.UsageError{Err: err}
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
	c.advise(ctx, p, made, fitting || w.Rejoin)
	if w.output != formatText {
		shown := c.shown(made, nil, true)
		shown.JoinCommand = command
		return terminal.PrintData(c.Out, w.output, shown)
	}
	_, err = fmt.Fprintln(c.Out, terminal.Or(command, b.Token.Reveal()))
	return err
}

// fitting reports whether a registered host, or the one that is to be, may use the token, and refuses what nobody could
// use or what would register the wrong host. A list that cannot be read is an error later, when it is written.
func (c *tokenCommand) fitting(ctx context.Context, p *kinds.Client, host *policy.Machine, scopes []token.Scope) (bool, error) {
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

func (c *tokenCommand) register(ctx context.Context, p *kinds.Client, host policy.Machine) error {
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

// advise prints hints and warnings about a new token: that it never expires, is bound to nothing, is not enforced, or
// fits no known machine.
func (c *tokenCommand) advise(ctx context.Context, p *kinds.Client, b bootstraptoken.Listed, known bool) {
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
