// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
)

// tokenCommand is what all "muster token" commands have.
type tokenCommand struct {
	*terminal.Options
	cluster func(*terminal.Options) (*kinds.Client, error)
	// issued and bindings read the register of issued certificates, and the ClusterRoleBindings.
	issued   func(context.Context, *terminal.Options) ([]issued.Entry, error)
	bindings func(context.Context, *terminal.Options) ([]rbacv1.ClusterRoleBinding, error)
	now      func() time.Time
	random   io.Reader
}

// NewCommand returns "muster token".
func NewCommand(o *terminal.Options) *cobra.Command {
	var way kinds.Access
	c := &tokenCommand{Options: o, cluster: way.Connect, now: time.Now, random: rand.Reader}
	c.issued = func(ctx context.Context, o *terminal.Options) ([]issued.Entry, error) {
		client, err := way.Clientset(o)
		if err != nil {
			return nil, err
		}
		return issued.Load(ctx, client, policyconfig.HostsNamespace)
	}
	c.bindings = func(ctx context.Context, o *terminal.Options) ([]rbacv1.ClusterRoleBinding, error) {
		client, err := way.Clientset(o)
		if err != nil {
			return nil, err
		}
		list, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	cmd := c.command()
	way.AddFlags(cmd.PersistentFlags())
	return cmd
}

func (c *tokenCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Aliases: []string{"tokens"},
		Short:   "Manage bootstrap tokens and print join commands; print tokens of IAM identities",
		Long: `Make, list and delete bootstrap tokens. With a token a machine recognizes the cluster and gets its first certificate. The tokens are
those of kubeadm: each program can use the tokens of the other. A token that is bound to a machine, a name, a group or a pattern of
names is good for that alone, which the certificate controller enforces.

This works with muster's own clusters, and with any other (--kubeconfig).`,
		Args: func(_ *cobra.Command, args []string) error {
			verbs := []string{"create", "list", "delete", "generate", "print-join-command", "get"}
			if len(args) == 0 {
				return fmt.Errorf("muster token needs a subcommand: %s", strings.Join(verbs, ", "))
			}
			return fmt.Errorf("there is no muster token %q%s; there are: %s", args[0], terminal.DidYouMean(args[0], verbs), strings.Join(verbs, ", "))
		},
		RunE: terminal.NothingToDo,
	}
	cmd.AddCommand(c.create(), c.list(), c.delete(), c.generate(), c.printJoinCommand(), newTokenGetCommand(c.Options))
	return cmd
}

func (c *tokenCommand) generate() *cobra.Command {
	return &cobra.Command{
		Use:     "generate",
		Short:   "Print a random token without creating it, for muster token create TOKEN",
		Example: `  muster token generate`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t, err := token.Generate(c.random)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.Out, t.Reveal())
			return err
		},
	}
}

func (c *tokenCommand) delete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID|TOKEN...",
		Short: "Delete tokens, so that nobody joins with them any more",
		Long: `Delete tokens, each named by its ID or whole, so that nobody joins with them any more. Nodes that joined stay: they have
certificates of their own.`,
		Example:           `  muster token delete abcdef`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids := make([]string, len(args))
			for i, arg := range args {
				id, err := token.ParseID(arg)
				if err != nil {
					return terminal.UsageError{Err: err}
				}
				ids[i] = id
			}
			p, err := c.cluster(c.Options)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := p.Within(cmd.Context(), func(ctx context.Context) error { return bootstraptoken.Delete(ctx, p, id) }); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.Out, "token %q deleted\n", id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (c *tokenCommand) printJoinCommand() *cobra.Command {
	var tool string
	cmd := &cobra.Command{
		Use:   "print-join-command ID|TOKEN",
		Short: "Print the command by which a machine joins with a token that exists",
		Long: `Print the command by which a machine joins with a token that exists, with the address of the cluster and the hash of its authority.
The whole token is in the command. muster token create --print-join-command makes a new token for it.`,
		Example: `  muster token print-join-command abcdef
  muster token print-join-command abcdef --for kubeadm`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := token.ParseID(args[0])
			if err != nil {
				return terminal.UsageError{Err: err}
			}
			if err := checkTool(tool); err != nil {
				return err
			}
			p, err := c.cluster(c.Options)
			if err != nil {
				return err
			}
			var l bootstraptoken.Listed
			err = p.Within(cmd.Context(), func(ctx context.Context) (err error) { l, err = bootstraptoken.Get(ctx, p, id); return err })
			if err != nil {
				return err
			}
			text, err := c.joinCommand(cmd.Context(), p, tool, l)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.Out, text)
			return err
		},
	}
	addToolFlag(cmd, &tool)
	return cmd
}

func tools() []string { return []string{string(bootstraptoken.Muster), string(bootstraptoken.Kubeadm)} }

func addToolFlag(cmd *cobra.Command, tool *string) {
	cmd.Flags().StringVar(tool, "for", string(bootstraptoken.Muster), "program that joins the machine: "+strings.Join(tools(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(tools(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func checkTool(tool string) error {
	if !slices.Contains(tools(), tool) {
		return terminal.UsageError{Err: fmt.Errorf("unknown program %q in --for; there are: %s", tool, strings.Join(tools(), ", "))}
	}
	return nil
}

// joinCommand words it for a token.
func (c *tokenCommand) joinCommand(ctx context.Context, p *kinds.Client, tool string, l bootstraptoken.Listed) (string, error) {
	var door bootstraptoken.Door
	err := p.Within(ctx, func(ctx context.Context) (err error) { door, err = bootstraptoken.ReadDoor(ctx, p); return err })
	if err != nil {
		return "", err
	}
	return door.Command(bootstraptoken.Tool(tool), l, c.now())
}

// complete offers the IDs of tokens.
func (c *tokenCommand) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	p, err := c.cluster(c.Options)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), kinds.CompletionTime)
	defer cancel()
	tokens, _, err := bootstraptoken.List(ctx, p)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, l := range tokens {
		if !slices.Contains(args, l.Token.ID) {
			ids = append(ids, l.Token.ID)
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
