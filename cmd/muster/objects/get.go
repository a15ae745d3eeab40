// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
)

func getFormats() []string {
	return []string{terminal.FormatTable, terminal.FormatWide, terminal.FormatJSON, terminal.FormatYAML, terminal.FormatName}
}

// getCommand holds the flags of "muster get".
type getCommand struct {
	*terminal.Options
	planes    kinds.Dialers
	now       func() time.Time
	output    string
	selector  string
	cluster   string
	watch     bool
	noHeaders bool
}

// NewGetCommand returns "muster get".
func NewGetCommand(o *terminal.Options) *cobra.Command {
	return (&getCommand{Options: o, planes: kinds.NewDialers(), now: time.Now}).command()
}

func (g *getCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KIND [NAME...]",
		Short: "Show clusters, node groups, add-ons, pod identity associations, updates, machines, file systems, nodes or certificate signing requests",
		Long: `Show objects of one kind: all of them, or those named.

  clusters     (cluster)         the clusters of the account, their versions and addresses
  nodegroups   (nodegroup, ng)   groups of like machines
  addons       (addon)           EKS add-ons of clusters
  fargateprofiles (fargateprofile, fp)   which pods have a machine each
  podidentityassociations (podidentityassociation, pia)   which service accounts have which IAM roles; named by id or NAMESPACE/NAME
  updates      (update)          changes of clusters, node groups and add-ons that were accepted, and how far they are
  machines     (machine, ma)     machines and the nodes they are; named by instance id, node name or address
  autoscalinggroups (autoscalinggroup, asg)   Auto Scaling groups that no node group has, and how many instances they have
  filesystems  (filesystem, efs) file systems of volumes, by name or id
  stacks       (stack)           stacks of CloudFormation, by name or id: their status, and the reason of it
  nodes        (node, no)        nodes of a cluster and the machines they are; named likewise
  csr          (csrs, certificatesigningrequests)   how nodes asked for their certificates

If an object is not as its spec says, the column MESSAGE says why. For pods and other kinds: kubectl get.`,
		Example: `  # All machines, and the node that each is
  muster get machines

  # One machine, by the name of its node, with everything there is to know
  muster get machine ip-172-31-0-5.ec2.internal -o yaml

  # Node groups of one cluster, and its nodes
  muster get nodegroups --cluster blue
  muster get nodes --cluster blue

  # What EKS's API was asked to change, until it has taken effect
  muster get updates --watch

  # Who asked for which certificate, as it happens
  muster get csr --watch

  # Names only, for scripts
  muster get machines --selector muster.dev/nodegroup=default -o name`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("name a kind: %s", kindNames())
			}
			_, _, err := kindAndNames(args)
			return err
		},
		ValidArgsFunction: g.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return g.run(cmd.Context(), args) },
	}
	terminal.AddFormatFlag(cmd, &g.output, terminal.FormatTable, getFormats()...)
	cmd.Flags().StringVarP(&g.selector, "selector", "l", "", "only objects with these labels, as in key=value,other!=value")
	kinds.AddClusterFlag(cmd, g.Options, g.planes, &g.cluster, "cluster whose nodes and requests to show; of clusters, node groups, add-ons, updates and machines, only those of this cluster")
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on with every change until interrupted")
	cmd.Flags().BoolVar(&g.noHeaders, "no-headers", false, "print no heading line")
	return cmd
}

func kindNames() string {
	return "clusters, nodegroups, fargateprofiles, addons, podidentityassociations, updates, machines, autoscalinggroups, filesystems, stacks, nodes, csr"
}

// kindAndNames reads KIND NAME... or KIND/NAME...
func kindAndNames(args []string) (kinds.Kind, []string, error) {
	word, names := args[0], args[1:]
	if strings.Contains(word, "/") {
		names = nil
		for _, arg := range args {
			before, name, ok := strings.Cut(arg, "/")
			if first, _, _ := strings.Cut(word, "/"); !ok || before != first || name == "" {
				return kinds.Kind{}, nil, fmt.Errorf("%q is not of the form KIND/NAME, or of another kind than %q", arg, word)
			}
			names = append(names, name)
		}
		word, _, _ = strings.Cut(word, "/")
	}
	k, ok := kinds.FindKind(word)
	if !ok {
		var all []string
		for _, k := range kinds.Kinds() {
			all = append(all, append(k.Aliases, k.Singular, k.Plural)...)
		}
		return kinds.Kind{}, nil, fmt.Errorf("unknown kind %q%s; there are: %s (others by kubectl)", word, terminal.DidYouMean(word, all), kindNames())
	}
	return k, names, nil
}

