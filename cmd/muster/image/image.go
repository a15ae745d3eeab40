// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/image/imagearchive"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/table"
)

// NewCommand returns "muster image".
func NewCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "image",
		Aliases: []string{"images"},
		Short:   "Load container images onto machines without a registry, list and remove them",
		Long: `Load container images onto machines without a registry, list and remove them.

An image that is loaded is on all machines of the clusters that --cluster names, or of all clusters, and on those that come later. Pods use it under
its name with imagePullPolicy IfNotPresent or Never; IfNotPresent is the default for every tag but "latest".`,
		Example: `  docker save myapp:dev | muster image load -
  kubectl create deployment myapp --image=myapp:dev
  muster image ls
  muster image rm myapp:dev`,
		Args: terminal.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLoadCommand(o), newListCommand(o), newRemoveCommand(o))
	return cmd
}

// namespacesOf returns the namespaces of the clusters that --cluster names. It is empty without the flag, which means
// all clusters. Each named cluster must exist.
func namespacesOf(o *terminal.Options, dir statedir.Dir) ([]string, error) {
	if o.Cluster == "" {
		return nil, nil
	}
	clusters, err := dir.ListClusters()
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for name := range strings.SplitSeq(o.Cluster, ",") {
		namespace := v1alpha1.ClusterSlug(name)
		if !slices.Contains(clusters, dir.Cluster(namespace)) {
			return nil, fmt.Errorf("there is no cluster %q; muster get clusters lists those there are", name)
		}
		if !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	slices.Sort(namespaces)
	return namespaces, nil
}

// printed is an image as -o json shows it.
type printed struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Size     int64     `json:"size"` // bytes
	Clusters []string  `json:"clusters,omitempty"`
	Loaded   time.Time `json:"loaded"`
}

func newListCommand(o *terminal.Options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the images that were loaded",
		Example: `  muster image ls
  muster image ls --cluster blue -o json`,
		Args: terminal.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			namespaces, err := namespacesOf(o, dir)
			if err != nil {
				return err
			}
			entries, err := imagestore.New(dir).List()
			if err != nil {
				return err
			}
			list := []printed{}
			for _, e := range entries {
				if len(namespaces) > 0 && len(e.Namespaces) > 0 && !slices.ContainsFunc(e.Namespaces, func(n string) bool { return slices.Contains(namespaces, n) }) {
					continue
				}
				list = append(list, printed{Name: e.Name, Digest: e.Manifest.Digest.String(), Size: e.Size(), Clusters: e.Namespaces, Loaded: e.Loaded})
			}
			return printList(o, format, list)
		},
	}
	terminal.AddOutputFlag(cmd, &format)
	return cmd
}

func printList(o *terminal.Options, format string, list []printed) error {
	if format != terminal.FormatTable {
		return terminal.PrintData(o.Out, format, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(o.Err, "No images are loaded.")
		return nil
	}
	t := table.New(o.Out, "NAME", "DIGEST", "SIZE", "CLUSTERS", "AGE")
	for _, image := range list {
		clusters := "all"
		if len(image.Clusters) > 0 {
			clusters = strings.Join(image.Clusters, ",")
		}
		t.Row(image.Name, shortDigest(image.Digest), humanSize(image.Size), clusters, duration.HumanDuration(time.Since(image.Loaded)))
	}
	return t.Flush()
}

func shortDigest(digest string) string {
	const length = len("sha256:") + 12
	return digest[:min(length, len(digest))]
}

func humanSize(bytes int64) string {
	const mebi = 1 << 20
	if bytes >= mebi {
		return resource.NewQuantity(bytes/mebi*mebi, resource.BinarySI).String()
	}
	return resource.NewQuantity((bytes+1023)/1024*1024, resource.BinarySI).String()
}

func newRemoveCommand(o *terminal.Options) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME...",
		Aliases: []string{"remove", "delete"},
		Short:   "Remove images that were loaded",
		Long: `Remove images that were loaded, from the clusters that --cluster names or from all. Containers that run go on; a new one finds no image on its machine,
and pulls it if it can.`,
		Example: `  muster image rm myapp:dev
  muster image rm --cluster blue myapp:dev`,
		Args: terminal.UsageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: func(_ *cobra.Command, taken []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeNames(o, taken), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			namespaces, err := namespacesOf(o, dir)
			if err != nil {
				return err
			}
			names := make([]string, 0, len(args))
			for _, arg := range args {
				name, err := imagearchive.Name(arg)
				if err != nil {
					return terminal.UsageError{Err: err}
				}
				names = append(names, name)
			}
			store := imagestore.New(dir)
			if err := store.Remove(cmd.Context(), names, namespaces); err != nil {
				return err
			}
			for _, name := range names {
				fmt.Fprintf(o.Out, "image %s removed\n", name)
			}
			return wait(cmd.Context(), o, dir, namespaces)
		},
	}
}

func completeNames(o *terminal.Options, taken []string) []string {
	dir, err := o.OpenExisting()
	if err != nil {
		return nil
	}
	entries, _ := imagestore.New(dir).List() // silent, whatever is wrong
	var names []string
	for _, e := range entries {
		if !slices.Contains(taken, e.Name) {
			names = append(names, e.Name)
		}
	}
	return slices.Compact(names)
}

var errNothing = errors.New("standard input is a terminal: pipe an archive into it, as in `docker save myapp:dev | muster image load -`")
