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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func getFormats() []string {
	return []string{formatTable, formatWide, formatJSON, formatYAML, formatName}
}

// getCommand is what "muster get" was asked.
type getCommand struct {
	*options
	planes    planes
	now       func() time.Time
	output    string
	selector  string
	watch     bool
	noHeaders bool
}

func newGetCommand(o *options) *cobra.Command {
	return (&getCommand{options: o, planes: realPlanes(), now: time.Now}).command()
}

func (g *getCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KIND [NAME...]",
		Short: "Show clusters, node groups, machines, nodes or certificate signing requests",
		//nolint:dupword // a list whose entry ends with the name of the next
		Long: `Show objects of one kind: all of them, or those named.

  clusters     (cluster)         the cluster, its version and its address
  nodegroups   (nodegroup, ng)   groups of like machines
  machines     (machine, ma)     machines and the nodes they are; named by instance id, node name or address
  nodes        (node, no)        nodes of the cluster and the machines they are; named likewise
  csr          (csrs, certificatesigningrequests)   how nodes asked for their certificates

Where one is not as it was asked for there is a column more, MESSAGE, which says why. Pods and other kinds: kubectl get.`,
		Example: `  # All machines, and the node that each is
  muster get machines

  # One machine, by the name of its node, with everything there is to know
  muster get machine ip-192-168-64-11.muster.internal -o yaml

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
	addFormatFlag(cmd, &g.output, formatTable, getFormats()...)
	cmd.Flags().StringVarP(&g.selector, "selector", "l", "", "only objects with these labels, as in key=value,other!=value")
	cmd.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on with every change until interrupted")
	cmd.Flags().BoolVar(&g.noHeaders, "no-headers", false, "print no heading line")
	return cmd
}

func kindNames() string { return "clusters, nodegroups, machines, nodes, csr" }

// kindAndNames reads KIND NAME... or KIND/NAME...
func kindAndNames(args []string) (kind, []string, error) {
	word, names := args[0], args[1:]
	if strings.Contains(word, "/") {
		names = nil
		for _, arg := range args {
			before, name, ok := strings.Cut(arg, "/")
			if first, _, _ := strings.Cut(word, "/"); !ok || before != first || name == "" {
				return kind{}, nil, fmt.Errorf("%q is not of the form KIND/NAME, or of another kind than %q", arg, word)
			}
			names = append(names, name)
		}
		word, _, _ = strings.Cut(word, "/")
	}
	k, ok := findKind(word)
	if !ok {
		var all []string
		for _, k := range kinds() {
			all = append(all, append(k.aliases, k.singular, k.plural)...)
		}
		return kind{}, nil, fmt.Errorf("unknown kind %q%s; there are: %s (others by kubectl)", word, didYouMean(word, all), kindNames())
	}
	return k, names, nil
}

func (g *getCommand) run(ctx context.Context, args []string) error {
	if err := checkOutput(g.output, getFormats()...); err != nil {
		return err
	}
	selector, err := labels.Parse(g.selector)
	if err != nil {
		return usageError{Err: fmt.Errorf("reading --selector: %w", err)}
	}
	k, names, err := kindAndNames(args)
	if err != nil {
		return usageError{Err: err}
	}
	if len(names) > 0 && g.selector != "" {
		return usageError{Err: errors.New("give names or --selector, not both")}
	}
	p, err := g.planes.of(k)(g.options)
	if err != nil {
		return err
	}
	printing := &printer{out: g.out, scheme: p.Scheme(), kind: k, format: g.output, noHeaders: g.noHeaders, follows: g.watch, now: g.now}
	objects, version, err := p.objects(ctx, k, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return err
	}
	found, missing := k.choose(objects, names)
	switch {
	case g.watch:
		if missing != nil {
			return missing
		}
		return g.follow(ctx, p, printing, names, selector, found, version)
	case len(names) == 1 && len(found) == 1:
		return printing.object(found[0])
	case len(found) == 0 && missing != nil:
		return missing
	case len(found) == 0 && g.output != formatJSON && g.output != formatYAML:
		_, err := fmt.Fprintln(g.err, "No resources found.")
		return err
	}
	return errors.Join(printing.objects(found), missing)
}

// of is the plane that a kind lives in.
func (p planes) of(k kind) func(*options) (*plane, error) {
	if k.inCluster {
		return p.cluster
	}
	return p.management
}

// objects lists a kind, by name, and says which version of the store that was.
func (p *plane) objects(ctx context.Context, k kind, opts ...client.ListOption) ([]client.Object, string, error) {
	list := k.list()
	if err := p.list(ctx, list, opts...); err != nil {
		return nil, "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, "", fmt.Errorf("reading list: %w", err)
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return objects, list.GetResourceVersion(), nil
}

// follow prints objects, and then every change until the context ends. Where a watch ends, it begins again with what there is now.
func (g *getCommand) follow(ctx context.Context, p *plane, printing *printer, names []string, selector labels.Selector, objects []client.Object, version string) error {
	printed := map[types.UID]string{}
	show := func(object client.Object) error {
		if found, _ := printing.kind.choose([]client.Object{object}, names); len(found) == 0 || printed[object.GetUID()] == object.GetResourceVersion() {
			return nil
		}
		printed[object.GetUID()] = object.GetResourceVersion()
		return printing.object(object)
	}
	for {
		for _, object := range objects {
			if err := show(object); err != nil {
				return err
			}
		}
		err := p.changes(ctx, printing.kind.list(), show, client.MatchingLabelsSelector{Selector: selector},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // to be interrupted is how a watch ends
		}
		if err != nil {
			return err
		}
		if objects, version, err = p.objects(ctx, printing.kind, client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return err
		}
	}
}

// changes calls do for every change of a kind until the watch ends.
func (p *plane) changes(ctx context.Context, list client.ObjectList, do func(client.Object) error, opts ...client.ListOption) error {
	watching, err := p.Watch(ctx, list, opts...)
	if err != nil {
		return p.explain(err)
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watching.ResultChan():
			if !ok {
				return nil
			}
			if event.Type == watch.Error {
				if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
					return p.explain(err)
				}
				return nil
			}
			if object, ok := event.Object.(client.Object); ok && event.Type != watch.Bookmark {
				if err := do(object); err != nil {
					return err
				}
			}
		}
	}
}
