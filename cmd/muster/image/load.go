// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/image/imagearchive"
	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/node/loadedimages"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	// patience is how long machines may take to have an image, which is a fraction of a second where nothing is wrong.
	patience     = time.Minute
	pollInterval = 20 * time.Millisecond
)

func newLoadCommand(o *terminal.Options) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "load FILE|DIRECTORY|-",
		Short: "Load images from an archive or an OCI image layout onto machines",
		Long: `Load images onto the machines of the clusters that --cluster names (several are separated by commas), or of all clusters, also those that come later.

It takes what "docker save" and "podman save" write, an archive of an OCI image layout, or a directory that holds one; "-" is standard input. Archives
may be compressed with gzip. The images must be for the platform of this host.

An image that was loaded under the same name is replaced. The command returns when all machines that run have the images.`,
		Example: `  docker save myapp:dev | muster image load -
  muster image load myapp.tar
  muster image load --cluster blue --name myapp:dev ./layout`,
		Args: terminal.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return load(cmd.Context(), o, args[0], name) },
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the image, such as myapp:dev, where the archive has one image and no name or another one")
	return cmd
}

func load(ctx context.Context, o *terminal.Options, from, name string) error {
	dir, err := o.OpenExisting()
	if err != nil {
		return err
	}
	namespaces, err := namespacesOf(o, dir)
	if err != nil {
		return err
	}
	if name != "" {
		if _, err := imagearchive.Name(name); err != nil {
			return terminal.UsageError{Err: fmt.Errorf("--name: %w", err)}
		}
	}
	images, err := imagestore.New(dir).Load(ctx, namespaces, func(in *imagestore.Ingest) ([]loadedimages.Image, error) {
		return read(ctx, o, from, in, name)
	})
	if err != nil {
		return err
	}
	for _, image := range images {
		fmt.Fprintf(o.Out, "image %s loaded: %s, %s\n", image.Name, shortDigest(image.Manifest.Digest.String()), humanSize(image.Size()))
	}
	return wait(ctx, o, dir, namespaces)
}

func read(ctx context.Context, o *terminal.Options, from string, blobs imagearchive.Blobs, name string) ([]loadedimages.Image, error) {
	platform := ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if from != "-" {
		return imagearchive.Read(ctx, from, blobs, platform, name)
	}
	if file, ok := o.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return nil, terminal.UsageError{Err: errNothing}
	}
	images, err := imagearchive.ReadStream(ctx, o.In, blobs, platform, name)
	if err != nil {
		return nil, fmt.Errorf("reading images of standard input: %w", err)
	}
	_, err = io.Copy(io.Discard, o.In) // the padding of the archive: its writer must not fail
	return images, err
}

// wait waits until all machines that run have the images that their cluster is to have now.
func wait(ctx context.Context, o *terminal.Options, dir statedir.Dir, namespaces []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	store, wanted := imagestore.New(dir), map[string]string{}
	for {
		machines, err := local.ReadLoadedImages(dir)
		if err != nil {
			return err
		}
		var late []string
		have, booting := 0, 0
		for _, machine := range machines {
			cluster := dir.Cluster(v1alpha1.ClusterSlug(machine.Cluster))
			if len(namespaces) > 0 && !slices.Contains(namespaces, cluster.Namespace()) {
				continue
			}
			if wanted[cluster.Namespace()] == "" {
				if _, wanted[cluster.Namespace()], err = store.Shown(cluster); err != nil {
					return err
				}
			}
			switch {
			case !machine.Reported:
				booting++
			case machine.Version == wanted[cluster.Namespace()]:
				have++
			default:
				late = append(late, strings.TrimSuffix(machine.Machine+": "+machine.Failure, ": "))
			}
		}
		if len(late) == 0 {
			tell(o, have, booting)
			return nil
		}
		select {
		case <-ctx.Done():
			slices.Sort(late)
			return fmt.Errorf("%s not have it after %s, and will be tried again: %s", terminal.Count(len(late), "machine does", "machines do"), patience, strings.Join(late, "; "))
		case <-time.After(pollInterval):
		}
	}
}

func tell(o *terminal.Options, have, booting int) {
	fmt.Fprintf(o.Err, "%s up to date", terminal.Count(have, "machine is", "machines are"))
	if booting > 0 {
		fmt.Fprintf(o.Err, "; %s booting and will be before pods are placed there", terminal.Count(booting, "is", "are"))
	}
	fmt.Fprintln(o.Err)
}
