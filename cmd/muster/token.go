// SPDX-License-Identifier: Apache-2.0

package main

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
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/component"
	"muster.dev/muster/internal/invite"
	"muster.dev/muster/internal/register"
	"muster.dev/muster/internal/token"
)

// tokenCommand is what all "muster token" commands have.
type tokenCommand struct {
	*options
	cluster func(*options) (*plane, error)
	// issued and bindings read the register of issued certificates, and who may do what.
	issued   func(context.Context, *options) ([]register.Entry, error)
	bindings func(context.Context, *options) ([]rbacv1.ClusterRoleBinding, error)
	now      func() time.Time
	random   io.Reader
}

func newTokenCommand(o *options) *cobra.Command {
	var way access
	c := &tokenCommand{options: o, cluster: way.connect, now: time.Now, random: rand.Reader}
	c.issued = func(ctx context.Context, o *options) ([]register.Entry, error) {
		client, err := way.clientset(o)
		if err != nil {
			return nil, err
		}
		return register.Load(ctx, client, component.HostsNamespace)
	}
	c.bindings = func(ctx context.Context, o *options) ([]rbacv1.ClusterRoleBinding, error) {
		client, err := way.clientset(o)
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
	way.addFlags(cmd.PersistentFlags())
	return cmd
}

// clientset is the cluster that the flags name, for what reads it by the clients of Kubernetes.
func (a *access) clientset(o *options) (kubernetes.Interface, error) {
	config, err := a.config(o)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", theCluster, err)
	}
	return client, nil
}

func (c *tokenCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Aliases: []string{"tokens"},
		Short:   "Let machines in: make, list and delete bootstrap tokens, print join commands; people's tokens by IAM",
		Long: `Make, list and delete bootstrap tokens: what a machine shows a cluster to get its first certificate, and knows the cluster by. They
are those of kubeadm, which sees ours as we see its own. A token that is bound to a machine, a name, a group or a pattern of names is
good for that alone, which the certificate controller enforces.

This works with muster's own clusters, and with any other (--kubeconfig).`,
		Args: func(_ *cobra.Command, args []string) error {
			verbs := []string{"create", "list", "delete", "generate", "print-join-command", "get"}
			if len(args) == 0 {
				return fmt.Errorf("say what to do with tokens: %s", strings.Join(verbs, ", "))
			}
			return fmt.Errorf("there is no muster token %q%s; there are: %s", args[0], didYouMean(args[0], verbs), strings.Join(verbs, ", "))
		},
		RunE: nothingToDo,
	}
	cmd.AddCommand(c.create(), c.list(), c.delete(), c.generate(), c.printJoinCommand(), newTokenGetCommand(c.options))
	return cmd
}

func (c *tokenCommand) generate() *cobra.Command {
	return &cobra.Command{
		Use:     "generate",
		Short:   "Print a token that is made nowhere yet, for muster token create TOKEN",
		Example: `  muster token generate`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t, err := token.Generate(c.random)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.out, t.Reveal())
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
					return usageError{Err: err}
				}
				ids[i] = id
			}
			p, err := c.cluster(c.options)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := p.within(cmd.Context(), func(ctx context.Context) error { return invite.Delete(ctx, p, id) }); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.out, "token %q deleted\n", id); err != nil {
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
		Short: "Print the command that a machine joins with by a token that is there",
		Long: `Print the command that a machine joins with by a token that is there already, with the address and the hash of the authority of the
cluster. The whole token is in it. muster token create --print-join-command makes a new one for it.`,
		Example: `  muster token print-join-command abcdef
  muster token print-join-command abcdef --for kubeadm`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := token.ParseID(args[0])
			if err != nil {
				return usageError{Err: err}
			}
			if err := checkTool(tool); err != nil {
				return err
			}
			p, err := c.cluster(c.options)
			if err != nil {
				return err
			}
			var l invite.Listed
			err = p.within(cmd.Context(), func(ctx context.Context) (err error) { l, err = invite.Get(ctx, p, id); return err })
			if err != nil {
				return err
			}
			text, err := c.joinCommand(cmd.Context(), p, tool, l)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.out, text)
			return err
		},
	}
	addToolFlag(cmd, &tool)
	return cmd
}

func tools() []string { return []string{string(invite.Muster), string(invite.Kubeadm)} }

func addToolFlag(cmd *cobra.Command, tool *string) {
	cmd.Flags().StringVar(tool, "for", string(invite.Muster), "program that joins the machine: "+strings.Join(tools(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(tools(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func checkTool(tool string) error {
	if !slices.Contains(tools(), tool) {
		return usageError{Err: fmt.Errorf("--for %q is no program that joins machines; there are %s", tool, strings.Join(tools(), ", "))}
	}
	return nil
}

// joinCommand words it for a token.
func (c *tokenCommand) joinCommand(ctx context.Context, p *plane, tool string, l invite.Listed) (string, error) {
	var door invite.Door
	err := p.within(ctx, func(ctx context.Context) (err error) { door, err = invite.ReadDoor(ctx, p); return err })
	if err != nil {
		return "", err
	}
	return door.Command(invite.Tool(tool), l, c.now())
}

// within gives a call the time that an API server may take.
func (p *plane) within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return p.explain(call(ctx))
}

// complete offers the IDs of tokens.
func (c *tokenCommand) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	p, err := c.cluster(c.options)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	tokens, _, err := invite.List(ctx, p)
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
