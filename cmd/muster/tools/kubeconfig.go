// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/kubeconfig"
	"muster.dev/muster/internal/platform/shellquote"
	"muster.dev/muster/internal/platform/statedir"
)

// NewKubeconfigCommand returns "muster kubeconfig".
func NewKubeconfigCommand(o *terminal.Options) *cobra.Command {
	var file string
	var show, management, iam bool
	var role string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Add the contexts of the clusters and of the management plane to your kubeconfig",
		Long: `Add the contexts of the clusters and of the management plane to your kubeconfig ($KUBECONFIG, else ~/.kube/config),
or bring them up to date. Other contexts stay as they are. The file holds keys and is made private.`,
		Example: `  muster kubeconfig
  muster kubeconfig --kubeconfig ./team.yaml
  muster kubeconfig --print > cluster.yaml
  muster kubeconfig --iam                                 # logs in by IAM: no key in the file`,
		RunE: func(*cobra.Command, []string) error {
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			if iam && management {
				return terminal.UsageError{Err: errors.New("--iam does not work with --management: the management plane has no IAM identities")}
			}
			if iam {
				return iamKubeconfig(o, dir, file, role, show)
			}
			if management && !show {
				return terminal.UsageError{Err: errors.New("--management needs --print; without them, the contexts of both are added")}
			}
			if role != "" {
				return terminal.UsageError{Err: errors.New("--role-arn needs --iam")}
			}
			if show {
				path := dir.ManagementKubeconfig()
				if !management {
					cluster, err := o.OpenCluster()
					if err != nil {
						return err
					}
					path = cluster.Kubeconfig()
				}
				raw, err := os.ReadFile(path)
				if err != nil {
					return fmt.Errorf("reading kubeconfig: %w", err)
				}
				_, err = o.Out.Write(raw)
				return err
			}
			return MergeKubeconfig(o, dir, file, "", true)
		},
	}
	cmd.Flags().StringVar(&file, "kubeconfig", "", "file to change, instead of $KUBECONFIG or ~/.kube/config")
	cmd.Flags().BoolVar(&show, "print", false, "print the cluster's kubeconfig instead of changing yours")
	cmd.Flags().BoolVar(&iam, "iam", false, "add a context that logs in by IAM, as the identity of your AWS environment")
	cmd.Flags().StringVar(&role, "role-arn", "", "with --iam: role to assume first")
	cmd.Flags().BoolVar(&management, "management", false, "with --print: the management plane's")
	return cmd
}

// MergeKubeconfig adds the contexts of all clusters and of the management plane, prints what it changed, and records
// the file, so that `down --delete` can remove them. The current context becomes that of the cluster named first, or of
// the one that --cluster names.
func MergeKubeconfig(o *terminal.Options, dir statedir.Dir, file string, first statedir.Cluster, switchTo bool) error {
	clusters, err := dir.ListClusters()
	if err != nil {
		return err
	}
	if first == "" && o.Cluster != "" {
		if first, err = o.OpenCluster(); err != nil {
			return err
		}
	}
	var from []string
	for _, cluster := range clusters {
		switch path := cluster.Kubeconfig(); {
		case !terminal.Exists(path): // it has never run
		case cluster == first:
			from = slices.Insert(from, 0, path)
		default:
			from = append(from, path)
		}
	}
	return mergeContexts(o, dir, file, append(from, dir.ManagementKubeconfig()), switchTo)
}

// mergeContexts adds the contexts of some kubeconfigs.
func mergeContexts(o *terminal.Options, dir statedir.Dir, file string, from []string, switchTo bool) error {
	before := kubeconfig.Current(kubeconfig.Options(file))
	path, changed, err := kubeconfig.Merge(kubeconfig.Options(file), string(dir), from, switchTo)
	if err != nil {
		return err
	}
	if changed {
		fmt.Fprintf(o.Err, "Wrote contexts to %s\n", path)
	}
	if now := kubeconfig.Current(kubeconfig.Options(file)); now != before {
		fmt.Fprint(o.Err, switched(before, now))
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("finding your kubeconfig: %w", err)
	}
	written, err := WrittenKubeconfigs(dir)
	if err != nil || slices.Contains(written, path) {
		return err
	}
	return atomicfile.Write(dir.WrittenKubeconfigs(), []byte(strings.Join(append(written, path), "\n")+"\n"), 0o600)
}

// switched returns a notice that the current context has changed, with the command that changes it back.
func switched(before, now string) string {
	if before == "" {
		return fmt.Sprintf("The current context is now %q\n", now)
	}
	return fmt.Sprintf("The current context is now %q; back to the one before: kubectl config use-context %s\n", now, shellquote.Quote(before))
}

// WrittenKubeconfigs returns the paths of the kubeconfigs that contexts of the state directory were added to.
func WrittenKubeconfigs(dir statedir.Dir) ([]string, error) {
	raw, err := os.ReadFile(dir.WrittenKubeconfigs())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading which kubeconfigs have contexts: %w", err)
	}
	return strings.FieldsFunc(string(raw), func(r rune) bool { return r == '\n' }), nil
}

// CleanKubeconfigs removes the contexts from those of the files that still exist.
func CleanKubeconfigs(o *terminal.Options, dir statedir.Dir, files []string) error {
	return clean(o, files, func(file string) (string, bool, error) {
		return kubeconfig.Remove(kubeconfig.Options(file), string(dir))
	})
}

// ForgetCluster removes the contexts of one cluster, by its name and the address of its API server, which may be empty.
func ForgetCluster(o *terminal.Options, dir statedir.Dir, cluster, server string) error {
	files, err := WrittenKubeconfigs(dir)
	if err != nil {
		return err
	}
	return clean(o, files, func(file string) (string, bool, error) {
		return kubeconfig.RemoveCluster(kubeconfig.Options(file), string(dir), cluster, server)
	})
}

func clean(o *terminal.Options, files []string, remove func(file string) (path string, changed bool, err error)) error {
	for _, file := range files {
		if !terminal.Exists(file) {
			continue
		}
		before := kubeconfig.Current(kubeconfig.Options(file))
		path, changed, err := remove(file)
		if err != nil {
			return err
		}
		if changed {
			fmt.Fprintf(o.Err, "Removed contexts from %s\n", path)
		}
		if now := kubeconfig.Current(kubeconfig.Options(file)); now != before && now != "" {
			fmt.Fprintf(o.Err, "The current context is %q again\n", now)
		}
	}
	return nil
}