func (g *getCommand) run(ctx context.Context, args []string) error {
	if err := terminal.CheckOutput(g.output, getFormats()...); err != nil {
		return err
	}
	selector, err := labels.Parse(g.selector)
	if err != nil {
		return terminal.UsageError{Err: fmt.Errorf("reading --selector: %w", err)}
	}
	k, names, err := kindAndNames(args)
	if err != nil {
		return terminal.UsageError{Err: err}
	}
	if len(names) > 0 && g.selector != "" {
		return terminal.UsageError{Err: errors.New("give names or --selector, not both")}
	}
	p, err := g.dial(k)
	if err != nil {
		return err
	}
	if g.cluster != "" && k.OfOneCluster() {
		if g.cluster, err = p.Cluster(ctx, g.cluster); err != nil {
			return err
		}
	}
	objects, version, err := p.Objects(ctx, k, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return err
	}
	objects = g.ofCluster(k, objects)
	if k, err = p.WithClusters(ctx, k, objects); err != nil {
		return err
	}
	printing := &kinds.Printer{Out: g.Out, Scheme: p.Scheme(), Kind: k, Format: g.output, NoHeaders: g.noHeaders, Follows: g.watch, Now: g.now}
	found, missing := k.Choose(objects, names)
	switch {
	case g.watch:
		if missing != nil {
			return missing
		}
		return g.follow(ctx, p, printing, names, selector, found, version)
	case len(names) == 1 && len(found) == 1:
		return printing.Object(found[0])
	case len(found) == 0 && missing != nil:
		return missing
	case len(found) == 0 && g.output != terminal.FormatJSON && g.output != terminal.FormatYAML:
		_, err := fmt.Fprintln(g.Err, "No resources found.")
		return err
	}
	return errors.Join(printing.Objects(found), missing)
}

// dial connects to the plane that a kind lives in. Of a kind that lives in clusters, --cluster chooses the cluster.
func (g *getCommand) dial(k kinds.Kind) (*kinds.Client, error) {
	o := *g.Options
	o.Cluster = terminal.Or(g.cluster, o.Cluster)
	return g.planes.Of(k)(&o)
}

// ofCluster leaves the objects of the cluster that --cluster names, or all.
func (g *getCommand) ofCluster(k kinds.Kind, objects []client.Object) []client.Object {
	if g.cluster == "" || !k.OfOneCluster() {
		return objects
	}
	return slices.DeleteFunc(slices.Clone(objects), func(object client.Object) bool { return !kinds.IsOf(object, g.cluster) })
}

// follow prints objects, and then every change until the context ends. If a watch ends, it lists the objects again and
// begins another watch.
func (g *getCommand) follow(ctx context.Context, p *kinds.Client, printing *kinds.Printer, names []string, selector labels.Selector, objects []client.Object, version string) error {
	printed := map[types.UID]string{}
	show := func(object client.Object) error {
		if found, _ := printing.Kind.Choose(g.ofCluster(printing.Kind, []client.Object{object}), names); len(found) == 0 || printed[object.GetUID()] == object.GetResourceVersion() {
			return nil
		}
		printed[object.GetUID()] = object.GetResourceVersion()
		return printing.Object(object)
	}
	for {
		for _, object := range objects {
			if err := show(object); err != nil {
				return err
			}
		}
		err := p.Changes(ctx, printing.Kind.List(), show, client.MatchingLabelsSelector{Selector: selector},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // to be interrupted is how a watch ends
		}
		if err != nil {
			return err
		}
		if objects, version, err = p.Objects(ctx, printing.Kind, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return err
		}
	}
}
