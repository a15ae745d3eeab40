// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/plane/readiness"
)

// fileSystemNames are the names that the command takes. EFS's tag Name can be more, by its API.
var fileSystemNames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$`)

// createFileSystemCommand holds the flags of "muster create filesystem".
type createFileSystemCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	interval time.Duration
	random   io.Reader

	clusters       []string
	dryRun, output string
	wait           bool
	timeout        time.Duration
}

func (c *createFileSystemCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "filesystem NAME",
		Aliases: []string{"filesystems", "efs"},
		Short:   "Make a file system for volumes",
		Long: `Make a file system, as EFS has them, for volumes that pods of several clusters share, or that are there before their claims. It is
a directory of this host, and grows with what is written. StorageClasses (fileSystemId) and volume handles name it by its id.

Every cluster of the account can mount it, unless --cluster names those that can; their names are spec.clusters of the FileSystem.

Volumes of the default StorageClass need none: they are in the file system "default" of the account. Made again it stays as it is.`,
		Example: `  # A file system, and its id
  muster create filesystem shared --wait
  muster get filesystem shared

  # One for two clusters, which no other one can mount
  muster create filesystem shared --cluster blue --cluster green

  # The id alone, for a script
  muster get filesystem shared -o json | jq -r .metadata.name

  # The same as a document, for kubectl apply
  muster create filesystem shared --dry-run=client -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("cluster") && (len(c.clusters) == 0 || slices.Contains(c.clusters, "")) {
				return terminal.UsageError{Err: errors.New(`invalid cluster "": must be the name of one; leave --cluster out for all clusters`)}
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&c.clusters, "cluster", nil, "cluster that can mount it; may be given several times (default: all clusters of the account)")
	_ = cmd.RegisterFlagCompletionFunc("cluster", kinds.CompleteNames(c.Options, c.planes, kinds.Clusters(), 0)) // the flag exists
	flags.BoolVar(&c.wait, "wait", false, "return when the file system can be mounted")
	flags.DurationVar(&c.timeout, "timeout", time.Minute, "how long to --wait")
	addDryRunFlag(cmd, &c.dryRun)
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatName, createFormats()...)
	return cmd
}

func (c *createFileSystemCommand) run(ctx context.Context, name string) error {
	if err := checkCreate(c.dryRun, c.output); err != nil {
		return err
	}
	if !fileSystemNames.MatchString(name) {
		return terminal.UsageError{Err: fmt.Errorf("invalid name %q: must be up to 100 letters, digits, dots, dashes and underscores, and begin and end with a letter or digit", name)}
	}
	slices.Sort(c.clusters)
	c.clusters = slices.Compact(c.clusters)
	var id [9]byte
	if _, err := io.ReadFull(c.random, id[:]); err != nil {
		return fmt.Errorf("making an id: %w", err)
	}
	wanted := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Name: name, Clusters: c.clusters}}
	wanted.Name = "fs-" + hex.EncodeToString(id[:])[:17]
	if c.dryRun == dryRunClient {
		return c.print(wanted, made(c.dryRun))
	}
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	did := made(c.dryRun)
	there, err := named(ctx, p, name)
	if err != nil {
		return err
	}
	if there != nil {
		if there.DeletionTimestamp != nil {
			return fmt.Errorf("file system %q is being deleted: try again when it is gone", name)
		}
		if len(c.clusters) > 0 && !slices.Equal(slices.Sorted(slices.Values(there.Spec.Clusters)), c.clusters) {
			return fmt.Errorf("file system %q is there, for %s: change spec.clusters of FileSystem %s in the management plane (kubectl --context muster-management edit filesystem %[3]s)",
				name, terminal.Or(strings.Join(there.Spec.Clusters, ", "), "all clusters"), there.Name)
		}
		wanted, did = there, unchanged(c.dryRun)
	} else if _, err := create(ctx, p, wanted, c.dryRun, &v1alpha1.FileSystem{}); err != nil {
		return err
	}
	if err := c.print(wanted, did); err != nil || !c.wait || c.dryRun != dryRunNone {
		return err
	}
	return c.waitUntilReady(ctx, p, wanted)
}

// named finds the file system of a name; nil if there is none.
func named(ctx context.Context, p *kinds.Client, name string) (*v1alpha1.FileSystem, error) {
	var all v1alpha1.FileSystemList
	if err := p.ReadAll(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if all.Items[i].Spec.Name == name {
			return &all.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // there is none, and that is not an error
}

func (c *createFileSystemCommand) waitUntilReady(ctx context.Context, p *kinds.Client, wanted *v1alpha1.FileSystem) error {
	why := "nobody has made it yet"
	err := terminal.Poll(ctx, c.timeout, c.interval, func(ctx context.Context) (bool, error) {
		var now v1alpha1.FileSystem
		if err := p.ReadKey(ctx, client.ObjectKeyFromObject(wanted), &now); err != nil {
			return false, err
		}
		why = terminal.Or(readiness.Message(now.Status.Conditions), why)
		return meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady), nil
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		return fmt.Errorf("file system %q: %s: %w", wanted.Spec.Name, why, err)
	}
	return err
}

func (c *createFileSystemCommand) print(wanted *v1alpha1.FileSystem, did string) error {
	k := kinds.FileSystems()
	if c.output == terminal.FormatName {
		_, err := fmt.Fprintln(c.Out, k.Qualified(kinds.NameOf(wanted)), did)
		return err
	}
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	return (&kinds.Printer{Out: c.Out, Scheme: scheme, Kind: k, Format: c.output}).Object(wanted)
}
